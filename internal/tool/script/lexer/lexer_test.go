package lexer_test

import (
	"testing"

	"loki/internal/tool/script/lexer"
)

func TestSource(t *testing.T) {
	for _, tt := range []struct{ name, in, want, err string }{
		{"empty", "", "", ""},
		{"line_ends", "a\r\nb\rc\n\rd\r\r\n", "a\nb\nc\n\nd\n\n", ""},
		{"byte_order_mark", "\uFEFFa\uFEFF", "a\uFEFF", ""},
		{"not_utf8", "\xff", "\xff", ""},
		{"nul", "a\r\nb\n\x00", "", "line 3: the script has a NUL byte"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := lexer.Source([]byte(tt.in))
			if got != tt.want || message(err) != tt.err {
				t.Errorf("got %q, %q; want %q, %q", got, message(err), tt.want, tt.err)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestBrackets(t *testing.T) {
	const none = -1
	for _, tt := range []struct {
		name, source string // one token per character and line
		openers      []int
		open         int
		err          string
	}{
		{"no_bracket", "+x<>", []int{none, none, none, none}, 0, ""},
		{"nested", "([{}]())", []int{none, none, none, 2, 1, none, 5, 0}, 0, ""},
		{"unmatched", "())", []int{none, 0}, 0, "line 3: unmatched )"},
		{"wrong_kind", "([+)", []int{none, none, none}, 2, "line 4: ) does not match [ of line 2"},
		{"never_closed", "{(a)[", []int{none, none, none, 1, none}, 2, "line 5: [ is never closed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b lexer.Brackets
			var failure error
			for i := range len(tt.source) {
				back, err := b.Take(tt.source[i], i, i+1)
				if err != nil {
					failure = err
					if i != len(tt.openers) {
						t.Errorf("token %d: %v", i, err)
					}
					break
				}
				if want := tt.openers[i]; want == none && back != 0 || want != none && i-back != want {
					t.Errorf("token %d: %d back; want %d", i, back, want)
				}
			}
			if b.Open() != tt.open {
				t.Errorf("%d are open, want %d", b.Open(), tt.open)
			}
			if failure == nil {
				failure = b.End()
			}
			if message(failure) != tt.err {
				t.Errorf("error %q, want %q", message(failure), tt.err)
			}
		})
	}
}
