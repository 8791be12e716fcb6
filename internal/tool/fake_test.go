package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// fake is a tool made of a function.
type fake struct {
	name  string
	hints tool.Hints
	call  func(ctx context.Context, c tool.Call) (tool.Result, error)
}

func (f fake) Declaration() chat.Tool { return chat.Tool{Name: f.name, Description: "A fake."} }
func (f fake) Hints() tool.Hints      { return f.hints }
func (f fake) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if f.call == nil {
		return tool.Result{}, nil
	}
	return f.call(ctx, c)
}

// guarded is a fake that asks its own question.
type guarded struct {
	fake
	question string
}

func (g guarded) Consent(tool.Call) string { return g.question }

func newBox(t testing.TB, o tool.Options, tools ...tool.Tool) *tool.Box {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	o.Tools = set
	return tool.NewBox(o)
}

// told is a failed result as a model reads it.
type told struct {
	Error  string `json:"tool_call_error"`
	Output string `json:"output"`
	Stderr string `json:"stderr"`
}

func mustTold(t testing.TB, text string) told {
	t.Helper()
	var m told
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return m
}
