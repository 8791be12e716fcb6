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
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

const nestedGraph = `
name: child
start: a/b
initial_state: {log: []}
reducers: {log: append}
nodes:
  a/b: {type: script, script: a.sh, next: [left, right]}
  left: {type: script, script: a.sh, next: join}
  right: {type: script, script: a.sh, next: join}
  join: {type: script, script: a.sh, next: fails}
  fails: {type: script, script: a.sh, next: asks}
  asks: {type: script, script: a.sh, next: end}
  end: {type: end}
`

// crew executes the nodes of a nested graph, each with one step, and counts what it did.
type crew struct {
	mu      sync.Mutex
	visits  map[string]int // executions by node
	made    map[string]int // steps really made by node
	answers []string       // to the question of the node asks
}

func (c *crew) count(in *map[string]int, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *in == nil {
		*in = make(map[string]int)
	}
	(*in)[id]++
}

func (c *crew) Execute(ctx context.Context, t *run.Task) graph.Result {
	id := t.Node.ID
	c.count(&c.visits, id)
	said, err := steps.Do(ctx, t.Steps, steps.Step{Kind: steps.Script, Key: "work", Effect: true}, func(context.Context) (string, error) {
		c.count(&c.made, id)
		return "did " + id, nil
	})
	t.Usage.InputTokens = 1
	if err == nil && id == "asks" {
		q := run.Questions{Asker: asktest.NewScripted(c.answers...), Steps: t.Steps, Events: t.Events, Place: "child/" + id, Base: t.Base, Waits: "the child"}
		said, err = q.Ask(ctx, ask.Question{Kind: ask.Choice, Text: "Go on?", Options: []string{"go"}})
	}
	switch {
	case err != nil:
		return graph.Result{Err: err}
	case t.Node.Type == graph.EndNode:
		v, _ := t.Draft.Get("log")
		return graph.Result{Ended: true, Output: v.Text()}
	case id == "fails":
		return graph.Result{Targets: t.Node.Next, Failure: &graph.Failure{Node: id, Message: "tolerated"}}
	}
	t.Draft.Set("log", value.Of(said))
	return graph.Result{Targets: t.Node.Next}
}

// parent is work with a nested graph in it.
type parent struct {
	plan  *graph.Plan
	nodes run.Executor
}

func (*parent) Started() event.Started { return event.Started{Model: "c:m"} }

func (p *parent) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) {
	return run.RunNested(ctx, run.NestedOptions{
		Work:   run.Graph{Plan: p.plan, Nodes: p.nodes, Start: run.StartCheckpoint(p.plan, graph.NewState(p.plan.Graph().InitialState))},
		Events: f.Events.With(func(s *event.Source) { s.Agent, s.Depth = "child", 1 }), Steps: f.Steps().At("agents").At("x"), Budget: f.Budget,
	})
}

// dying is a journal that another process takes over at one of its writes.
type dying struct {
	run.Journal
	store *memstore.Store
	mu    *sync.Mutex
	left  *int // writes until then
}

func (d dying) write(write func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if *d.left--; *d.left == 0 {
		if err := d.store.Orphan(d.ID()); err != nil {
			return err
		}
	}
	return write()
}

func (d dying) Task(step int, node string) steps.Recorder {
	return dyingTask{d.Journal.Task(step, node), d}
}

func (d dying) Asked(ctx context.Context, p run.Pending) error {
	return d.write(func() error { return d.Journal.Asked(ctx, p) })
}

func (d dying) Commit(ctx context.Context, c run.Checkpoint, v []run.Visit) error {
	return d.write(func() error { return d.Journal.Commit(ctx, c, v) })
}

type dyingTask struct {
	steps.Recorder
	dying
}

func (d dyingTask) Begin(ctx context.Context, key string, s steps.Step) error {
	return d.write(func() error { return d.Recorder.Begin(ctx, key, s) })
}

func (d dyingTask) Record(ctx context.Context, key string, s steps.Step, result []byte) error {
	return d.write(func() error { return d.Recorder.Record(ctx, key, s, result) })
}

