package command

import (
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		windows    bool
		words      []string
		text       string
	}{
		{name: "empty"},
		{name: "blanks", args: " \t\r\n "},
		{name: "end_mark_alone", args: "file.txt --", words: []string{"file.txt"}},
		{name: "text", args: "file.txt -- hello", words: []string{"file.txt"}, text: "hello"},
		{name: "text_keeps_blanks", args: "file.txt --  hello ", words: []string{"file.txt"}, text: " hello "},
		{name: "text_tab", args: "file.txt -- \thello", words: []string{"file.txt"}, text: "\thello"},
		{name: "text_lf", args: "file.txt --\nhello", words: []string{"file.txt"}, text: "hello"},
		{name: "text_crlf", args: "file.txt --\r\nhello", words: []string{"file.txt"}, text: "hello"},
		{name: "text_cr", args: "file.txt --\rhello", words: []string{"file.txt"}, text: "hello"},
		{name: "text_has_end_mark", args: "a -- b -- c", words: []string{"a"}, text: "b -- c"},
		{name: "only_text", args: "-- hello", text: "hello"},
		{name: "longer_dashes", args: "--- --x x--", words: []string{"---", "--x", "x--"}},
		{name: "quotes", args: `file1.txt 'file2.txt' "file3.txt"`, words: []string{"file1.txt", "file2.txt", "file3.txt"}},
		{name: "blanks_in_words", args: `./file1.txt 'file1 - Copy.txt' file\ 2.txt`, words: []string{"./file1.txt", "file1 - Copy.txt", "file 2.txt"}},
		{name: "backquotes_stay", args: "`git diff` -- why", words: []string{"`git diff`"}, text: "why"},
		{name: "quoted_end_mark", args: `'--' b`, words: []string{"--", "b"}},
		{name: "quotes_within", args: `k="a b" x'y z`, words: []string{`k="a b"`, `x'y z`}},
		{name: "other_quotes_within", args: `"it's"`, words: []string{"it's"}},
		{name: "unterminated", args: `'a b -- c`, words: []string{`'a b -- c`}},
		{name: "empty_word", args: `'' a`, words: []string{"", "a"}},
		{name: "backslashes", args: `a\\b c\d e\`, words: []string{`a\b`, "cd", "e"}},
		{name: "backslash_in_quotes", args: `'a\b'`, words: []string{`a\b`}},
		{name: "escaped_newline", args: "a\\\nb", words: []string{"a\nb"}},
		{name: "longer_characters", args: "größe.txt '日本 語.md' -- für dich", words: []string{"größe.txt", "日本 語.md"}, text: "für dich"},
		{name: "windows", args: `.\file.txt C:\dir\file.txt`, windows: true, words: []string{`.\file.txt`, `C:\dir\file.txt`}},
		{name: "windows_blank", args: `a\ b`, windows: true, words: []string{`a\`, "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			words, text := Words(tt.args, tt.windows)
			if !slices.Equal(words, tt.words) || text != tt.text {
				t.Errorf("got %q and %q, want %q and %q", words, text, tt.words, tt.text)
			}
		})
	}
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{"", "file.txt -- hello", `a\ b 'c d' "e`, "größe -- für", "`x` --\r\n\ty", `\`, "'--' -- --"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, args string, windows bool) {
		words, text := Words(args, windows)
		if !strings.HasSuffix(args, text) {
			t.Errorf("the text %q is not the end of %q", text, args)
		}
		n := len(text)
		for _, w := range words {
			n += len(w)
		}
		if n > len(args) {
			t.Errorf("%q has %d bytes, what it was split into %d", args, len(args), n)
		}
		// A word that is quoted is the same word again.
		for _, w := range words {
			if strings.Contains(w, "'") || w != strings.TrimSpace(w) && w == "" {
				continue
			}
			if again, _ := Words("'"+w+"'", windows); len(again) != 1 || again[0] != w {
				t.Errorf("%q in quotes is %q", w, again)
			}
		}
	})
}
