package highlight

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	root = "root"

	maxNested = 6   // lexers within each other
	maxStack  = 256 // states on the stack

	// A text may spend so many instructions of regular expressions for each byte, and so many more in
	// all. What people write needs 10 for a byte, and 25 in the slowest languages.
	byteBudget = 200
	textBudget = 1 << 22
)

// Lexer finds the tokens of one language. It may be used from several goroutines.
type Lexer struct {
	all    *library // it belongs to
	name   string
	flags  string // of all its regular expressions
	states map[string]*state
	root   *state
}

// Name returns the name of the language.
func (l *Lexer) Name() string { return l.name }

// state is a state of a lexer.
type state struct {
	rules []*rule

	starts *[jumpEnd]uint8 // by the byte at a place, which of lists has the rules that can match there
	lists  [][]*rule
}

// rule says what a match of its pattern is.
type rule struct {
	pattern string
	include string // a state whose rules stand here
	emit    *emitter
	moves   []move

	program *program // nil before it is needed
}

// move changes the stack.
type move struct {
	pop  int
	push []string // a state; several are one that has the rules of all
	to   *state   // what is pushed
	same bool     // the state on top is pushed again
}

// emitter gives kinds to what was matched: the kind, or those of the groups, or what
// another state or lexer finds.
type emitter struct {
	kind                 Kind
	groups               []*emitter
	self                 *state
	selfName             string
	lexer                string
	nameGroup, codeGroup int // the group codeGroup is in the language that the other one names
}

// Span is a part of a text: from the end of the span before to End, in bytes.
type Span struct {
	End  int
	Kind Kind
}

// State is a place in a text that goes on. The zero State is the beginning.
type State struct {
	stack []*state
	spent int // instructions, beyond those that its bytes allowed
}

// Clone returns a copy.
func (s State) Clone() State {
	return State{stack: slices.Clone(s.stack), spent: s.spent}
}

// Lex appends the spans of text[:limit] to dst. The text begins at st and has no end
// yet: what lies after limit is looked at, since it may be part of a token that begins
// before it. It sets st to the place from which the text goes on, and returns how many bytes it
// lies after the beginning: limit, or where a token begins that reaches over limit.
//
// The rest of a text that takes too long has no kinds.
func (l *Lexer) Lex(dst []Span, text []byte, limit int, st *State) (spans []Span, resume int) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	r := &l.all.run
	r.text, r.spans, r.limit, r.done = text, dst, min(limit, len(text)), 0
	r.budget = textBudget - st.spent + byteBudget*r.limit
	resume = r.limit
	if st.spent < textBudget {
		if len(st.stack) == 0 {
			st.stack = append(st.stack, l.root)
		}
		resume = r.lex(l, l.root, st, 0, len(text), 0)
		st.spent = min(textBudget, max(0, textBudget-r.budget))
	}
	if st.spent == textBudget {
		r.emit(r.limit, kindText)
		resume = r.limit
	}
	spans = r.spans
	r.text, r.spans = nil, nil
	return spans, resume
}

// run is one call of Lex.
type run struct {
	matcher
	spans  []Span
	groups []int // of the matches that are being looked at
	done   int   // bytes that have spans
	limit  int   // bytes that get spans
}

// emit gives what has no span yet, up to end, a kind.
func (r *run) emit(end int, k Kind) {
	if end = min(end, r.limit); end <= r.done {
		return
	}
	r.done = end
	if last := len(r.spans) - 1; last >= 0 && r.spans[last].Kind == k {
		r.spans[last].End = end
		return
	}
	r.spans = append(r.spans, Span{End: end, Kind: k})
}

