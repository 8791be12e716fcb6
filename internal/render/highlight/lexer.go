package highlight

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

const (
	root = "root"

	matchTime = 50 * time.Millisecond // for one regular expression at one place
	maxNested = 6                     // lexers within each other
	maxStack  = 256                   // states on the stack
)

// Lexer finds the tokens of one language. It may be used from several goroutines.
type Lexer struct {
	all    *library // it belongs to
	name   string
	flags  string // of all its regular expressions
	states map[string]*state
}

// Name returns the name of the language.
func (l *Lexer) Name() string { return l.name }

type state struct {
	rules []*rule
	flat  bool // rules have no includes any more
}

// rule says what a match of its pattern is. What it says about regular expressions is
// found out when the rule is first tried.
type rule struct {
	pattern string
	include string // a state whose rules stand here
	emit    *emitter
	moves   []move

	ready bool
	re    *regexp2.Regexp // nil if it cannot be compiled
	first *firstSet       // nil if a match may begin with anything
}

// move changes the stack.
type move struct {
	pop  int
	push []string // a state; several are one that has the rules of all
	same bool     // the state on top is pushed again
}

// emitter gives kinds to what was matched: the kind, or those of the groups, or what
// another state or lexer finds.
type emitter struct {
	kind                 Kind
	groups               []*emitter
	self                 string
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
	stack []string
	slow  int // regular expressions that took too long
}

// Clone returns a copy.
func (s State) Clone() State {
	return State{stack: slices.Clone(s.stack), slow: s.slow}
}

// Lex appends the spans of text[:limit] to dst. The text begins at st and has no end
// yet: what lies after limit is looked at, since it may be part of a token that begins
// before it. It sets st to the place from which the text goes on, and returns how many bytes it
// lies after the beginning: limit, or where a token begins that reaches over limit.
//
// Text that takes too long has no kinds.
func (l *Lexer) Lex(dst []Span, text []byte, limit int, st *State) (spans []Span, resume int) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	r := newRun(text)
	r.spans = dst
	r.limit = len(r.runes)
	if limit < len(text) {
		r.limit = utf8.RuneCount(text[:limit])
	}
	if st.slow > 2 {
		r.emit(r.limit, kindText)
		return r.spans, limit
	}
	if len(st.stack) == 0 {
		st.stack = append(st.stack, root)
	}
	at := r.run(l, root, st, 0, len(r.runes), 0)
	return r.spans, r.offset(at)
}

// run is one call of Lex.
type run struct {
	runes   []rune
	offsets []int // bytes before each rune; nil if there are as many bytes as runes
	spans   []Span
	base    int // where the text of the lexer begins that works now
	done    int // runes that have spans
	limit   int // runes that get spans
	slow    int // regular expressions that took too long
}

func newRun(text []byte) *run {
	r := &run{runes: make([]rune, 0, len(text))}
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			if r.offsets != nil {
				r.offsets = append(r.offsets, i)
			}
			r.runes = append(r.runes, rune(text[i]))
			i++
			continue
		}
		if r.offsets == nil {
			r.offsets = make([]int, i, len(text)+1)
			for k := range i {
				r.offsets[k] = k
			}
		}
		c, n := utf8.DecodeRune(text[i:])
		r.offsets = append(r.offsets, i)
		r.runes = append(r.runes, c)
		i += n
	}
	if r.offsets != nil {
		r.offsets = append(r.offsets, len(text))
	}
	return r
}

func (r *run) offset(at int) int {
	if r.offsets == nil {
		return at
	}
	return r.offsets[at]
}

// emit gives what has no span yet, up to end, a kind.
func (r *run) emit(end int, k Kind) {
	if end = min(end, r.limit); end <= r.done {
		return
	}
	r.done = end
	n := r.offset(end)
	if last := len(r.spans) - 1; last >= 0 && r.spans[last].Kind == k {
		r.spans[last].End = n
		return
	}
	r.spans = append(r.spans, Span{End: n, Kind: k})
}

// run lexes runes[at:end] with l and returns where the next token begins: at the limit,
// at end, or before the limit if the token there reaches over it. st is its state, and home
// the one to go back to at the end of a line that does not fit.
func (r *run) run(l *Lexer, home string, st *State, at, end, depth int) int {
	empty := 0 // matches of nothing, one after the other
	for at < end && at < r.limit {
		top := st.stack[len(st.stack)-1]
		if top != home && len(l.rules(top)) == 0 { // a state that the lexer names and does not have
			st.stack = append(st.stack[:0], home)
			top = home
		}
		rl, m := r.match(l, top, at, end)
		if m == nil {
			if r.runes[at] == '\n' && top != home {
				st.stack = append(st.stack[:0], home) // something was not closed on its line
				continue
			}
			at++
			r.emit(at, kindError)
			continue
		}
		next := at + m.RuneLength
		if depth == 0 && next > r.limit {
			r.token(l, rl.emit, m, 0, depth)
			r.emit(r.limit, kindText)
			break
		}
		if next > at {
			empty = 0
		} else if empty++; empty > 2*maxStack {
			at++ // the lexer goes round in circles
			r.emit(at, kindError)
			st.stack = append(st.stack[:0], home)
			empty = 0
			continue
		}
		st.apply(rl.moves)
		r.token(l, rl.emit, m, 0, depth)
		r.emit(next, kindText)
		at = next
	}
	st.slow += r.slow
	r.slow = 0
	return min(at, r.limit)
}

