package engine

import (
	"cmp"
	"encoding/json"
	"fmt"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// A model that makes the same call again and again makes no progress. The defaults are how many
// equal calls in a row are run, and how many calls an alert shows.
const (
	DefaultRepeats = 2
	DefaultWindow  = 3
)

// repeatGuard remembers the last calls of a request and detects a model that repeats a call
// from turn to turn, although it has read the result. Calls of one reply are not repetitions of
// each other: package normalize drops those of a reply that does not come to its end.
//
// A call of a tool that is [Polled] is a repetition only while its results are equal. When it was
// refused it is repeated the next time, so that the model sees how things stand.
type repeatGuard struct {
	repeats, window int
	calls           []madeCall
}

// madeCall is a call and what the model read of it.
type madeCall struct {
	chat.ToolCall
	result string
}

// newRepeatGuard returns a guard with the limits of a request.
func newRepeatGuard(repeats, window int) repeatGuard {
	return repeatGuard{repeats: cmp.Or(repeats, DefaultRepeats), window: cmp.Or(window, DefaultWindow)}
}

// check returns the result that the model gets instead of another repetition. looped is false
// if the call is not a repetition. instead is what the model should do if the tool is [Polled], and
// empty otherwise.
func (g *repeatGuard) check(call chat.ToolCall, instead string) (alert string, looped bool) {
	repeats := 0
	for i := len(g.calls) - 1; i >= 0 && sameCall(g.calls[i].ToolCall, call); i-- {
		if instead != "" && g.calls[i].result != g.calls[len(g.calls)-1].result {
			break
		}
		repeats++
	}
	if repeats < g.repeats {
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
		Hint:  cmp.Or(instead, "use the results you have, call it with other arguments, take another tool, or ask the user"),
	}
	if instead != "" {
		a.Error = fmt.Sprintf("%s was called with the same arguments %d times in a row, and nothing has changed. It was not called this time", call.Name, repeats)
	}
	if len(g.calls) >= g.window {
		for _, c := range g.calls[len(g.calls)-g.window:] {
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

// record remembers the calls of a reply and their results.
func (g *repeatGuard) record(calls []chat.ToolCall, results []chat.Message) {
	for i, call := range calls {
		g.calls = append(g.calls, madeCall{call, results[i].Text()})
	}
	if n := len(g.calls) - g.repeats*g.window; n > 0 {
		g.calls = g.calls[n:]
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
