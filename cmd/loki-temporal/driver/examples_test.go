//go:build unix

package driver_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/cmd/loki-temporal/driver"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
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
		if slices.Contains([]string{"wait", "saga"}, filepath.Base(dir)) {
			continue // see TestRefused
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

// TestRefusedInside begins no run of a graph whose subgraph, or an agent that a node starts, has a compensation, however deep that is.
func TestRefusedInside(t *testing.T) {
	const trip = "nodes: {book: {type: script, script: count.sh, compensate: cancel, next: done}, cancel: {type: script, script: count.sh}, done: {type: end}}"
	const starts = "start: x\nnodes:\n  x: {type: agent, agent: %s, prompt: p, next: done}\n  done: {type: end}\n"
	for name, tt := range map[string]struct{ graph, want string }{
		"subgraph": {"name: agent\nstart: x\nnodes:\n  x: {type: graph, start: book, " + trip + ", next: done}\n  done: {type: end}\n", `node "x/book" of agent agent has a compensation`},
		"child":    {"name: agent\n" + fmt.Sprintf(starts, "trip"), `node "x" of agent agent: node "book" of agent trip has a compensation`},
		"deeper":   {"name: agent\n" + fmt.Sprintf(starts, "travel"), `node "x" of agent agent: node "x" of agent travel: node "book" of agent trip has a compensation`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWith(t, tt.graph, map[string]string{
				"config/agents/trip/graph.yaml": "name: trip\nstart: book\n" + trip + "\n", "config/agents/trip/count.sh": countScript,
				"config/agents/travel/graph.yaml": "name: travel\n" + fmt.Sprintf(starts, "trip"),
			})
			runs := driver.Runs{App: w.app}
			id, err := runs.Start(t.Context(), w.job("Oslo", ask.Unavailable{}), driver.Terms{})
			if id != "" || fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(fault.HintOf(err), "run it with: loki -a ") {
				t.Errorf("%q, %v, hint %q", id, err, fault.HintOf(err))
			}
		})
	}
}

// TestRefused begins no run of a graph with a wait node or a compensation, and says which node it is.
func TestRefused(t *testing.T) {
	for name, want := range map[string]string{
		"wait": `node "payment" of agent wait is of type wait`,
		"saga": `node "hotel" of agent saga has a compensation`,
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.Abs("../../../examples/graphs/" + name)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, wholeGraph)
			w.agent = dir
			runs := driver.Runs{App: w.app}
			id, err := runs.Start(t.Context(), w.job("the book", ask.Unavailable{}), driver.Terms{})
			if id != "" || fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), want) {
				t.Errorf("%q, %v", id, err)
			}
		})
	}
}
