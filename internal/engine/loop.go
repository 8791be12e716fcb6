package engine

import (
	"encoding/json"
	"fmt"

	"loki/internal/chat"
	"loki/internal/value"
)

// A model that makes the same call again and again does not get on. The limits are how
// many equal calls in a row are let pass, and how many calls an alert shows.
const (
	maxRepeats = 2
	chainLen   = 3
)

// loops remembers the last calls of a request, to tell a model that repeats itself. Calls
// of one reply are made side by side and are no repetition of each other.
type loops struct{ calls []chat.ToolCall }

// check returns the result that the model gets instead of another repetition; looped is
// false if the call is none.
func (l *loops) check(call chat.ToolCall) (alert string, looped bool) {
	repeats := 0
	for i := len(l.calls) - 1; i >= 0 && sameCall(l.calls[i], call); i-- {
		repeats++
	}
	if repeats < maxRepeats {
		return "", false
	}
	type made struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	}
	type loopAlert struct {
		Error   string `json:"error"`
		Code    int    `json:"code"`
		Hint    string `json:"hint"`
		History []made `json:"call_history,omitempty"`
	}
	a := loopAlert{
		Error: fmt.Sprintf("this is a loop: %s was called with the same arguments %d times in a row, and is not called again", call.Name, repeats),
		Code:  400,
		Hint:  "use the results you have, call it with other arguments, take another tool, or ask the user",
	}
	if len(l.calls) >= chainLen {
		for _, c := range l.calls[len(l.calls)-chainLen:] {
			parameters := json.RawMessage(c.Arguments)
			if !json.Valid(parameters) {
				parameters, _ = json.Marshal(c.Arguments) // a string can be marshalled
			}
			a.History = append(a.History, made{c.Name, parameters})
		}
	}
	text, err := json.Marshal(map[string]loopAlert{"tool_call_loop_alert": a})
	if err != nil {
		return a.Error, true
	}
	return string(text), true
}

// record remembers the calls of a reply.
func (l *loops) record(calls []chat.ToolCall) {
	l.calls = append(l.calls, calls...)
	if n := len(l.calls) - maxRepeats*chainLen; n > 0 {
		l.calls = l.calls[n:]
	}
}

// sameCall reports whether two calls are the same but for their ids.
func sameCall(a, b chat.ToolCall) bool {
	if a.Name != b.Name {
		return false
	}
	if a.Arguments == b.Arguments {
		return true
	}
	x, errX := value.ParseJSON([]byte(a.Arguments))
	y, errY := value.ParseJSON([]byte(b.Arguments))
	return errX == nil && errY == nil && value.Equal(x, y)
}
