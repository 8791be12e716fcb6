package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"loki/internal/agent/team"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/sqlite"
)

// family is the work of an agent that starts children one after the other and collects each.
type family struct {
	children int
	done     int
}

func (*family) Started() event.Started { return event.Started{} }

// Do implements run.Work.
func (w *family) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	record := f.Steps()
	own, err := team.New(ctx, team.Options{
		Agent: "root", Limits: team.Limits{CanSpawn: true, MaxConcurrent: 4, MaxDepth: 3, SummarizationThreshold: 4000, Timeout: time.Hour, IdleTimeout: time.Minute},
		Steps: record, Events: f.Events, Budget: f.Budget,
		Start: func(context.Context, team.Spawn) (team.Child, error) {
			return team.Child{Job: run.Job{Make: func(context.Context, run.Point) (run.Work, func() error, error) { return errand{}, nil, nil }}}, nil
		},
	})
	if err != nil {
		return run.Outcome{}, err
	}
	tools, err := tool.NewSet(own.Root().Tools()...)
	if err != nil {
		return run.Outcome{}, err
	}
	call := func(i int, name string, args any) (map[string]any, error) {
		t, _ := tools.Lookup(name)
		data, err := json.Marshal(args)
		if err != nil {
			return nil, err
		}
		r, err := t.Call(ctx, tool.Call{Name: name, Arguments: data, Key: record.Key(fmt.Sprintf("tool/%d/%s", i, name))})
		if err != nil {
			return nil, err
		}
		var result map[string]any
		return result, json.Unmarshal([]byte(r.Output), &result)
	}
	for i := range w.children {
		spawned, err := call(i, "agent__spawn", map[string]string{"agent": "child", "prompt": "work"})
		if err != nil {
			return run.Outcome{}, err
		}
		collected, err := call(i, "agent__collect", map[string]any{"id": spawned["id"]})
		if err != nil {
			return run.Outcome{}, err
		}
		if collected["output"] == "did it" {
			w.done++
		}
	}
	return run.Outcome{Output: "all done", Usage: own.Root().Close()}, nil
}

// errand is the work of a child: a model's reply and the result of a tool.
type errand struct{}

func (errand) Started() event.Started { return event.Started{} }

// Do implements run.Work.
func (errand) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	for _, key := range []string{"model/1", "tool/1/1/call"} {
		_, err := steps.Do(ctx, f.Steps(), steps.Step{Kind: steps.Tool, Key: key, Effect: true}, func(ctx context.Context) (string, error) {
			return "done", f.Events.Emit(ctx, event.Reply{Text: "done"})
		})
		if err != nil {
			return run.Outcome{}, err
		}
	}
	return run.Outcome{Output: "did it"}, nil
}

// BenchmarkChildren starts children one after the other in a run on SQLite. The time for each does
// not depend on how many came before.
func BenchmarkChildren(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				store, err := sqlite.Open(filepath.Join(b.TempDir(), "runs.db"), sqlite.Options{})
				if err != nil {
					b.Fatal(err)
				}
				journal, err := store.Create(b.Context(), run.Info{Agent: "root"}, run.Checkpoint{})
				if err != nil {
					b.Fatal(err)
				}
				work := &family{children: n}
				if _, err := run.Run(b.Context(), run.Options{Work: work, Journal: journal}); err != nil || work.done != n {
					b.Fatalf("%d children of %d, %v", work.done, n, err)
				}
				if err := journal.Close(); err != nil {
					b.Fatal(err)
				}
				if err := store.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/child")
		})
	}
}
