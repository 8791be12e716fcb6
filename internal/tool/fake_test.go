package tool_test

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"testing"

	"loki/internal/chat"
	"loki/internal/steps"
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

// recorder keeps steps in memory. A copy of it is what a new process would find.
type recorder struct {
	mu      sync.Mutex
	records map[string]steps.Record // guarded by mu
	lose    string                  // the results of steps with this key are lost: the process dies
}

func newRecorder() *recorder { return &recorder{records: make(map[string]steps.Record)} }

func (r *recorder) Lookup(_ context.Context, key string, _ steps.Step) (steps.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records[key], nil
}

func (r *recorder) Begin(_ context.Context, key string, _ steps.Step) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records[key] = steps.Record{Begun: true}
	return nil
}

func (r *recorder) Forget(_ context.Context, key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.records, key)
	return nil
}

func (r *recorder) Record(_ context.Context, key string, _ steps.Step, result []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if key == r.lose {
		return errDied
	}
	r.records[key] = steps.Record{Done: true, Result: result}
	return nil
}

func (r *recorder) keys() map[string]steps.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.records)
}

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
