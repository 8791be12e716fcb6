package app

import "testing"

func TestCodeBlock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"no_fence", "ls -la", "ls -la"},
		{"language", "Here it is:\n```sh\nls -la\n```\nBye.", "ls -la"},
		{"none", "```\nls\n```", "ls"},
		{"two_blocks", "```\na\n```\nand\n```\nb\n```", "a\n```\nand\n```\nb"},
		{"no_end", "```sh\nls", "ls"},
		{"one_line", "```ls -la```", "ls -la"},
		{"one_line_and_more", "```ls -la```\nBye.", "ls -la"},
		{"empty", "```\n```", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := codeBlock(tt.text); got != tt.want {
				t.Errorf("%q", got)
			}
		})
	}
}
