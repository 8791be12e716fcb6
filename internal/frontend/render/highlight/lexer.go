package highlight

import (
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

const (
	root = "root"

	maxNested = 6   // lexers within each other
	maxStack  = 256 // states on the stack

	maxMatch = 250 * time.Millisecond // for one match of one rule; a rule that takes longer does not match
	maxTime  = 20 * time.Second       // for one text, which only a hostile one takes
	maxText  = 128 << 10              // bytes of one text that get kinds
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
	rules    []*rule
	prepared bool
}

// rule says what a match of its pattern is.
type rule struct {
	pattern string
	include string // a state whose rules stand here
	emit    *emitter
	moves   []move

	re *regexp2.Regexp // nil before it is needed, and if it cannot be compiled
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

// State is a position in a text that continues. The zero State is the beginning.
type State struct {
	stack []*state
	spent time.Duration
	size  int // bytes that have spans
}

// Clone returns a copy.
func (s State) Clone() State {
	return State{slices.Clone(s.stack), s.spent, s.size}
}

// Lex appends the spans of text[:limit] to dst. The text begins at st and has no end
// yet: what lies after limit is looked at, since it may be part of a token that begins
// before it. It sets st to the place where the text continues, and returns how many bytes it
// lies after the beginning: limit, or where a token begins that reaches over limit.
//
// The rest of a text that is longer than 128 KiB or takes longer than 20 seconds has no kinds.
func (l *Lexer) Lex(dst []Span, text []byte, limit int, st *State) (spans []Span, resume int) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	limit = min(limit, len(text))
	if st.spent >= maxTime || st.size >= maxText {
		if limit > 0 {
			dst = append(dst, Span{limit, kindText})
		}
		return dst, limit
	}
	r := &l.all.run
	r.read(text)
	r.spans, r.done, r.began, r.spent = dst, 0, time.Now(), st.spent
	r.limit, _ = slices.BinarySearch(r.offsets, limit)
	if len(st.stack) == 0 {
		st.stack = append(st.stack, l.root)
	}
	resume = r.offsets[r.lex(l, l.root, st, 0, len(r.text), 0)]
	st.size += resume
	if st.spent += time.Since(r.began); st.spent >= maxTime {
		r.emit(r.limit, kindText)
		resume = limit
	}
	spans, r.spans = r.spans, nil
	return spans, resume
}

// run is one call of Lex. Places are numbers of characters.
type run struct {
	text    []rune
	offsets []int // of each character and of the end, in bytes
	lo, hi  int   // the part of the text that regular expressions see
	spans   []Span
	done    int // characters that have spans
	limit   int // characters that get spans
	began   time.Time
	spent   time.Duration // on this text, before
}

func (r *run) read(text []byte) {
	r.text, r.offsets = r.text[:0], r.offsets[:0]
	for at, c := range string(text) {
		r.text, r.offsets = append(r.text, c), append(r.offsets, at)
	}
	r.offsets = append(r.offsets, len(text))
}

// emit gives what has no span yet, up to end, a kind.
func (r *run) emit(end int, k Kind) {
	if end = min(end, r.limit); end <= r.done {
		return
	}
	r.done = end
	if last := len(r.spans) - 1; last >= 0 && r.spans[last].Kind == k {
		r.spans[last].End = r.offsets[end]
		return
	}
	r.spans = append(r.spans, Span{End: r.offsets[end], Kind: k})
}

// lex finds the tokens of text[at:end] with l and returns where the next one begins: at the limit,
// at end, or before the limit if the token there reaches over it. st is its state, and home
// the one to go back to at the end of a line that does not fit.
func (r *run) lex(l *Lexer, home *state, st *State, at, end, depth int) int {
	r.lo, r.hi = at, end
	empty := 0 // matches of nothing, one after the other
	for at < end && at < r.limit && r.spent+time.Since(r.began) < maxTime {
		top := st.stack[len(st.stack)-1]
		if !top.prepared {
			l.prepare(top)
		}
		if top != home && len(top.rules) == 0 { // a state that the lexer names and does not have
			st.stack = append(st.stack[:0], home)
			continue
		}
		rl, match := r.rule(top, at)
		if rl == nil {
			if r.text[at] == '\n' && top != home {
				st.stack = append(st.stack[:0], home) // something was not closed on its line
				continue
			}
			at = r.skip(at)
			continue
		}
		next := at + match.RuneLength
		if depth == 0 && next > r.limit {
			r.tokens(l, rl, match, at, next, depth)
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
		r.tokens(l, rl, match, at, next, depth)
		at = next
	}
	return min(at, r.limit)
}

// skip makes a character an error and returns the place after it.
func (r *run) skip(at int) int {
	r.emit(at+1, kindError)
	return at + 1
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

// rule returns the first rule of a state that matches at a place, and its match.
func (r *run) rule(s *state, at int) (*rule, *regexp2.Match) {
	for _, rl := range s.rules {
		if rl.re == nil {
			continue
		}
		if m, err := rl.re.FindRunesMatchStartingAt(r.text[r.lo:r.hi], at-r.lo); err == nil && m != nil {
			return rl, m
		}
	}
	return nil, nil
}

// tokens gives what rl matched from one place to another its kinds.
func (r *run) tokens(l *Lexer, rl *rule, m *regexp2.Match, from, to, depth int) {
	switch e := rl.emit; {
	case e == nil || from == to:
	case len(e.groups) == 0:
		r.token(l, e, nil, from, to, depth)
	default: // from the text that the match has, which changes when a part is lexed
		groups := make([]int, 0, 2*len(e.groups)+2)
		for i := range m.GroupCount() {
			g := m.GroupByNumber(i)
			if g == nil || len(g.Captures) == 0 {
				groups = append(groups, -1, -1)
				continue
			}
			groups = append(groups, r.lo+g.RuneIndex, r.lo+g.RuneIndex+g.RuneLength)
		}
		r.token(l, e, groups, from, to, depth)
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
