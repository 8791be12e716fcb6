package plan

import (
	"reflect"
	"strings"
	"testing"
)

func TestMarkdown(t *testing.T) {
	p := Plan{
		Title: "Rename the flag", Summary: "Why:\n- it is old\n1. and\n# new\n\\x",
		Steps: []Step{{Text: "Change flags.go", Files: []string{"flags.go", "a`b.go"}, Commands: []string{"go test ./..."}}, {Text: "1. Write docs"}},
		Open:  []string{"Keep the old name?"},
	}
	const want = `# Rename the flag

Why:
\- it is old
\1. and
\# new
\\x

1. Change flags.go
   - file: ` + "`flags.go`" + `
   - file: ` + "`` a`b.go ``" + `
   - command: ` + "`go test ./...`" + `
2. 1. Write docs

## Open questions

- Keep the old name?
`
	if got := p.Markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if back, err := Parse(want); err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("read back as %+v, %v", back, err)
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, in, want, err string }{
		{name: "bullets", in: "- a\n- b\n", want: "a|b"},
		{name: "no_title_no_blank", in: "1) a\n2) b", want: "a|b"},
		{name: "wrapped", in: "# T\n1. a\n   and more\n\n2. b", want: "a and more|b"},
		{name: "detail_without_a_name", in: "# T\n\n## Steps\n\n- a\n  - first this\n", want: "a; first this"},
		{name: "after_words_of_the_model", in: "I look around first.\n# T\n\nWhy.\n\n1. a\n", want: "a"},
		{name: "windows", in: "# T\r\n\r\n1. a\r\n", want: "a"},
		{name: "nothing", in: "  \n", err: "no steps"},
		{name: "prose", in: "Just do it.", err: "no steps"},
		{name: "heading", in: "# T\n1. a\n## Risks\n- b", err: `line 3: the heading "Risks" has no meaning here`},
		{name: "empty_step", in: "# T\n1.\n2. b", err: "step 1 has no text"},
		{name: "too_many", in: strings.Repeat("- a\n", 51), err: "the plan has 51 steps; 50 are possible"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Parse(tt.in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v", err)
				}
				return
			}
			var texts []string
			for _, s := range p.Steps {
				texts = append(texts, s.Text)
			}
			if got := strings.Join(texts, "|"); err != nil || got != tt.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// FuzzParse: what can be read is written so that it is read as the same plan.
func FuzzParse(f *testing.F) {
	f.Add("# T\n\nWhy\n\n1. a\n   - file: `x`\n   - command: `` y` ``\n\n## Open questions\n\n- z\n")
	f.Add("- a\n  - b\n\\- c")
	f.Add("#\n\\\\1. \n+ x\n    * command: ``")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		if p.Title == "" {
			p.Title = "T"
		}
		back, err := Parse(p.Markdown())
		if err != nil || !reflect.DeepEqual(back, p) {
			t.Errorf("%q is read as\n%#v, and again as\n%#v, %v", text, p, back, err)
		}
	})
}
