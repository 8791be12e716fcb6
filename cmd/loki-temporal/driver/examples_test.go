//go:build unix

package driver_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loki/cmd/loki-temporal/driver"
	"loki/internal/base/ask"
	"loki/internal/workflow/run"
)

// reply answers the questions of the examples: with the first option, or with a text.
func reply(options []string) string {
	if len(options) > 0 {
		return options[0]
	}
	return "Summer in the mountains"
}

// TestAsWithLoki runs the graphs of the examples with both drivers. What comes of them is the same.
func TestAsWithLoki(t *testing.T) {
	files, err := filepath.Glob("../../../examples/graphs/*/graph.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	asked := 0
	for _, file := range files {
		dir, err := filepath.Abs(filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(dir) == "wait" {
			continue // its signal is never sent, see TestWaits
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			w := newWorld(t, wholeGraph)
			w.agent = dir
			job := w.job("the book", ask.Func(func(_ context.Context, q ask.Question) (string, error) {
				asked++
				return reply(q.Options), nil
			}))
			want, wantErr := w.app.Runs().Start(t.Context(), job)
			for at := time.Hour; at < 20*time.Hour; at += time.Hour {
				w.env.RegisterDelayedCallback(func() {
					for _, q := range w.status().Waits {
						w.env.SignalWorkflow("loki-answer", driver.Letter{ID: q.ID + at.String(), Answers: map[string]string{q.ID: reply(q.Options)}})
					}
				}, at)
			}
			got, err := w.run(w.start("the book"))
			if wantErr != nil { // its model answers with the prompt, which fits no schema
				if _, why, _ := strings.Cut(wantErr.Error(), "at node"); err == nil || why == "" || !strings.Contains(err.Error(), why) {
					t.Errorf("%v\nwant %v", err, wantErr)
				}
				return
			}
			s := w.status()
			if err != nil || got.Output != want.Output || got.Steps != want.Steps || got.Failures != want.Failures || got.Usage != want.Usage || s.Status != run.Done {
				t.Errorf("%+v, %v\nwant %+v", got, err, want)
			}
			if state, wantState := string(s.State.AppendJSON(nil)), string(want.State.AppendJSON(nil)); state != wantState {
				t.Errorf("state %s\nwant  %s", state, wantState)
			}
		})
	}
	if asked < 3 {
		t.Errorf("only %d questions", asked)
	}
}
