package render

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestOneLine(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		limit    int
		want     string
	}{
		{name: "short", in: "a b", limit: 3, want: "a b"},
		{name: "blanks_are_one", in: "  a \n\t b\u2028c  ", limit: 10, want: "a b c"},
		{name: "cut", in: "abcdef", limit: 3, want: "abc…"},
		{name: "cut_counts_characters", in: "äöüß", limit: 3, want: "äöü…"},
		{name: "cut_before_a_blank", in: "abc def", limit: 3, want: "abc…"},
		{name: "cut_drops_a_blank_at_the_end", in: "abc def", limit: 4, want: "abc…"},
		{name: "blank_at_the_end_is_no_text", in: "abc  ", limit: 3, want: "abc"},
		{name: "colours", in: "\x1b[31mred\x1b[0m", limit: 10, want: "red"},
		{name: "title", in: "a\x1b]0;title\x07b", limit: 10, want: "ab"},
		{name: "c1", in: "a\u009b31mb", limit: 10, want: "a31mb"},
		{name: "empty", in: "", limit: 5, want: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := oneLine(tt.in, tt.limit); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDurations(t *testing.T) {
	for _, tt := range []struct {
		d           time.Duration
		took, going string
	}{
		{0, "0ms", "0.0s"},
		{250 * time.Millisecond, "250ms", "0.2s"},
		{999999 * time.Microsecond, "999ms", "0.9s"},
		{time.Second, "1.00s", "1.0s"},
		{1400 * time.Millisecond, "1.40s", "1.4s"},
		{59990 * time.Millisecond, "59.99s", "59.9s"},
		{65 * time.Second, "65.00s", "1m05s"},
		{2*time.Hour + 3*time.Minute + 4*time.Second, "7384.00s", "2h03m"},
	} {
		if got := took(tt.d); got != tt.took {
			t.Errorf("took(%v) = %s, want %s", tt.d, got, tt.took)
		}
		if got := running(tt.d); got != tt.going {
			t.Errorf("running(%v) = %s, want %s", tt.d, got, tt.going)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 nodes", 1: "1 node", 12: "12 nodes", 999: "999 nodes", 1000: "1,000 nodes", 1234567: "1,234,567 nodes"} {
		if got := count(n, "node"); got != want {
			t.Errorf("count(%d) = %s, want %s", n, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "two\nlines\tand a tab", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07x", "\x1b]8;;http://a\x1b\\link", "\x1bP1$r\x1b\\", "\x1b", "\x1b[",
		"中文字符", "👩‍👩‍👧", "e\u0301", "\u009b31m", "\xff\xfe", "a\rb", "\u202eabc", strings.Repeat("x", 300),
	} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = max(0, n%200)
		for _, r := range safe(text) {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Errorf("safe lets %U through", r)
			}
		}
		line := oneLine(text, n)
		if strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("oneLine lets a control character through: %q", line)
		}
		if got := utf8.RuneCountInString(line); got > n+1 {
			t.Errorf("oneLine(%q, %d) has %d characters", text, n, got)
		}
		if cut := clip(line, n); width(cut) > n {
			t.Errorf("clip(%q, %d) takes %d columns", line, n, width(cut))
		}
		if part := prefix(text, n); len(part) > n || !strings.HasPrefix(text, part) {
			t.Errorf("prefix(%q, %d) = %q", text, n, part)
		}
	})
}
