package chat_test

import (
	"testing"

	"loki/internal/llm/chat"
)

func TestWithoutThinking(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no_block", " answer", " answer"},
		{"block", "<think>a\nb</think>\n\nanswer\n", "answer\n"},
		{"space_in_front", " \n<think>a</think>answer", "answer"},
		{"only_the_first", "<think>a</think><think>b</think>c", "<think>b</think>c"},
		{"shortest", "<think>a</think>b</think>c", "b</think>c"},
		{"never_ends", "<think>a", "<think>a"},
		{"in_the_middle", "x <think>a</think>", "x <think>a</think>"},
		{"nothing_else", "<think>a</think>", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := chat.WithoutThinking(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
