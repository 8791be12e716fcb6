package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// raceGraph has the nodes slow and asks lose against fast. Slow works until it is canceled, and asks waits for an answer.
const raceGraph = `name: races
reducers: {log: append}
start: top
nodes:
  top: {type: script, script: x.sh, next: [asks, beside, fast, slow]}
  asks: {type: script, script: x.sh, next: first}
  beside: {type: script, script: x.sh, next: all}
  fast: {type: script, script: x.sh, next: first}
  slow: {type: script, script: x.sh, next: slower}
  slower: {type: script, script: x.sh, next: first}
  first: {type: script, script: x.sh, join: any, next: all}
  all: {type: script, script: x.sh, join: all, next: end}
  end: {type: end}
`

const raceOutput = `["top1","beside1","fast1","first1","all1"]`

// racer executes the nodes of raceGraph.
type racer struct {
	chooser
	began chan struct{} // fast waits until slow has closed it; nil for no such order

	mu   sync.Mutex
	lost []string // nodes whose work was canceled
}

func (r *racer) Execute(ctx context.Context, t *run.Task) graph.Result {
	switch t.Node.ID {
	case "asks":
		q := run.Questions{Steps: t.Steps, Events: t.Events, Place: "asks", Waits: "asks"}
		_, err := q.Ask(ctx, ask.Question{Kind: ask.Text, Text: "Which?"})
		return graph.Result{Err: err}
	case "fast":
		if r.began != nil {
			<-r.began
		}
	case "slow":
		if r.began != nil {
			close(r.began)
		}
		<-ctx.Done()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lost = append(r.lost, t.Node.ID)
		return graph.Result{Err: errors.New("the process was killed")}
	}
	return r.chooser.Execute(ctx, t)
}

func raceWork(plan *graph.Plan, nodes run.Executor, found *run.Recovery) run.Work {
	if found == nil {
		return run.Graph{Plan: plan, Nodes: nodes, Start: run.StartCheckpoint(plan, graph.State{})}
	}
	return run.Graph{Plan: plan, Nodes: nodes, Start: found.Last, Tasks: found.Tasks}
}

// TestRace has the fastest of several nodes cancel those that race with it.
func TestRace(t *testing.T) {
	plan, store, nodes := graphPlan(t, raceGraph), memstore.New(nil), &racer{began: make(chan struct{})}
	journal, err := store.Create(t.Context(), run.Info{}, run.StartCheckpoint(plan, graph.State{}))
	if err != nil {
		t.Fatal(err)
	}
	var events eventtest.Collector
	out, err := run.Run(t.Context(), run.Options{Work: raceWork(plan, nodes, nil), Journal: journal, Events: event.NewScope(&events, event.Source{}, nil)})
	if err != nil || out.Output != raceOutput || !slices.Equal(nodes.lost, []string{"slow"}) {
		t.Errorf("%s, canceled %v, %v", out.Output, nodes.lost, err)
	}
	var canceled []string
	for _, ev := range events.Events() {
		if b, ok := ev.Body.(event.NodeFinished); ok && b.Canceled {
			canceled = append(canceled, ev.Node)
			if b.Error != "" || b.Targets != nil {
				t.Errorf("the event is %+v", b)
			}
		}
	}
	if slices.Sort(canceled); !slices.Equal(canceled, []string{"asks", "slow"}) {
		t.Errorf("events say canceled of %v", canceled)
	}
	h, err := store.History(t.Context(), journal.ID())
	if err != nil {
		t.Fatal(err)
	}
	var visits []string
	for _, v := range h.Visits {
		visits = append(visits, fmt.Sprint(v.Step, " ", v.Node, " ", v.Canceled))
	}
	if got := strings.Join(visits, " "); got != "1 top false 2 asks true 2 beside false 2 fast false 2 slow true 3 first false 4 all false 5 end false" || len(h.Pending) > 0 {
		t.Errorf("visits %s, questions %v", got, h.Pending)
	}
}

