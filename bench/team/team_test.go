// Package team measures what a child agent costs beside its model calls.
package team

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"loki/internal/agent/team"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/sqlite"
)

// child is the work of an agent that makes one recorded step, as that of a model call is.
type child struct{ member *team.Member }

func (child) Started() event.Started { return event.Started{} }

func (c child) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	out, err := steps.Do(ctx, f.Steps(), steps.Step{Kind: steps.Model, Key: "model/1"}, func(context.Context) (string, error) { return "done", nil })
	return run.Outcome{Output: out, Usage: c.member.Close()}, err
}

func start(_ context.Context, s team.Spawn) (team.Child, error) {
	return team.Child{Limits: team.DefaultLimits(), Job: run.Job{
		Make: func(context.Context, run.Point) (run.Work, func() error, error) { return child{s.Member}, nil, nil },
	}}, nil
}

// parent is the work of an agent that starts children, so many at a time, and collects them.
type parent struct {
	b     *testing.B
	width int
}

func (parent) Started() event.Started { return event.Started{} }

func (p parent) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	limits := team.DefaultLimits()
	limits.CanSpawn, limits.MaxConcurrent = true, p.width
	st := f.Steps()
	t, err := team.New(ctx, team.Options{Agent: "parent", Limits: limits, Steps: st, Events: f.Events, Start: start})
	if err != nil {
		return run.Outcome{}, err
	}
	defer t.Root().Close()
	set, err := tool.NewSet(t.Root().Tools()...)
	if err != nil {
		return run.Outcome{}, err
	}
	box := tool.NewBox(tool.Options{Tools: set})
	calls := 0
	call := func(name, args string) (id string, err error) {
		calls++
		text, _, err := box.Call(ctx, chat.ToolCall{Name: name, Arguments: args}, st.At(fmt.Sprintf("tool/%d/1", calls)))
		if err != nil {
			return "", err
		}
		var result struct{ ID, Output string }
		if err := json.Unmarshal([]byte(text), &result); err != nil || result.Output != "done" && name == "agent__collect" {
			return "", fmt.Errorf("%s: %w", text, err)
		}
		return result.ID, nil
	}
	ids := make([]string, p.width)
	for range p.b.N {
		for i := range ids {
			if ids[i], err = call("agent__spawn", `{"agent":"child","prompt":"work"}`); err != nil {
				return run.Outcome{}, err
			}
		}
		for _, id := range ids {
			if _, err := call("agent__collect", `{"id":"`+id+`"}`); err != nil {
				return run.Outcome{}, err
			}
		}
	}
	return run.Outcome{}, nil
}

// BenchmarkChildren starts and collects children, in memory and recorded on the store of runs.
func BenchmarkChildren(b *testing.B) {
	for _, recorded := range []bool{false, true} {
		for _, width := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/%d_at_once", map[bool]string{false: "memory", true: "sqlite"}[recorded], width), func(b *testing.B) {
				o := run.Options{Work: parent{b, width}, Events: event.NewScope(event.Discard, event.Source{}, nil)}
				if recorded {
					store, err := sqlite.Open(filepath.Join(b.TempDir(), "runs.db"), sqlite.Options{})
					if err != nil {
						b.Fatal(err)
					}
					defer store.Close()
					if o.Journal, err = store.Create(b.Context(), run.Info{Kind: run.ChatRun}, run.Checkpoint{}); err != nil {
						b.Fatal(err)
					}
					defer o.Journal.Close()
				}
				b.ReportAllocs()
				b.ResetTimer()
				if _, err := run.Run(b.Context(), o); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*width), "µs/child")
			})
		}
	}
}
