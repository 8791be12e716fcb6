package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"loki/internal/base/fault/steps"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// reading is a confined tool that says how it is seen where its calls can only read.
type reading struct {
	confined
	held bool
}

func (r reading) Reading() (chat.Tool, bool) {
	return chat.Tool{Name: "runs", Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}, r.held
}

// TestPlanMode: a model sees in plan mode what changes nothing, and a call of anything else is refused, also without consent being asked for.
func TestPlanMode(t *testing.T) {
	t.Parallel()
	var mode atomic.Value
	mode.Store(chat.ModePlan)
	runs := newConfined()
	runs.name = "runs"
	var called atomic.Int32
	count := func(context.Context, tool.Call) (tool.Result, error) {
		called.Add(1)
		return tool.Result{Output: "done"}, nil
	}
	writes := fake{name: "writes", call: count}
	box := newBox(t, tool.Options{
		AutoConfirm: true, Mode: func() chat.Mode { return mode.Load().(chat.Mode) }, Trusts: func(name string) bool { return strings.HasPrefix(name, "mcp__good") },
	},
		reading{runs, true}, writes, scripted{fake{name: "script"}, "script.sh"}, stand{scripted{fake{name: "stands", hints: tool.Hints{ReadOnly: true}}, "stands.sh"}},
		fake{name: "reads", hints: tool.Hints{ReadOnly: true}}, fake{name: "merges", hints: tool.Hints{ReadOnly: true, Writes: true}}, fake{name: "plans", hints: tool.Hints{ReadOnly: true, Planning: true}},
		fake{name: "mcp__good__get", hints: tool.Hints{ReadOnly: true}}, fake{name: "mcp__good__put"}, fake{name: "mcp__bad__get", hints: tool.Hints{ReadOnly: true}},
	)
	names := func() string {
		var list []string
		for _, d := range box.Declarations() {
			list = append(list, d.Name)
		}
		return strings.Join(list, " ")
	}
	if got := names(); got != "runs reads plans mcp__good__get" {
		t.Errorf("offered in plan mode: %s", got)
	}
	call := func(name, args string) string {
		text, _, err := box.Call(t.Context(), chat.ToolCall{ID: name, Name: name, Arguments: args}, steps.Steps{})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, name := range []string{"writes", "merges", "script", "stands", "mcp__good__put", "mcp__bad__get"} {
		if got := call(name, "{}"); !strings.Contains(got, "plan mode is on") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := call("runs", `{"text":"x","sandbox":"write"}`); !strings.Contains(got, `argument \"sandbox\" is not known`) {
		t.Errorf("a higher level: %s", got)
	}
	if call("runs", `{"text":"x"}`); len(*runs.ran) != 1 || (*runs.ran)[0].Level != sandbox.Read {
		t.Errorf("ran at %v", *runs.ran)
	}
	if got := call("nothing", "{}"); strings.Contains(got, "writes") {
		t.Errorf("a tool that is not offered is named: %s", got)
	}

	// The calls of one reply are made in the mode in which the model wrote it.
	calls := box.InOrder(1)
	mode.Store(chat.ModeAsk)
	if text, _, err := calls[0](t.Context(), chat.ToolCall{ID: "1", Name: "writes", Arguments: "{}"}, steps.Steps{}); err != nil || called.Load() > 0 {
		t.Errorf("%s, %v", text, err)
	}
	if got := names(); strings.Contains(got, "plans") || !strings.Contains(got, "writes script") {
		t.Errorf("offered in the mode ask: %s", got)
	}
	if call("writes", "{}"); called.Load() != 1 {
		t.Error("it was not called in the mode ask")
	}
	if got := call("plans", "{}"); !strings.Contains(got, "outside of plan mode") {
		t.Errorf("a plan in the mode ask: %s", got)
	}
}