// TestNestedGraph interrupts a run with a nested graph at each of its writes. It goes on inside
// the nested graph: what is on record as finished is not run again, also a failure that was
// tolerated, and the question waits and is answered where it was asked.
func TestNestedGraph(t *testing.T) {
	const output = `["did a/b","did left","did right","did join","go"]`
	nodes := []string{"a/b", "asks", "end", "fails", "join", "left", "right"}
	for at := 0; ; at++ {
		store, c := memstore.New(nil), &crew{}
		journal, err := store.Create(t.Context(), run.Info{}, run.Checkpoint{})
		if err != nil {
			t.Fatal(err)
		}
		work, left := &parent{plan: graphPlan(t, nestedGraph), nodes: c}, at
		out, err := run.Run(t.Context(), run.Options{Work: work, Journal: dying{journal, store, new(sync.Mutex), &left}})
		if at > 0 && left > 0 {
			if at < 2*len(nodes) {
				t.Errorf("only %d writes", at)
			}
			break // it was not interrupted
		}
		if at == 0 {
			if fault.CodeOf(err) != fault.Suspended || err.Error() != "the child waits for an answer to: Go on?" {
				t.Fatalf("the run should wait: %v", err)
			}
		} else if !errors.Is(err, run.ErrLeaseLost) {
			t.Fatalf("interrupted at %d: %v", at, err)
		}
		_ = journal.Close()
		finished := finishedNodes(t, store, journal.ID())
		before := c.visits
		c.visits, c.answers = nil, []string{"go"}
		h, err := store.History(t.Context(), journal.ID())
		if err != nil {
			t.Fatal(err)
		}
		if at == 0 {
			if len(h.Pending) != 1 || h.Pending[0].ID != "child/asks" || h.Pending[0].Step != 1 || h.Pending[0].Node != "" || !h.Pending[0].Open {
				t.Errorf("waiting: %+v", h.Pending)
			}
			c.answers = nil
			if err := store.Answer(t.Context(), journal.ID(), "child/asks", run.Reply{Text: "go"}); err != nil {
				t.Error(err)
			}
		}
		again, _, err := store.Open(t.Context(), journal.ID())
		if err != nil {
			t.Fatal(err)
		}
		if out, err = run.Run(t.Context(), run.Options{Work: work, Journal: again, Resumed: true}); err != nil || out.Output != output || out.Usage.InputTokens != len(nodes) || out.Failures != 1 {
			t.Errorf("interrupted at %d: output %s, usage %+v, %d failures, %v", at, out.Output, out.Usage, out.Failures, err)
		}
		for _, id := range nodes {
			if slices.Contains(finished, id) == (c.visits[id] > 0) {
				t.Errorf("interrupted at %d: %s was finished: %v, and was run %d times before and %d times after", at, id, slices.Contains(finished, id), before[id], c.visits[id])
			}
			if c.made[id] > 2 || c.made[id] == 2 && slices.Contains(finished, id) {
				t.Errorf("interrupted at %d: the step of %s was made %d times", at, id, c.made[id])
			}
		}
		_ = again.Close()
	}
}

