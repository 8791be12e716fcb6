package text_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/uax29/v2/graphemes"

	"loki/internal/base/text"
)

func Example() {
	reply := "All \x1b[31mtests\x1b[0m\npass."
	fmt.Println(text.OneLine(reply, 80))
	fmt.Println(text.OneLine(reply, 10))
	fmt.Println(text.Visible(reply))
	fmt.Println(text.Count(2, "directory"))
	// Output:
	// All tests pass.
	// All tests…
	// All \u001b[31mtests\u001b[0m
	// pass.
	// 2 directories
}

const family = "👩‍👩‍👧" // one grapheme of 5 characters, 18 bytes and 2 columns

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cut   func(string, int) string
		in    string
		limit int
		want  string
	}{
		{"bytes", text.Cut, "abcdef", 5, "ab…"},
		{"bytes_fit", text.Cut, "abcdef", 6, "abcdef"},
		{"bytes_of_a_character", text.Cut, "äöü", 5, "ä…"},
		{"bytes_of_a_grapheme", text.Cut, "a" + family + "b", 19, "a…"},
		{"bytes_no_mark", text.Cut, "abcdef", 2, ""},
		{"bytes_mark_only", text.Cut, "abcdef", 3, "…"},
		{"bytes_crlf", text.Cut, "a\r\nbcdef", 5, "a…"},
		{"bytes_broken", text.Cut, "a\xff\xffbcdef", 5, "a\xff…"},
		{"runes", text.CutRunes, "äöüß", 3, "äö…"},
		{"runes_fit", text.CutRunes, "äöüß", 4, "äöüß"},
		{"runes_of_a_grapheme", text.CutRunes, "ab" + family, 5, "ab…"},
		{"runes_accent", text.CutRunes, "abe\u0301x", 4, "ab…"},
		{"runes_mark_only", text.CutRunes, "ab", 1, "…"},
		{"runes_none", text.CutRunes, "ab", 0, ""},
		{"columns", text.CutColumns, "日本語", 5, "日本…"},
		{"columns_fit", text.CutColumns, "日本語", 6, "日本語"},
		{"columns_style", text.CutColumns, "\x1b[1mabc\x1b[0m", 2, "\x1b[1ma…\x1b[0m"},
		{"columns_none", text.CutColumns, "ab", 0, ""},
		{"line", text.OneLine, "  a \n\t b\u2028c  ", 5, "a b c"},
		{"line_cut", text.OneLine, "abcdef", 4, "abc…"},
		{"line_cut_counts_characters", text.OneLine, "äöüßé", 4, "äöü…"},
		{"line_cut_before_a_blank", text.OneLine, "abc def", 4, "abc…"},
		{"line_cut_drops_a_blank_at_the_end", text.OneLine, "abc def", 5, "abc…"},
		{"line_blank_at_the_end_is_no_text", text.OneLine, "abc  ", 3, "abc"},
		{"line_colors", text.OneLine, "\x1b[31mred\x1b[0m", 3, "red"},
		{"line_title", text.OneLine, "a\x1b]0;title\x07b", 10, "ab"},
		{"line_c1", text.OneLine, "a\u009b31mb", 10, "a31mb"},
		{"line_none", text.OneLine, "a", 0, ""},
		{"empty", text.OneLine, "", 5, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.cut(tt.in, tt.limit); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		in         string
		limit      int
		head, tail string
	}{
		{"abcdef", 3, "ab", "f"},
		{"abcdef", 0, "", ""},
		{"aäüb", 4, "a", "b"},
		{family + "abc" + family, 22, "", ""},
		{family + "abc" + family, 38, family + "a", "c" + family},
	} {
		if head, tail := text.Ends(tt.in, tt.limit); head != tt.head || tail != tt.tail {
			t.Errorf("the ends of %q are %q and %q", tt.in, head, tail)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\nc":                     "a\tb\nc",
		"a\x1b[2Jb\x07c\rd":           "abcd",
		"\x1b]8;;http://a\x1b\\link":  "link",
		"a\u202eb\u2066c\u009bd\xffe": "abcd\uFFFDe",
	} {
		if got := text.Clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"ls\n\t-l é 漢 🙂":   "ls\n\t-l é 漢 🙂",
		"a\x1b[2Kb\rc\x7f": `a\u001b[2Kb\u000dc\u007f`,
		"a\u202eb\u200b":   `a\u202eb\u200b`,
		"\U000e0041\xff":   `\U000e0041\ufffd`,
		"a\u00a0\u2800\u3000\u3164\u115f\u034fb \u2764\ufe0f": "a\\u00a0\\u2800\\u3000\\u3164\\u115f\\u034fb \u2764\ufe0f",
	} {
		if got := text.Visible(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 nodes": text.Count(0, "node"), "1 node": text.Count(1, "node"), "2 nodes": text.Count(2, "node"),
		"1 directory": text.Count(1, "directory"), "3 directories": text.Count(3, "directory"), "3 keys": text.Count(3, "key"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWord(t *testing.T) {
	for in, want := range map[string]string{"": "''", "a/b-c.d": "a/b-c.d", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "~": "'~'", "é": "'é'"} {
		if got := text.Word(in); got != want {
			t.Errorf("%q became %s, want %s", in, got, want)
		}
	}
}

// borders returns the places where a text may be cut: where graphemes begin and end, and
// anywhere in broken UTF-8, which has none.
func borders(s string) []int {
	places := []int{0}
	if !utf8.ValidString(s) {
		for i := range s {
			places = append(places, i)
		}
		return append(places, len(s))
	}
	for g := graphemes.FromString(s); g.Next(); {
		places = append(places, g.End())
	}
	return places
}

// FuzzCut checks that no limit is exceeded and no grapheme is cut.
func FuzzCut(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "a\r\nb", "中文字符", "👩‍👩‍👧👨‍👩‍👦", "e\u0301\u0301e\u0301", "\xff\xfe\xf0\x9f", "🇩🇪🇫🇷🇮🇹", "…………", "\x1b[31mred\x1b[0m", "하ᅡᆫ글", "क्षि",
	} {
		f.Add(seed, 3)
		f.Add(seed+seed+seed, 11)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(0, limit%100)
		places := borders(s)
		check := func(what, got string, size func(string) int) {
			switch head, cut := strings.CutSuffix(got, text.Mark); {
			case size(got) > limit:
				t.Errorf("%s(%q, %d) is too long: %q", what, s, limit, got)
			case got == s || got == "" && limit < len(text.Mark):
			case !cut || !strings.HasPrefix(s, head) || !slices.Contains(places, len(head)):
				t.Errorf("%s(%q, %d) = %q", what, s, limit, got)
			}
		}
		check("Cut", text.Cut(s, limit), func(s string) int { return len(s) })
		check("CutRunes", text.CutRunes(s, limit), utf8.RuneCountInString)
		if got := text.CutColumns(text.Clean(s), limit); ansi.StringWidth(got) > limit {
			t.Errorf("CutColumns(%q, %d) = %q", s, limit, got)
		}
		if len(s) > limit {
			head, tail := text.Ends(s, limit)
			if len(head)+len(tail) > limit || !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) ||
				!slices.Contains(places, len(head)) || !slices.Contains(places, len(s)-len(tail)) {
				t.Errorf("Ends(%q, %d) = %q, %q", s, limit, head, tail)
			}
		}
	})
}

// FuzzTerminal checks that no function lets through what a terminal obeys.
func FuzzTerminal(f *testing.F) {
	for _, seed := range []string{
		"two\nlines\tand a tab", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07x", "\x1b]8;;http://a\x1b\\link", "\x1bP1$r\x1b\\", "\x1b", "\x1b[",
		"\u009b31m", "\x9b31m", "\xc2\x1b[31m\x9b", "a\rb", "\u202eabc", "\x1b\x1b[[2J2J", strings.Repeat("x", 300),
	} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(0, limit%200)
		for what, got := range map[string]string{"Clean": text.Clean(s), "Printable": text.Printable(s), "Visible": text.Visible(s), "OneLine": text.OneLine(s, limit)} {
			if strings.ContainsFunc(got, text.Hidden) || !utf8.ValidString(got) {
				t.Errorf("%s(%q) = %q", what, s, got)
			}
		}
		if line := text.OneLine(s, limit); strings.ContainsFunc(line, unicode.IsControl) || utf8.RuneCountInString(line) > limit {
			t.Errorf("OneLine(%q, %d) = %q", s, limit, line)
		}
	})
}
