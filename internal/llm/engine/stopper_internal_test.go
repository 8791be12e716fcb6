package engine

import (
	"strings"
	"testing"
)

func TestStopper(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stop   []string
		pieces []string
		want   string
		found  bool
	}{
		{"none", nil, []string{"a", "b"}, "ab", false},
		{"in_one_piece", []string{"END"}, []string{"one END two"}, "one ", true},
		{"over_pieces", []string{"END"}, []string{"one E", "N", "D two"}, "one ", true},
		{"only_the_beginning", []string{"END"}, []string{"one EN", "ough"}, "one ENough", false},
		{"beginning_at_the_end", []string{"END"}, []string{"one EN"}, "one EN", false},
		{"first_of_several", []string{"two", "one"}, []string{"zero one two"}, "zero ", true},
		{"overlap", []string{"aab"}, []string{"aa", "ab", "c"}, "a", true},
		{"at_once", []string{"\n"}, []string{"\nx"}, "", true},
		{"longer_one_begins_first", []string{"bc", "abcd"}, []string{"xab", "cd"}, "xa", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stopper{texts: tt.stop}
			var got strings.Builder
			for _, p := range tt.pieces {
				if !s.stopped {
					got.WriteString(s.take(p))
				}
			}
			got.WriteString(s.rest())
			if got.String() != tt.want || s.stopped != tt.found {
				t.Errorf("got %q, %v, want %q, %v", got.String(), s.stopped, tt.want, tt.found)
			}
		})
	}
}

func FuzzStopper(f *testing.F) {
	f.Add("one END two", "END", "wo", uint8(3))
	f.Add("aaab", "aab", "ab", uint8(1))
	f.Fuzz(func(t *testing.T, text, a, b string, size uint8) {
		if a == "" || b == "" || size == 0 {
			return
		}
		s := stopper{texts: []string{a, b}}
		got := ""
		for rest := text; rest != "" && !s.stopped; {
			n := min(int(size), len(rest))
			got += s.take(rest[:n])
			rest = rest[n:]
		}
		got += s.rest()
		if !strings.HasPrefix(text, got) || strings.Contains(got, a) || strings.Contains(got, b) {
			t.Fatalf("%q of %q, which stops at %q and %q", got, text, a, b)
		}
		if found := strings.Contains(text, a) || strings.Contains(text, b); found != s.stopped || !found && got != text {
			t.Fatalf("%q of %q, stopped %v", got, text, s.stopped)
		}
	})
}
