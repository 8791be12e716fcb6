package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// loopGraph goes round twice, each time through two branches of which one goes round by itself.
const loopGraph = `name: loops
reducers: {log: append}
start: a
nodes:
  a: {type: script, script: x.sh, next: [left, right]}
  left: {type: script, script: x.sh, next: [{to: left, max: 3}, {to: meet}]}
  right: {type: script, script: x.sh, next: meet}
  meet: {type: script, script: x.sh, join: all, next: [{when: _loop.left < 2, to: end}, {to: a, max: 1}, {to: end}]}
  end: {type: end}
`

// loopOutput is what comes of it.
const loopOutput = `["a1","left1","right1","left2","left3","left4","meet1","a2","left5","right2","meet2"]`

// chooser executes nodes that write which visit this is and take the choices of the file.
type chooser struct {
	mu   sync.Mutex
	made map[string]int // how often steps were really made
}

func (c *chooser) Execute(ctx context.Context, t *run.Task) graph.Result {
	if t.Node.Type == graph.EndNode {
		v, _ := t.Draft.Get("log")
		return graph.Result{Ended: true, Output: v.Text()}
	}
	said, err := steps.Do(ctx, t.Steps, steps.Step{Kind: steps.Script, Key: "work"}, func(context.Context) (string, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		said := fmt.Sprintf("%s%d", t.Node.ID, t.Visit)
		if c.made == nil {
			c.made = make(map[string]int)
		}
		c.made[said]++
		return said, nil
	})
	if err != nil {
		return graph.Result{Err: err}
	}
	t.Draft.Set("log", value.Of(said))
	choice := t.Node.Choices["next"]
	if choice == nil {
		return graph.Result{Targets: t.Node.Next}
	}
	ways, err := choice.Take(t.Draft, t.Loop, expr.Env{})
	if err != nil {
		return graph.Result{Err: err}
	}
	var res graph.Result
	for _, w := range ways {
		res.Targets, res.Taken = append(res.Targets, w.To), append(res.Taken, w.ID)
	}
	return res
}

// again returns the steps that were made more than once, a step for each time, in order.
func (c *chooser) again() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for said, n := range c.made {
		list = append(list, slices.Repeat([]string{said}, n-1)...)
	}
	slices.Sort(list)
	return list
}

// TestLoopsSurviveInterruptions interrupts a run with loops, and one with a nested run with loops, at each of their writes. How
// often edges were taken is part of the record: the run goes on round as often as one that was not interrupted. At most the
// steps that were made at the time of the interruption are made again: one, or those of two nodes that run at once.
func TestLoopsSurviveInterruptions(t *testing.T) {
	const want = loopOutput
	for _, nested := range []bool{false, true} {
		t.Run(map[bool]string{false: "own", true: "nested"}[nested], func(t *testing.T) {
			plan := graphPlan(t, loopGraph)
			for at := 1; ; at++ {
				store, nodes := memstore.New(nil), &chooser{}
				start := run.StartCheckpoint(plan, graph.State{})
				if nested {
					start = run.Checkpoint{}
				}
				work := func(found *run.Recovery) run.Work {
					switch {
					case nested:
						return &parent{plan: plan, nodes: nodes}
					case found == nil:
						return run.Graph{Plan: plan, Nodes: nodes, Start: start}
					}
					return run.Graph{Plan: plan, Nodes: nodes, Start: found.Last, Tasks: found.Tasks}
				}
				journal, err := store.Create(t.Context(), run.Info{}, start)
				if err != nil {
					t.Fatal(err)
				}
				left := at
				out, err := run.Run(t.Context(), run.Options{Work: work(nil), Journal: dying{journal, store, new(sync.Mutex), &left}})
				_ = journal.Close()
				if left > 0 {
					if err != nil || out.Output != want || at < 10 {
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
				if out, err = run.Run(t.Context(), run.Options{Work: work(&found), Journal: again, Resumed: true}); err != nil || out.Output != want {
					t.Errorf("interrupted at %d: %s, %v", at, out.Output, err)
				}
				if again := nodes.again(); len(again) > 1 && !slices.Equal(again, []string{"left1", "right1"}) && !slices.Equal(again, []string{"left5", "right2"}) {
					t.Errorf("interrupted at %d: made again are %v", at, again)
				}
				_ = again.Close()
			}
		})
	}
}

// TestForkCopiesTheCounts begins a new run in the middle of a loop.
func TestForkCopiesTheCounts(t *testing.T) {
	plan, store := graphPlan(t, loopGraph), memstore.New(nil)
	start := run.StartCheckpoint(plan, graph.State{})
	journal, err := store.Create(t.Context(), run.Info{}, start)
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.Run(t.Context(), run.Options{Work: run.Graph{Plan: plan, Nodes: &chooser{}, Start: start}, Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	last, err := store.Checkpoint(t.Context(), journal.ID(), -1)
	if err != nil || fmt.Sprint(last.Taken) != "map[left.next[0]:3 meet.next[1]:1]" {
		t.Errorf("taken %v, %v", last.Taken, err)
	}
	for step := range out.Steps {
		from, err := store.Checkpoint(t.Context(), journal.ID(), step)
		if err != nil {
			t.Fatal(err)
		}
		fork, err := run.Run(t.Context(), run.Options{Work: run.Graph{Plan: plan, Nodes: &chooser{}, Start: from}})
		if err != nil || fork.Output != out.Output {
			t.Errorf("from step %d: %s, %v", step, fork.Output, err)
		}
	}
}

// TestLoopsInExecutions drives the graph from outside: each super-step begins with a checkpoint, as another process would have it.
func TestLoopsInExecutions(t *testing.T) {
	plan := graphPlan(t, loopGraph)
	at := run.StartCheckpoint(plan, graph.State{})
	for pr := at.Progress(plan); !pr.Done; {
		tasks, err := run.NextTasks(plan, pr, 0)
		if err != nil {
			t.Fatal(err)
		}
		var done []run.TaskRecord
		for _, task := range tasks {
			rec, err := run.Execute(t.Context(), run.Execution{
				Graph: run.Graph{Plan: plan, Nodes: &chooser{}, Start: run.CheckpointOf(plan, pr, chat.Usage{})}, Node: task.Node.ID, Step: task.Step, Visit: task.Visit,
			})
			if err != nil {
				t.Fatal(err)
			}
			done = append(done, rec)
		}
		if pr, err = run.Fold(plan, pr, done, "id"); err != nil {
			t.Fatal(err)
		}
		at = run.CheckpointOf(plan, pr, chat.Usage{})
		pr = at.Progress(plan)
	}
	if at.Output != loopOutput {
		t.Errorf("output %s, want %s", at.Output, loopOutput)
	}
}
