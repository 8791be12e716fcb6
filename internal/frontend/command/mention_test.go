package command

import (
	"slices"
	"strings"
	"testing"
)

func TestMentions(t *testing.T) {
	files := []string{"a.txt", "my file.txt", "dir/", "b", "ü.md"}
	for _, tt := range []struct{ name, prompt, text, sources string }{
		{name: "none", prompt: "hello", text: "hello"},
		{name: "start", prompt: "@a.txt", text: "@a.txt", sources: "a.txt"},
		{name: "within", prompt: "see @a.txt and @dir/", text: "see @a.txt and @dir/", sources: "a.txt|dir/"},
		{name: "punctuation", prompt: "is @a.txt, or (not) @b?", text: "is @a.txt, or (not) @b?", sources: "a.txt|b"},
		{name: "quoted", prompt: `sum up @"my file.txt".`, text: `sum up @"my file.txt".`, sources: "my file.txt"},
		{name: "not_there", prompt: "ask @alice", text: "ask @alice"},
		{name: "mail", prompt: "me@b", text: "me@b"},
		{name: "escaped", prompt: "@@a.txt and @@", text: "@a.txt and @"},
		{name: "escaped_mail", prompt: "x@@b", text: "x@@b"},
		{name: "alone", prompt: "@ a.txt", text: "@ a.txt"},
		{name: "lines", prompt: "one\n@a.txt\ntwo", text: "one\n@a.txt\ntwo", sources: "a.txt"},
		{name: "longer_characters", prompt: "ä @ü.md", text: "ä @ü.md", sources: "ü.md"},
		{name: "open_quote", prompt: `@"my file.txt`, text: `@"my file.txt`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, sources := mentions(tt.prompt, func(path string) bool { return slices.Contains(files, path) })
			if text != tt.text || strings.Join(sources, "|") != tt.sources {
				t.Errorf("got %q with %q, want %q with %q", text, sources, tt.text, tt.sources)
			}
		})
	}
}

func FuzzMentions(f *testing.F) {
	for _, s := range []string{"", "@", "@@", "@a", `@"a b"`, "a@b @c. @@d", "\xff@\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		text, sources := mentions(prompt, func(path string) bool { return len(path)%2 == 0 })
		if len(text) > len(prompt) || !strings.Contains(prompt, "@@") && text != prompt {
			t.Errorf("%q became %q", prompt, text)
		}
		for _, s := range sources {
			if !strings.Contains(prompt, s) {
				t.Errorf("%q names %q", prompt, s)
			}
		}
	})
}
