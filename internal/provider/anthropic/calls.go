package anthropic

import (
	"strings"

	"loki/internal/chat"
)

// toolCalls returns the calls of a complete reply as the server sent them.
func (d *decoder) toolCalls() []chat.ToolCall {
	var calls []chat.ToolCall
	for _, blk := range d.blocks {
		if blk.typ != callBlock || blk.name == "" {
			continue
		}
		calls = append(calls, chat.ToolCall{ID: blk.id, Name: blk.name, Arguments: blk.whole()})
	}
	return calls
}

// whole returns the arguments of a call. What came with the start is a placeholder for
// the pieces that follow, if any do.
func (blk *block) whole() string {
	for _, s := range []string{blk.arguments.String(), blk.input} {
		if t := strings.TrimSpace(s); t != "" && t != "null" {
			return s
		}
	}
	return "{}"
}