func graphPlan(t *testing.T, text string) *graph.Plan {
	t.Helper()
	g, _, err := graph.Parse("graph.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return graph.NewPlan(g)
}

// finishedNodes returns the nodes of the nested graph that are on record as finished.
func finishedNodes(t *testing.T, store run.Store, id string) (nodes []string) {
	t.Helper()
	h, err := store.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range h.Steps {
		parts := strings.Split(s.Key, "/")
		if s.Done && len(parts) == 5 && parts[4] == "done" {
			nodes = append(nodes, strings.ReplaceAll(parts[3], "%2F", "/"))
		}
	}
	return nodes
}

// TestNestedEvents has a nested run without a record. Its events are those of the run, from
// another source.
func TestNestedEvents(t *testing.T) {
	var events eventtest.Collector
	failed := errors.New("boom")
	for _, fail := range []error{nil, failed} {
		_, err := run.Run(t.Context(), run.Options{
			Events: event.NewScope(&events, event.Source{}, nil),
			Work: workFunc(func(ctx context.Context, f *run.Frame) (run.Outcome, error) {
				released := false
				out, err := run.RunNested(ctx, run.NestedOptions{
					Work: &talk{fail: fail}, Events: f.Events.With(func(s *event.Source) { s.Agent, s.Depth = "child", 1 }), Resumed: true,
					Done:    func() error { released = true; return nil },
					Opening: func(b *event.Started) { b.Graph = "opened" },
					Ending:  func(b *event.Finished, err error) { b.Code = fmt.Sprint("ended with ", err) },
				})
				if !released {
					t.Error("what the nested work holds was not released")
				}
				return out, err
			}),
		})
		if !errors.Is(err, fail) {
			t.Error(err)
		}
	}
	started, finished := eventtest.Bodies[event.Started](&events), eventtest.Bodies[event.Finished](&events)
	if len(started) != 4 || started[1].Graph != "opened" || !started[1].Resumed || started[0].Resumed {
		t.Errorf("started: %+v", started)
	}
	if len(finished) != 4 || finished[0].Code != "ended with <nil>" || finished[2].Code != "ended with boom" || finished[3].Error != "boom" {
		t.Errorf("finished: %+v", finished)
	}
	if all := events.Events(); all[1].Depth != 1 || all[1].Agent != "child" || all[0].Depth != 0 {
		t.Errorf("sources %+v, %+v", all[0].Source, all[1].Source)
	}
}

// workFunc is a function that is work.
type workFunc func(ctx context.Context, f *run.Frame) (run.Outcome, error)

func (workFunc) Started() event.Started { return event.Started{} }

func (w workFunc) Do(ctx context.Context, f *run.Frame) (run.Outcome, error) { return w(ctx, f) }

// full is a journal on a disk that is full after some writes.
type full struct {
	run.Journal
	mu   *sync.Mutex
	left *int
}

func (f full) write(write func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *f.left--; *f.left < 0 {
		return errors.New("disk full")
	}
	return write()
}

func (f full) Task(step int, node string) steps.Recorder {
	return fullTask{f.Journal.Task(step, node), f}
}

func (f full) Commit(ctx context.Context, c run.Checkpoint, v []run.Visit) error {
	return f.write(func() error { return f.Journal.Commit(ctx, c, v) })
}

func (f full) Asked(ctx context.Context, p run.Pending) error {
	return f.write(func() error { return f.Journal.Asked(ctx, p) })
}

type fullTask struct {
	steps.Recorder
	full
}

func (f fullTask) Begin(ctx context.Context, key string, s steps.Step) error {
	return f.write(func() error { return f.Recorder.Begin(ctx, key, s) })
}

func (f fullTask) Record(ctx context.Context, key string, s steps.Step, result []byte) error {
	return f.write(func() error { return f.Recorder.Record(ctx, key, s, result) })
}

// TestNestedGraphOnAFullDisk fills the disk while a nested graph is at work, at each of its
// writes. It goes on to its end, the user is warned once, and the run cannot be resumed.
func TestNestedGraphOnAFullDisk(t *testing.T) {
	for at := range 20 {
		store := memstore.New(nil)
		journal, err := store.Create(t.Context(), run.Info{}, run.Checkpoint{})
		if err != nil {
			t.Fatal(err)
		}
		var events eventtest.Collector
		c, left := &crew{answers: []string{"go"}}, at
		out, err := run.Run(t.Context(), run.Options{
			Work: &parent{plan: graphPlan(t, nestedGraph), nodes: c}, Journal: full{journal, new(sync.Mutex), &left},
			Events: event.NewScope(&events, event.Source{}, nil),
		})
		if err != nil || out.Recorded || out.Output != `["did a/b","did left","did right","did join","go"]` {
			t.Errorf("full after %d writes: %+v, %v", at, out, err)
		}
		if warnings := eventtest.Bodies[event.Warning](&events); len(warnings) != 1 || !strings.Contains(warnings[0].Text, "disk full. It continues to its answer") {
			t.Errorf("full after %d writes: warnings %+v", at, warnings)
		}
		for id, n := range c.made {
			if n != 1 {
				t.Errorf("full after %d writes: the step of %s was made %d times", at, id, n)
			}
		}
		if err := journal.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := store.Open(t.Context(), journal.ID()); err == nil {
			t.Errorf("full after %d writes, and the run can be resumed", at)
		}
	}
}
