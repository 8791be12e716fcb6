package highlight

import (
	"strings"
	"testing"

	"loki/internal/base/text/sample"
)

// missing are states that lexers name and do not have. The lexer stays where it was then.
var missing = map[string]bool{
	"SourcePawn function": true, "YANG comment": true, "PSL warn-directive": true, "Spade lifetime": true,
}

// TestRulesCompile compiles the rules of all lexers, and checks that what they need is
// there. One that cannot be compiled is skipped when a text is lexed.
func TestRulesCompile(t *testing.T) {
	rules, step := 0, sample.Step(4)
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
				if _, err := l.compile(r.pattern); err != nil {
					t.Errorf("%s: state %s: %v", l.name, name, err)
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
	if rules < 5000/step {
		t.Errorf("only %d rules", rules)
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

// TestTimeLimit gives up a rule that would go back forever, and in the end the text.
func TestTimeLimit(t *testing.T) {
	l, err := parse([]byte(`<lexer><config><name>x</name></config><rules><state name="root"><rule pattern="(a*b?)*c"><token type="Keyword"/></rule></state></rules></lexer>`))
	if err != nil {
		t.Fatal(err)
	}
	l.all = shared()
	text := []byte(strings.Repeat("a", 10000) + "\n")
	st := State{spent: maxTime - 3*maxMatch}
	if spans, at := l.Lex(nil, text, len(text), &st); at != len(text) || len(spans) != 2 || spans[1] != (Span{len(text), kindText}) {
		t.Errorf("got %v, %d", spans, at)
	}
	if spans, at := l.Lex(nil, text, 5, &st); at != 5 || len(spans) != 1 || spans[0] != (Span{5, kindText}) {
		t.Errorf("after too long: %v, %d", spans, at)
	}
}

// lexerFiles returns the names of the lexers' files.
func lexerFiles(t *testing.T) []string {
	t.Helper()
	list, err := files.ReadDir("lexers")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range list {
		if name, ok := strings.CutSuffix(f.Name(), ".xml"); ok {
			names = append(names, name)
		}
	}
	return names
}

func parseFile(t *testing.T, name string) *Lexer {
	t.Helper()
	data, err := files.ReadFile("lexers/" + name + ".xml")
	if err != nil {
		t.Fatal(err)
	}
	l, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	l.all = &library{}
	return l
}
