package search

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzSnippet(f *testing.F) {
	for _, seed := range [][2]string{
		{"the garden in winter", `gard "in winter"`}, {"我喜欢花园", "花园"}, {"gpt-4o \xff\xfe", "-x \"gpt 4o"}, {"e\u0301 ǅ ß", "É ss"}, {strings.Repeat("a ", 500) + "b", "b a"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, body, query string) {
		terms := parse(query)
		for _, term := range terms {
			for _, w := range term.words {
				if w == "" || strings.ContainsAny(w, "\" \x00*") {
					t.Fatalf("the word %q", w)
				}
			}
		}
		if e := expression(terms); strings.Count(e, `"`)%2 != 0 {
			t.Errorf("the expression %s", e)
		}
		end := 0
		eachWord(body, func(start, to int, w string) {
			if start < end || to <= start || w == "" {
				t.Fatalf("%q at %d to %d, behind %d", w, start, to, end)
			}
			end = to
		})
		s := snippet(body, requiredTerms(terms))
		last, n := 0, utf8.RuneCountInString(s.Text)
		for _, m := range s.Marks {
			if m[0] < last || m[1] <= m[0] || m[1] > n {
				t.Fatalf("marks %v of %d characters", s.Marks, n)
			}
			last = m[1]
		}
	})
}
