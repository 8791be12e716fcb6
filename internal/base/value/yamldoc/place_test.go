package yamldoc_test

import (
	"fmt"
	"strings"
	"testing"

	"loki/internal/base/value/yamldoc"
)

// TestErrorAt finds the word MARK in scalars of all styles, by its offset in the text.
func TestErrorAt(t *testing.T) {
	for _, tt := range []struct{ name, src string }{
		{"plain", "k: a b MARK c"},
		{"plain_first", "k: MARK"},
		{"plain_folded", "k: a b\n  c  d\n\n  e MARK"},
		{"single", "k: 'a MARK'"},
		{"single_quote", "k: 'it''s ''MARK'''"},
		{"single_folded", "k: 'a\n  b\n\n  ''c'' MARK'"},
		{"double", `k: "a MARK"`},
		{"double_escapes", `k: "\"\\ \t\n\x41\x20\u00e9\U0001F600\_MARK"`},
		{"double_folded", "k: \"a\n  b \\\n  c\n\n  MARK\""},
		{"literal", "k: |\n  a\n   b\n\n  c MARK"},
		{"literal_header", "k: |2- # MARK is not here\n   a\n  MARK"},
		{"folded", "k: >\n  a\n  b\n\n    c\n  d MARK"},
		{"folded_strip", "k: >-\n\n  MARK"},
		{"in_flow", "k: [x, {k: 'ö MARK'}]"},
		{"in_flow_plain", "k: {when: ö MARK, to: MARK2}"},
		{"anchor", "k: &anchor 'a MARK'"},
		{"tag", "k: !!str a MARK"},
		{"second_line", "a: 1\nk:\n  - x\n  -   \"é\\u00e9 MARK\""},
		{"carriage_returns", "a: 1\r\nk: >\r\n  a\r\n  b MARK\r\n"},
		{"byte_order_mark", "\uFEFFk: a MARK"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := yamldoc.Parse("f", []byte(tt.src))
			if err != nil {
				t.Fatal(err)
			}
			n := find(doc.Root())
			if n == nil {
				t.Fatal("no text with MARK")
			}
			text, _ := n.Str()
			got := n.ErrorAt(strings.Index(text, "MARK"), "x").Pos
			plain := strings.TrimPrefix(strings.ReplaceAll(tt.src, "\r", ""), "\uFEFF")
			want := strings.LastIndex(plain, "MARK")
			if tt.name == "in_flow_plain" {
				want = strings.Index(plain, "MARK")
			}
			line := strings.Count(plain[:want], "\n") + 1
			column := len([]rune(plain[strings.LastIndex(plain[:want], "\n")+1:want])) + 1
			if got != (yamldoc.Pos{Line: line, Column: column}) {
				t.Errorf("at %d:%d, want %d:%d", got.Line, got.Column, line, column)
			}
			if again := yamldoc.Place([]byte(tt.src), n.Pos(), text, strings.Index(text, "MARK")); again != got {
				t.Errorf("Place says %v, want %v", again, got)
			}
		})
	}
}

// find returns the scalar that holds MARK.
func find(n *yamldoc.Node) *yamldoc.Node {
	switch n.Kind() {
	case yamldoc.Mapping:
		for e := range n.Map().All() {
			if found := find(e.Node); found != nil {
				return found
			}
		}
	case yamldoc.List:
		items, _ := n.List()
		for _, item := range items {
			if found := find(item); found != nil {
				return found
			}
		}
	default:
		if strings.Contains(n.Literal(), "MARK") {
			return n
		}
	}
	return nil
}

// TestErrorAtEnd is about the place behind the last character.
func TestErrorAtEnd(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"k: a &&", "1:8"},
		{"k: 'a &&'", "1:9"},
		{"k: 'a && '", "1:9"},
		{`k: "a"`, "1:6"},
		{"k: ''", "1:5"},
		{"k: |\n  a &&\nl: 1", "2:7"},
		{"k: >\n  a\n  &&\n\nl: 1", "3:5"},
	} {
		doc, err := yamldoc.Parse("f", []byte(tt.src))
		if err != nil {
			t.Fatal(err)
		}
		n := doc.Root().Map().Get("k")
		text, _ := n.Str()
		for _, offset := range []int{len(text), len(text) + 10} {
			if p := n.ErrorAt(offset, "x").Pos; fmt.Sprintf("%d:%d", p.Line, p.Column) != tt.want {
				t.Errorf("%q: at %d:%d, want %s", tt.src, p.Line, p.Column, tt.want)
			}
		}
	}
}
