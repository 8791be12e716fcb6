package highlight

import (
	"strings"
	"testing"

	"loki/internal/sample"
)

// missing are states that lexers name and do not have. The lexer stays where it was then.
var missing = map[string]bool{
	"SourcePawn function": true, "YANG comment": true, "PSL warn-directive": true, "Spade lifetime": true,
}

// TestRulesCompile compiles the rules of all lexers, and checks that what they need is
// there. One that cannot be compiled is passed over when a text is lexed.
func TestRulesCompile(t *testing.T) {
	rules, filtered, step := 0, 0, sample.Step(4)
	for i, file := range lexerFiles(t) {
		if i%step != 0 {
			continue
		}
		l := parseFile(t, file)
		for name, s := range l.states {
			for _, r := range s.rules {
				if r.include != "" {
					if l.states[r.include] == nil {
						t.Errorf("%s: state %s includes %s, which is not there", l.name, name, r.include)
					}
					continue
				}
				rules++
				r.prepare(l)
				if r.program.code == nil {
					t.Errorf("%s: state %s: %s cannot be compiled", l.name, name, r.pattern)
				} else if !r.program.first.empty {
					filtered++
				}
				for _, m := range r.moves {
					for _, s := range m.push {
						if l.states[s] == nil && !missing[l.name+" "+s] {
							t.Errorf("%s: state %s pushes %s, which is not there", l.name, name, s)
						}
					}
				}
			}
		}
	}
	if step == 1 && rules < 5000 || filtered < rules/2 {
		t.Errorf("%d rules, %d of which are tried only where they can match", rules, filtered)
	}
}

func TestFirstSet(t *testing.T) {
	for _, tt := range []struct{ pattern, in, out string }{
		{`abc`, "a", "bcAé"},
		{`(?i)abc`, "aA", "b"},
		{`[a-c]+x`, "abc", "dx"},
		{`a?b`, "ab", "c"},
		{`a*b|c`, "abc", "d"},
		{`(?m)^\s*#`, " \n\t\v#", "a"},
		{`(?:x|y)z`, "xy", "z"},
		{`a{0,2}b`, "ab", "c"},
		{`.x`, "abcé", "\n"},
		{`\bfoo`, "f", "o"},
		{`(?=b)a`, "a", "b"},
		{`(?<!x)a`, "a", "b"},
		{`[^\d\W]`, "ab", "0-"},
	} {
		p, err := compile(tt.pattern, false, classes{})
		if err != nil {
			t.Fatal(err)
		}
		if p.first.empty {
			t.Errorf("%s may match nothing", tt.pattern)
		}
		for _, c := range tt.in {
			if !mayBegin(p, string(c)[0]) {
				t.Errorf("%s cannot begin with %q", tt.pattern, c)
			}
		}
		for _, c := range tt.out {
			if mayBegin(p, string(c)[0]) {
				t.Errorf("%s can begin with %q", tt.pattern, c)
			}
		}
	}
	for _, pattern := range []string{`a*`, `(?=a)`, `a|`, `(a)?\1`} {
		if p, err := compile(pattern, false, classes{}); err != nil || !p.first.empty {
			t.Errorf("%s may match nothing", pattern)
		}
	}
}

func TestParseErrors(t *testing.T) {
	const head = "<lexer><config><name>x</name></config><rules>"
	for _, tt := range []struct{ name, in, want string }{
		{"no_xml", "<lexer", "lexer"},
		{"no_root", head + "</rules></lexer>", "no state root"},
		{"unknown_token", head + `<state name="root"><rule pattern="a"><token type="Foo"/></rule></state></rules></lexer>`, `unknown token type "Foo"`},
		{"unknown_element", head + `<state name="root"><rule pattern="a"><foo/></rule></state></rules></lexer>`, "unknown element <foo>"},
		{"depth", head + `<state name="root"><rule pattern="a"><pop depth="x"/></rule></state></rules></lexer>`, "not a number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parse([]byte(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestCircles lexes with rules that match nothing for ever.
func TestCircles(t *testing.T) {
	l, err := parse([]byte(`<lexer><config><name>x</name></config><rules><state name="root"><rule pattern=""><push state="a"/></rule></state>
		<state name="a"><rule pattern=""><push/></rule></state></rules></lexer>`))
	if err != nil {
		t.Fatal(err)
	}
	l.all = shared()
	var st State
	if spans, at := l.Lex(nil, []byte("ab\n"), 3, &st); at != 3 || len(spans) != 1 || spans[0].End != 3 {
		t.Errorf("got %v, %d", spans, at)
	}
}
