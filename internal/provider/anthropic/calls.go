package anthropic

import (
	"encoding/json"
	"strings"

	"loki/internal/chat"
	"loki/internal/provider/normalize"
)

// calls returns the calls of a complete reply, with ids that the conversation has not
// had.
func (b *builder) calls() []chat.ToolCall {
	var calls []chat.ToolCall
	for i, blk := range b.blocks {
		if blk.typ != callBlock || blk.name == "" {
			continue
		}
		last := i == len(b.blocks)-1
		if last && b.stopReason(false) == chat.StopLength && blk.cutOff() {
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

// cutOff reports whether a call at the end of a reply that has reached its limit may
// lack some of its arguments. None at all may be those of a tool without parameters, but
// then the reply would have ended for another reason.
func (blk *block) cutOff() bool {
	s := strings.TrimSpace(blk.whole())
	return s == "{}" || !json.Valid([]byte(s))
}