// TestRacesSurviveInterruptions interrupts a run with a race, and one with a nested run with one, at each of its writes.
func TestRacesSurviveInterruptions(t *testing.T) {
	for _, nested := range []bool{false, true} {
		t.Run(map[bool]string{false: "own", true: "nested"}[nested], func(t *testing.T) {
			plan := graphPlan(t, raceGraph)
			for at := 1; ; at++ {
				store, nodes := memstore.New(nil), &racer{}
				start := run.StartCheckpoint(plan, graph.State{})
				work := func(found *run.Recovery) run.Work { return raceWork(plan, nodes, found) }
				if nested {
					start, work = run.Checkpoint{}, func(*run.Recovery) run.Work { return &parent{plan: plan, nodes: nodes} }
				}
				journal, err := store.Create(t.Context(), run.Info{}, start)
				if err != nil {
					t.Fatal(err)
				}
				left := at
				out, err := run.Run(t.Context(), run.Options{Work: work(nil), Journal: dying{journal, store, new(sync.Mutex), &left}})
				_ = journal.Close()
				if left > 0 {
					if err != nil || out.Output != raceOutput || at < 10 {
						t.Errorf("after %d writes: %s, %v", at, out.Output, err)
					}
					return
				}
				if !errors.Is(err, run.ErrLeaseLost) {
					t.Fatalf("interrupted at %d: %v", at, err)
				}
				again, found, err := store.Open(t.Context(), journal.ID())
				if err != nil {
					t.Fatal(err)
				}
				if out, err = run.Run(t.Context(), run.Options{Work: work(&found), Journal: again, Resumed: true}); err != nil || out.Output != raceOutput {
					t.Errorf("interrupted at %d: %s, %v", at, out.Output, err)
				}
				_ = again.Close()
			}
		})
	}
}

// TestRaceThatIsDecided goes on with a run of which the record says who was first, though another order would be possible now.
func TestRaceThatIsDecided(t *testing.T) {
	plan := graphPlan(t, strings.NewReplacer("beside, fast, slow", "beside, fast").Replace(raceGraph))
	nodes := &racer{}
	out, err := run.Run(t.Context(), run.Options{Work: run.Graph{
		Plan: plan, Nodes: nodes,
		Start: run.Checkpoint{Step: 1, Position: run.Position{Frontier: []string{"asks", "beside", "fast"}}},
		Tasks: []run.TaskRecord{{Step: 2, Result: graph.Result{Node: "asks", Targets: []string{"first"}}}},
	}})
	if err != nil || out.Output != `["beside1","first1","all1"]` || nodes.made["fast1"] > 0 {
		t.Errorf("%s, made %v, %v", out.Output, nodes.made, err)
	}
}

// TestAWaitingLoserIsWithdrawn suspends a run in which one question lost a race and another one waits.
func TestAWaitingLoserIsWithdrawn(t *testing.T) {
	plan, store := graphPlan(t, strings.Replace(raceGraph, "next: [asks, beside, fast, slow]", "next: [asks, beside, fast]", 1)), memstore.New(nil)
	journal, err := store.Create(t.Context(), run.Info{}, run.StartCheckpoint(plan, graph.State{}))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	nodes := executor(func(ctx context.Context, task *run.Task) graph.Result {
		switch task.Node.ID {
		case "asks":
			defer close(asked)
		case "beside":
			_, err := run.Questions{Steps: task.Steps, Events: task.Events, Place: "beside", Waits: "beside"}.Ask(ctx, ask.Question{Kind: ask.Text, Text: "What?"})
			return graph.Result{Err: err}
		case "fast":
			<-asked
		}
		return (&racer{}).Execute(ctx, task)
	})
	_, err = run.Run(t.Context(), run.Options{Work: raceWork(plan, nodes, nil), Journal: journal})
	pending, _ := store.Pending(t.Context(), journal.ID())
	if err == nil || len(pending) != 1 || pending[0].ID != "beside" || strings.Contains(err.Error(), "asks") {
		t.Errorf("pending %+v, %v", pending, err)
	}
}
