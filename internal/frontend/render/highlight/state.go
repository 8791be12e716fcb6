package highlight

import (
	"strings"

	"github.com/dlclark/regexp2/v2"
)

// link finds the states that rules name.
func (l *Lexer) link() {
	var rules []*rule
	for _, s := range l.states {
		rules = append(rules, s.rules...)
	}
	for _, rl := range rules {
		for i := range rl.moves {
			if m := &rl.moves[i]; len(m.push) > 0 {
				m.to = l.state(m.push)
			}
		}
		if rl.emit != nil {
			l.linkEmitter(rl.emit)
		}
	}
}

func (l *Lexer) linkEmitter(e *emitter) {
	if e.selfName != "" {
		e.self = l.state([]string{e.selfName})
	}
	for _, sub := range e.groups {
		l.linkEmitter(sub)
	}
}

// state returns the state with a name, or one that has the rules of several. One that is not there
// has no rules.
func (l *Lexer) state(names []string) *state {
	name := strings.Join(names, "+")
	s := l.states[name]
	if s == nil {
		s = &state{}
		for _, part := range names {
			if part != name {
				s.rules = append(s.rules, &rule{include: part})
			}
		}
		l.states[name] = s
	}
	return s
}

// prepare makes a state ready to be used.
func (l *Lexer) prepare(s *state) {
	s.rules, s.prepared = l.flatten(s.rules, 0), true
	for _, rl := range s.rules {
		if rl.re == nil {
			rl.re, _ = l.compile(rl.pattern) // a rule that cannot be compiled matches nothing
		}
	}
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

// compile returns the regular expression of a rule, which matches only where it is tried.
func (l *Lexer) compile(pattern string) (*regexp2.Regexp, error) {
	re, err := regexp2.Compile(`\G(?`+l.flags+":"+pattern+")", regexp2.None)
	if err == nil {
		re.MatchTimeout = maxMatch
	}
	return re, err
}