// lex finds the tokens of text[at:end] with l and returns where the next one begins: at the limit,
// at end, or before the limit if the token there reaches over it. st is its state, and home
// the one to go back to at the end of a line that does not fit.
func (r *run) lex(l *Lexer, home *state, st *State, at, end, depth int) int {
	r.lo, r.hi = at, end
	empty := 0 // matches of nothing, one after the other
	for at < end && at < r.limit && r.budget >= 0 {
		top := st.stack[len(st.stack)-1]
		if top.starts == nil {
			l.prepare(top)
		}
		if top != home && len(top.rules) == 0 { // a state that the lexer names and does not have
			st.stack = append(st.stack[:0], home)
			continue
		}
		rl, next := r.rule(top, at)
		if rl == nil {
			if r.text[at] == '\n' && top != home {
				st.stack = append(st.stack[:0], home) // something was not closed on its line
				continue
			}
			at = r.skip(at)
			continue
		}
		if depth == 0 && next > r.limit {
			r.tokens(l, rl, at, next, depth)
			r.emit(r.limit, kindText)
			break
		}
		if next > at {
			empty = 0
		} else if empty++; len(rl.moves) == 0 || empty > 2*maxStack { // the lexer goes round in circles
			at = r.skip(at)
			st.stack = append(st.stack[:0], home)
			empty = 0
			continue
		}
		st.apply(rl.moves, l.root)
		r.tokens(l, rl, at, next, depth)
		at = next
	}
	return min(at, r.limit)
}

// skip makes a character an error and returns the place behind it.
func (r *run) skip(at int) int {
	_, n := utf8.DecodeRune(r.text[at:r.hi])
	r.emit(at+n, kindError)
	return at + n
}

// apply changes the stack. There is always a state on it.
func (s *State) apply(moves []move, root *state) {
	for i := range moves {
		m := &moves[i]
		switch {
		case m.same:
			s.stack = append(s.stack, s.stack[len(s.stack)-1])
		case m.pop > 0:
			s.stack = s.stack[:max(0, len(s.stack)-m.pop)]
		default:
			s.stack = append(s.stack, m.to)
		}
		if len(s.stack) == 0 {
			s.stack = append(s.stack, root)
		}
	}
	if len(s.stack) > maxStack {
		s.stack = append(s.stack[:1], s.stack[len(s.stack)-maxStack/2:]...)
	}
}

// rule returns the first rule of a state that matches at a place, and where its match ends.
func (r *run) rule(s *state, at int) (*rule, int) {
	for _, rl := range s.lists[s.starts[min(r.text[at], jumpWide)]] {
		if end := r.match(rl.program, at); end >= 0 {
			return rl, end
		}
	}
	return nil, 0
}

// tokens gives what rl matched from one place to another its kinds.
func (r *run) tokens(l *Lexer, rl *rule, from, to, depth int) {
	switch e := rl.emit; {
	case e == nil || from == to:
	case len(e.groups) == 0:
		r.token(l, e, nil, from, to, depth)
	default:
		n := len(r.groups)
		r.groups = append(r.groups, r.regs[:2*rl.program.groups]...) // they change when a part is lexed
		r.token(l, e, r.groups[n:], from, to, depth)
		r.groups = r.groups[:n]
	}
	r.emit(to, kindText)
}

// token gives text[from:to] its kinds. groups are those of the match.
func (r *run) token(l *Lexer, e *emitter, groups []int, from, to, depth int) {
	switch {
	case len(e.groups) > 0:
		var inner *Lexer
		if g := 2 * e.nameGroup; e.codeGroup > 0 && depth < maxNested && g < len(groups) && groups[g] >= 0 {
			inner = l.all.find(strings.ToLower(string(r.text[groups[g]:groups[g+1]])))
		}
		for i, sub := range e.groups {
			g := 2 * (i + 1)
			if g >= len(groups) || groups[g] == groups[g+1] {
				continue
			}
			begin, end := groups[g], groups[g+1]
			r.emit(begin, kindText)
			if inner != nil && i+1 == e.codeGroup {
				r.lexPart(inner, inner.root, begin, end, depth)
			} else if sub != nil {
				r.token(l, sub, groups, begin, end, depth)
			}
		}
	case e.self != nil:
		r.lexPart(l, e.self, from, to, depth)
	case e.lexer != "":
		if inner := l.all.find(e.lexer); inner != nil {
			r.lexPart(inner, inner.root, from, to, depth)
		} else {
			r.emit(to, kindText)
		}
	default:
		r.emit(to, e.kind)
	}
}

// lexPart lexes a part of the text from a state of its own.
func (r *run) lexPart(l *Lexer, home *state, from, to, depth int) {
	if depth >= maxNested {
		r.emit(to, kindText)
		return
	}
	if from = max(from, r.done); from >= to {
		return
	}
	lo, hi := r.lo, r.hi
	r.lex(l, home, &State{stack: []*state{home}}, from, to, depth+1)
	r.lo, r.hi = lo, hi
	r.emit(to, kindText)
}
