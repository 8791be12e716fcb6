package chat

import "strings"

// WithoutThinking returns text without the block in which some models write down
// their reasoning: <think> at the very beginning, white space aside, up to the first
// </think> and the white space after it. A text without a whole block is returned
// unchanged.
func WithoutThinking(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), "<think>")
	if !ok {
		return text
	}
	_, answer, ok := strings.Cut(rest, "</think>")
	if !ok {
		return text
	}
	return strings.TrimLeft(answer, " \t\r\n")
}
