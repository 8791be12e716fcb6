package command

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, text, command, args string }{
		{name: "dot", text: " .", command: "."},
		{name: "alone", text: " .role  ", command: ".role"},
		{name: "args", text: " .set dry_run true  ", command: ".set", args: "dry_run true"},
		{name: "lines", text: ".prompt \nabc\n", command: ".prompt", args: "abc"},
		{name: "chat", text: "hello", args: "hello"},
		{name: "empty"},
		{name: "blanks", text: "  ", args: "  "},
		{name: "dot_within", text: "so . far", args: "so . far"},
		{name: "fenced", text: " :::  hello\nthere :::\n", args: "hello\nthere "},
		{name: "fenced_command", text: ":::\n.file a -- long\ntext\n:::", command: ".file", args: "a -- long\ntext"},
		{name: "fenced_nothing", text: "::::::"},
		{name: "open_fence", text: "::: a", args: "::: a"},
		{name: "fence_within", text: "::: a ::: b :::", args: "a ::: b "},
		{name: "path", text: "./docs", args: "./docs"},
		{name: "path_above", text: "../x and y", args: "../x and y"},
		{name: "file_with_dot", text: ".env: what is it?", args: ".env: what is it?"},
		{name: "dots", text: "...", args: "..."},
		{name: "number", text: ".5 + 1", args: ".5 + 1"},
		{name: "longer_characters", text: ".größe für", command: ".größe", args: "für"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if s := parse(tt.text); s.name != tt.command || s.args != tt.args {
				t.Errorf("got %q and %q, want %q and %q", s.name, s.args, tt.command, tt.args)
			}
		})
	}
}

func TestIncomplete(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "a": false, ":::": true, "::::": true, ":::::": true, "::::::": false, " ::: a ": true, "::: a :::": false, "::: a ::: ": false,
		"a :::": false, "::": false, "::: a\n": true,
	} {
		if got := Incomplete(text); got != want {
			t.Errorf("Incomplete(%q) = %t", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", " .", ".set dry_run true", ":::\n.file a -- b\n:::", "::::::", "hello .world", "::: a", "\x00.\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := parse(text)
		if s.name != "" && !strings.HasPrefix(s.name, ".") || len(s.name)+len(s.args) > len(text) {
			t.Errorf("%q is %q with %q", text, s.name, s.args)
		}
		if s.name != "" && s.args != strings.TrimSpace(s.args) {
			t.Errorf("%q has blanks around its arguments %q", text, s.args)
		}
		if !Incomplete(text) || strings.HasPrefix(strings.TrimSpace(text), fence) {
			return
		}
		t.Errorf("%q is incomplete without a beginning", text)
	})
}
