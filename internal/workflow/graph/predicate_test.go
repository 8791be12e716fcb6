package graph_test

import (
	"strings"
	"testing"

	"loki/internal/workflow/graph"
)

func TestPredicate(t *testing.T) {
	for _, tt := range []struct {
		source string
		holds  string // the lengths from 0 to 4 for which it holds
	}{
		{"len(input) > 2", "34"},
		{"len(input)>=2", "234"},
		{"  len(input)   <  2  ", "01"},
		{"len(input) <= 2", "012"},
		{"len(input)\t==\t2", "2"},
		{"len(input) == 002", "2"},
		{"len(input) > 18446744073709551615", ""},
	} {
		t.Run(strings.ReplaceAll(tt.source, " ", "_"), func(t *testing.T) {
			p, err := graph.ParsePredicate(tt.source)
			if err != nil {
				t.Fatal(err)
			}
			var holds strings.Builder
			for n := range 5 {
				if p.Holds(strings.Repeat("ü", n)) { // characters, not bytes
					holds.WriteByte("01234"[n])
				}
			}
			if holds.String() != tt.holds {
				t.Errorf("holds for %q, want %q", holds.String(), tt.holds)
			}
		})
	}
}

func TestPredicateSyntax(t *testing.T) {
	for _, source := range []string{
		"", "len(input)", "len(input) >", "len(input) 3", "len(input) != 3", "len(input) = 3", "len(input) > -1", "len(input) > +1",
		"len(input) > 1.5", "len(input) > 1 0", "len( input ) > 1", "len (input) > 1", "len(output) > 1", "size(input) > 1", "LEN(input) > 1",
		"len(input) > > 1", "len(input) >= = 1", "len(input) > 18446744073709551616", "x len(input) > 1", "len(input) > 1 x", "len(input) > 0x1", "len(input) > 1_0",
	} {
		if p, err := graph.ParsePredicate(source); err == nil {
			t.Errorf("%q was read as %v", source, p)
		} else if !strings.Contains(err.Error(), "len(input)") {
			t.Errorf("%q: %v", source, err)
		}
	}
	if (graph.Predicate{}).Holds("") {
		t.Error("the zero predicate holds")
	}
	if p, err := graph.ParsePredicate(" len(input)>=3"); err != nil || p.String() != "len(input) >= 3" {
		t.Error(p, err)
	}
}

func FuzzPredicate(f *testing.F) {
	for _, seed := range []string{"len(input) > 0", "len(input)==10", "len(input) >= 99999999999999999999", " len(input)\n<\n1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := graph.ParsePredicate(source)
		if err != nil {
			return
		}
		again, err := graph.ParsePredicate(p.String())
		if err != nil || again != p {
			t.Errorf("%q is %v, which reads as %v, %v", source, p, again, err)
		}
	})
}
