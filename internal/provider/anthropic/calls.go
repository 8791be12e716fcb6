package anthropic

import (
	"strings"

	"loki/internal/chat"
	"loki/internal/provider/normalize"
)

// calls returns the calls of a complete reply, with ids that the conversation has not
// had.
func (b *builder) calls() []chat.ToolCall {
	var calls []chat.ToolCall
	for _, blk := range b.blocks {
		if blk.typ != callBlock || blk.name == "" {
			continue
		}
		calls = append(calls, chat.ToolCall{ID: blk.id, Name: blk.name, Arguments: blk.whole()})
	}
	return normalize.Calls(calls, b.req.Messages)
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
