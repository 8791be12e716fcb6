package normalize

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"loki/internal/llm/chat"
)

// NumberedID is what the ids begin with that are given here; a number from 1 follows.
const NumberedID = "call_"

// maxEqualCalls is how many equal calls may follow one another in one reply. A reply with more of
// them did not come to its end. Calls that are repeated from turn to turn, after their results
// were read, are the business of the engine.
const maxEqualCalls = 3

// Unnamed is the name of a call that the server sent without one. No tool has it.
const Unnamed = "call_without_a_name"

// Calls returns the made calls in their order. Calls after three with the same name and arguments
// are left out. Arguments that are empty, white space aside, become {}, a name
// has no white space around it, and a missing one becomes [Unnamed].
//
// An id occurs once in a conversation. A made call without one, or with one that the past
// or an earlier made call has, gets the next free of call_1, call_2 and so on, counted
// from the number of calls of the past; ids that the server gave are not free.
func Calls(made []chat.ToolCall, past []chat.Message) []chat.ToolCall {
	var calls []chat.ToolCall
	for _, c := range made {
		if strings.TrimSpace(c.Arguments) == "" {
			c.Arguments = "{}"
		}
		c.Name = cmp.Or(strings.TrimSpace(c.Name), Unnamed)
		if !isSurplus(calls, c) {
			calls = append(calls, c)
		}
	}
	number(calls, past)
	return calls
}

// NumberCalls returns the made calls with the ids that [Calls] gives, none left out.
func NumberCalls(made []chat.ToolCall, past []chat.Message) []chat.ToolCall {
	calls := slices.Clone(made)
	number(calls, past)
	return calls
}

// isSurplus reports whether next equals the last calls of a reply once too often.
func isSurplus(calls []chat.ToolCall, next chat.ToolCall) bool {
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

// number gives the calls ids that differ from each other and from those of the past.
func number(calls []chat.ToolCall, past []chat.Message) {
	taken, n := idsOf(past)
	given := make(map[string]bool) // by the server, for this reply
	for _, c := range calls {
		given[c.ID] = true
	}
	for i := range calls {
		id := calls[i].ID
		if id == "" || taken[id] {
			for id == "" || taken[id] || given[id] {
				n++
				id = NumberedID + strconv.Itoa(n)
			}
			calls[i].ID = id
		}
		taken[id] = true
	}
}

// idsOf returns the ids of the calls in messages and the number of the calls.
func idsOf(messages []chat.Message) (ids map[string]bool, n int) {
	ids = make(map[string]bool)
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			ids[c.ID] = true
			n++
		}
	}
	return ids, n
}
