package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"loki/internal/base/text"
)

func TestPrintable(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a\tb\nc", "a\tb\nc"},
		{"escape", "\x1b[31mred\x1b[0m", "␛[31mred␛[0m"},
		{"title", "\x1b]0;title\x07", "␛]0;title␇"},
		{"c1", "a\u009b31mb", "a\uFFFD31mb"},
		{"raw_c1", "a\x9b31mb", "a\uFFFD31mb"},
		{"bidi", "if\u202e x", "if\uFFFD x"},
		{"isolate", "\u2066x\u2069", "\uFFFDx\uFFFD"},
		{"direction_mark", "a\u200fb", "a\u200fb"},
		{"delete", "\x7f\x00", "␡␀"},
		{"crlf", "a\r\nb\rc\r", "a\nb\nc\n"},
		{"broken", "\xe2\x82", "\uFFFD\uFFFD"},
		{"wide", "日本 👩‍👩‍👧", "日本 👩‍👩‍👧"},
		{"replacement", "\uFFFD", "\uFFFD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := text.Printable(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPrintableColored(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb":                "a\tb",
		"\x1b[31mred\x1b[0m":  "\x1b[31mred\x1b[0m\x1b[0m",
		"a \x1b[38;5;1;4:3mb": "a \x1b[38;5;1;4:3mb\x1b[0m",
		"\x1b[2J\x1b[Hx\x1b]0;t\a\x1b[?1049h\x1b[3A": "␛[2J␛[Hx␛]0;t␇␛[?1049h␛[3A",
		"\x1b[1;2":            "␛[1;2",
		"\x1b[":               "␛[",
		"\x1b\x1b[mx\x1b[>4m": "␛\x1b[mx␛[>4m\x1b[0m",
	} {
		if got := text.PrintableColored(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// FuzzFilter checks that pieces give what the whole gives, and that nothing is left that
// a terminal obeys.
func FuzzFilter(f *testing.F) {
	f.Add("a\r\nb\x1b[31m", 3)
	f.Add("日本\xe2\x82\r", 1)
	f.Add("\xf0\x9f\x91\xa9\u202e\r\r\n", 2)
	f.Add("\xf0\x9f\xf0\x9fx", 1)
	f.Fuzz(func(t *testing.T, s string, size int) {
		if size < 1 {
			size = 1
		}
		want := text.Printable(s)
		var filter text.Filter
		var got []byte
		for rest := s; rest != ""; {
			n := min(size, len(rest))
			got = filter.Append(got, []byte(rest[:n]))
			rest = rest[n:]
		}
		got = filter.Flush(got)
		if string(got) != want {
			t.Errorf("in pieces of %d: %q, want %q", size, got, want)
		}
		if !utf8.ValidString(want) || strings.ContainsFunc(want, func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f
		}) {
			t.Errorf("%q is not safe", want)
		}
	})
}

func TestHidden(t *testing.T) {
	t.Parallel()
	for _, r := range "\x00\x1b\r\x7f\u0080\u009f\u202a\u202e\u2066\u2069" {
		if !text.Hidden(r) {
			t.Errorf("%U is taken for one that is shown", r)
		}
	}
	for _, r := range "\n\t a~\u00a0é\u2028漢\ufffd" {
		if text.Hidden(r) {
			t.Errorf("%U is taken for one that is not shown", r)
		}
	}
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"/docs/Übersicht 日本.md": "/docs/Übersicht 日本.md",
		"a\nb\tc\r\x1b[2Jd":     `a\nb\tc\u000d\u001b[2Jd`,
		"x\xe9.md":              `x\xe9.md`,
		"x\xe8.md":              `x\xe8.md`,
		"x\ufffd.md":            `x\ufffd.md`,
		"a\u2028b\u202e":        `a\u2028b\u202e`,
		"":                      "",
	} {
		if got := text.Name(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
