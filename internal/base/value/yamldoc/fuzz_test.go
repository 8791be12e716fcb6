package yamldoc_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// FuzzParse checks that no text makes the package panic, and that what it reports
// about a document it accepts stays inside that document.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		everything,
		"a: &x {k: [1, 2]}\nb: *x\n<<: *x",
		"- |2+\n    x\n\n- >-\n  y\n- 'it''s'\n- \"\\u00e9\\\n  z\"",
		"? a\n: - b\n  - ? c\n    : d",
		"%YAML 1.2\n---\n!!map {!!str 1: !!int \"2\", ~: .inf}\n...",
		"a: {{x}}", "a:\n\tb: 1", "\"", "[", "&a [*a]", "!x", "a: b: c", "\r\n\uFEFF# c\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		doc, err := yamldoc.Parse("f", []byte(src))
		if err != nil {
			if len(yamldoc.AsProblems(err)) == 0 {
				t.Fatalf("an error without a problem: %v", err)
			}
		} else {
			visit(doc.Root())
		}
		lines := strings.Count(src, "\n") + strings.Count(src, "\r") + 1
		problems := yamldoc.AsProblems(err)
		if doc != nil {
			problems = append(problems, append(doc.Errors(), doc.Warnings()...)...)
		}
		for _, p := range problems {
			if p.Pos.Line < 0 || p.Pos.Line > lines {
				t.Errorf("%v is outside the %d lines", p, lines)
			}
			_ = p.Excerpt()
		}
	})
}

// visit reads every node as everything.
func visit(n *yamldoc.Node) {
	n.Text()
	n.Str()
	n.Bool()
	n.Int(0, 10)
	n.Float()
	n.Seconds()
	n.Texts()
	n.Value()
	n.ErrorAt(len(n.Literal())/2, "x")
	n.ErrorAt(len(n.Literal()), "x")
	if m := n.Map(); m != nil {
		var (
			s string
			d time.Duration
			v value.Value
		)
		m.Require("a")
		m.Text("b", &s)
		m.Seconds("c", &d)
		m.Value("k", &v)
		m.Done()
		for e := range m.All() {
			visit(e.Node)
		}
	}
	if n.Kind() == yamldoc.List {
		items, _ := n.List()
		for _, item := range items {
			visit(item)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	var src strings.Builder
	src.WriteString("name: x\nstart: n0\nnodes:\n")
	for i := range 2000 {
		fmt.Fprintf(&src, "  n%d:\n    type: llm\n    prompt: \"hello {{x}}\"\n    next: n%d\n", i, i+1)
	}
	text := []byte(src.String())
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := yamldoc.Parse("f", text); err != nil {
			b.Fatal(err)
		}
	}
}
