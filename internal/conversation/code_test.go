package conversation

import (
	"slices"
	"testing"
)

func TestCodeBlocks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"no_fence", "ls -la", nil},
		{"language", "Here it is:\n```sh\nls -la\n```\nBye.", []string{"ls -la"}},
		{"none", "```\nls\n```", []string{"ls"}},
		{"two_blocks", "```\na\n```\nand\n```\nb\n```", []string{"a", "b"}},
		{"no_end", "```sh\nls", []string{"ls"}},
		{"one_line", "```ls -la```", []string{"ls -la"}},
		{"one_line_and_more", "```ls -la```\nBye.", []string{"ls -la"}},
		{"empty", "```\n```", []string{""}},
		{"tildes", "~~~ go\nx := `a`\n~~~\n", []string{"x := `a`"}},
		{"fence_in_a_longer_one", "````md\n```go\nx\n```\n````", []string{"```go\nx\n```"}},
		{"in_a_list", "1. Run\n   ```sh\n   ls\n   ```\n", []string{"ls"}},
		{"backticks_inside", "```sh\necho `date` '```x'\n```", []string{"echo `date` '```x'"}},
		{"fence_inside_a_line", "Use ``` to begin.", nil},
		{"indented_code", "```py\ndef f():\n    return 1\n```", []string{"def f():\n    return 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := CodeBlocks(tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzCodeBlocks(f *testing.F) {
	f.Add("```sh\nls\n```")
	f.Add("~~~\n````\n")
	f.Add("``````")
	f.Fuzz(func(t *testing.T, text string) {
		for _, b := range CodeBlocks(text) {
			if len(b) > len(text) {
				t.Errorf("%q has the block %q", text, b)
			}
		}
	})
}

func TestIsProse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"ls -la":                           false,
		"ls":                               false,
		"no-such-program-here --x":         false,
		"LC_ALL=C sort file":               false,
		"./run.sh now":                     false,
		"Get-ChildItem -Recurse":           false,
		"(cd /tmp && ls)":                  false,
		"I cannot do that.":                true,
		"I'm sorry, but that is risky.":    true,
		"Sure, here it is: ls":             true,
		"Sorry.":                           true,
		"DIR":                              false,
		"Überprüfe zuerst das Verzeichnis": true,
		"":                                 false,
	} {
		if got := isProse(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
