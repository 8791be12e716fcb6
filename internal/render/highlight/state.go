package highlight

import (
	"slices"
	"strings"
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
	s.rules = l.flatten(s.rules, 0)
	var can [jumpEnd + 1][]*rule
	for _, rl := range s.rules {
		if rl.program == nil {
			rl.prepare(l)
		}
		rl.program.first.each(func(c int) { can[c] = append(can[c], rl) })
	}
	s.starts = &[jumpEnd]uint8{}
	for c := range s.starts {
		i := slices.IndexFunc(s.lists, func(list []*rule) bool { return slices.Equal(list, can[c]) })
		if i < 0 {
			i = len(s.lists)
			s.lists = append(s.lists, can[c])
		}
		s.starts[c] = uint8(i)
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

// prepare compiles the pattern.
func (rl *rule) prepare(l *Lexer) {
	var err error
	rl.program, err = compile(rl.expression(l), rl.emit != nil && len(rl.emit.groups) > 0, l.all.classes)
	if err != nil {
		rl.program = &program{} // it begins with nothing
	}
}

// expression returns the whole pattern of rl. The parser takes digits for [^\W\d] but not for [^\d\W].
func (rl *rule) expression(l *Lexer) string {
	pattern := "(?:" + strings.ReplaceAll(rl.pattern, `[^\W\d]`, `[^\d\W]`) + ")"
	if l.flags != "" {
		pattern = "(?" + l.flags + ")" + pattern
	}
	return pattern
}
