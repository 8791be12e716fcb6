package anthropic

import (
	"encoding/json"
	"strconv"
	"strings"

	"loki/internal/chat"
)

// maxEqualCalls is how many equal calls may stand in a row. A model that repeats itself
// more often than this is caught in a loop.
const maxEqualCalls = 3

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
		c := chat.ToolCall{ID: blk.id, Name: blk.name, Arguments: blk.whole()}
		if !surplus(calls, c) {
			calls = append(calls, c)
		}
	}
	taken, n := idsIn(b.req.Messages)
	nameCalls(calls, taken, n)
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

// cutOff reports whether a call at the end of a reply that has reached its limit may
// lack some of its arguments. None at all may be those of a tool without parameters, but
// then the reply would have ended for another reason.
func (blk *block) cutOff() bool {
	s := strings.TrimSpace(blk.whole())
	return s == "{}" || !json.Valid([]byte(s))
}

func surplus(calls []chat.ToolCall, next chat.ToolCall) bool {
	if len(calls) < maxEqualCalls {
		return false
	}
	for _, c := range calls[len(calls)-maxEqualCalls:] {
		if c.Name != next.Name || c.Arguments != next.Arguments {
			return false
		}
	}
	return true
}

// idsIn returns the ids of the tool calls in messages and the number of the calls.
func idsIn(messages []chat.Message) (ids map[string]bool, n int) {
	ids = make(map[string]bool)
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			ids[c.ID] = true
			n++
		}
	}
	return ids, n
}

// nameCalls gives the calls without an id, or with one that is taken, the next free of
// call_1, call_2 and so on, after the n calls of the conversation.
func nameCalls(calls []chat.ToolCall, taken map[string]bool, n int) {
	own := make(map[string]bool) // ids that the server gave
	for _, c := range calls {
		own[c.ID] = true
	}
	for i, c := range calls {
		id := c.ID
		for id == "" || taken[id] {
			n++
			if id = "call_" + strconv.Itoa(n); own[id] {
				id = ""
			}
		}
		taken[id] = true
		calls[i].ID = id
	}
}