// apply changes the stack. There is always a state on it.
func (s *State) apply(moves []move) {
	for i := range moves {
		m := &moves[i]
		switch {
		case m.same:
			s.stack = append(s.stack, s.stack[len(s.stack)-1])
		case m.pop > 0:
			s.stack = s.stack[:max(0, len(s.stack)-m.pop)]
		default:
			s.stack = append(s.stack, strings.Join(m.push, "+"))
		}
		if len(s.stack) == 0 {
			s.stack = append(s.stack, root)
		}
	}
	if len(s.stack) > maxStack {
		s.stack = append(s.stack[:1], s.stack[len(s.stack)-maxStack/2:]...)
	}
}

// match returns the first rule of a state that matches at a place, and its match.
func (r *run) match(l *Lexer, name string, at, end int) (*rule, *regexp2.Match) {
	c := r.runes[at]
	for _, rl := range l.rules(name) {
		if !rl.ready {
			rl.prepare(l.flags)
		}
		if rl.re == nil || rl.first != nil && !rl.first.has(c) {
			continue
		}
		m, err := rl.re.FindRunesMatchStartingAt(r.runes[r.base:end], at-r.base)
		if err != nil {
			r.slow++
			continue
		}
		if m != nil && m.RuneIndex == at-r.base {
			return rl, m
		}
	}
	return nil, nil
}

// rules returns the rules of a state, or of several in one.
func (l *Lexer) rules(name string) []*rule {
	s := l.states[name]
	if s == nil {
		s = &state{flat: true}
		for part := range strings.SplitSeq(name, "+") {
			if part != name {
				s.rules = append(s.rules, l.rules(part)...)
			}
		}
		l.states[name] = s
	}
	if !s.flat {
		s.flat = true // before the includes, so that a circle ends
		s.rules = l.flatten(s.rules, 0)
	}
	return s.rules
}

func (l *Lexer) flatten(rules []*rule, depth int) []*rule {
	var out []*rule
	for _, rl := range rules {
		switch included := l.states[rl.include]; {
		case rl.include == "":
			out = append(out, rl)
		case included != nil && depth < 20:
			out = append(out, l.flatten(included.rules, depth+1)...)
		}
	}
	return out
}

// prepare compiles the pattern.
func (rl *rule) prepare(flags string) {
	rl.ready = true
	pattern := "(?:" + rl.pattern + ")"
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	re, err := regexp2.Compile(`\G` + pattern)
	if err != nil {
		return
	}
	re.MatchTimeout = matchTime
	rl.re = re
	rl.first = firstOf(pattern)
}

// token gives the group of a match its kinds.
func (r *run) token(l *Lexer, e *emitter, m *regexp2.Match, group, depth int) {
	g := m.GroupByNumber(group)
	if e == nil || g == nil || g.RuneLength == 0 {
		return
	}
	from, to := r.base+g.RuneIndex, r.base+g.RuneIndex+g.RuneLength
	switch {
	case len(e.groups) > 0:
		var inner *Lexer
		if e.codeGroup > 0 && depth < maxNested {
			if name := m.GroupByNumber(e.nameGroup); name != nil {
				inner = l.all.find(strings.ToLower(name.String()))
			}
		}
		for i, sub := range e.groups {
			part := m.GroupByNumber(i + 1)
			if part == nil || part.RuneLength == 0 {
				continue
			}
			r.emit(r.base+part.RuneIndex, kindText)
			if inner != nil && i+1 == e.codeGroup {
				r.nested(inner, root, r.base+part.RuneIndex, r.base+part.RuneIndex+part.RuneLength, depth)
				continue
			}
			r.token(l, sub, m, i+1, depth)
		}
	case e.self != "":
		r.nested(l, e.self, from, to, depth)
	case e.lexer != "":
		r.nested(l.all.find(e.lexer), root, from, to, depth)
	default:
		r.emit(to, e.kind)
	}
}

// nested lexes a part of the text from a state of its own.
func (r *run) nested(l *Lexer, name string, from, to, depth int) {
	if l == nil || depth >= maxNested {
		r.emit(to, kindText)
		return
	}
	from = max(from, r.done)
	if from >= to {
		return
	}
	st := State{stack: []string{name}}
	base, slow := r.base, r.slow
	r.base = from
	r.run(l, name, &st, from, to, depth+1)
	r.base, r.slow = base, slow+st.slow
	r.emit(to, kindText)
}
