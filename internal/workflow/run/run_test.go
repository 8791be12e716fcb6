package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// behaviour is what a node does in a test: it may write to the draft, and says where the
// run goes.
type behaviour func(ctx context.Context, t *run.Task) graph.Result

// nodes is an [run.Executor] of behaviours by node id. A node without one follows its
// next; an end node ends the run with the key "out".
type nodes map[string]behaviour

func (ns nodes) Execute(ctx context.Context, t *run.Task) graph.Result {
	if b := ns[t.Node.ID]; b != nil {
		return b(ctx, t)
	}
	if t.Node.Type == graph.EndNode {
		return graph.Result{Ended: true, Output: t.Node.End.Output.Lenient(t.Draft)}
	}
	return follow(t)
}

func follow(t *run.Task) graph.Result { return graph.Result{Targets: t.Node.Next} }

func plan(t *testing.T, text string) *graph.Plan {
	t.Helper()
	g, findings, err := graph.Parse("graph.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
	return graph.NewPlan(g)
}

// drive runs a graph and returns what came of it and the events.
func drive(ctx context.Context, t *testing.T, text string, ns nodes) (run.Outcome, *eventtest.Collector, error) {
	t.Helper()
	c := new(eventtest.Collector)
	p := plan(t, text)
	out, err := run.Run(ctx, run.Options{Work: run.Graph{Plan: p, Nodes: ns, Start: start(p)}, Events: event.NewScope(c, event.Source{Agent: "test"}, nil)})
	return out, c, err
}

func start(p *graph.Plan) run.Checkpoint {
	return run.StartCheckpoint(p, graph.NewState(p.Graph().InitialState))
}

const chain = `
name: chain
start: a
nodes:
  a: {type: script, script: a.sh, next: b}
  b: {type: script, script: b.sh, next: done}
  done: {type: end, output: "{{out}}"}
`

// fan has five branches that write to the same key.
const fan = `
name: fan
settings: {max_concurrency: 2}
reducers: {out: concat}
start: a
nodes:
  a: {type: script, script: a.sh, next: [e, d, c, b]}
  b: {type: script, script: x.sh, next: done}
  c: {type: script, script: x.sh, next: done}
  d: {type: script, script: x.sh, next: done}
  e: {type: script, script: x.sh, next: done}
  done: {type: end, output: "{{out}}"}
`

// sleeps writes the node's id to "out" after a time.
func sleeps(d time.Duration) behaviour {
	return func(ctx context.Context, t *run.Task) graph.Result {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return graph.Result{Err: context.Cause(ctx)}
		}
		t.Draft.Set("out", value.Of(t.Node.ID))
		return follow(t)
	}
}

func TestFanOutFoldsInTheOrderOfTheNodes(t *testing.T) {
	// The results are the same whichever branch is done first.
	for _, order := range []string{"bcde", "edcb", "cebd"} {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ns := nodes{}
				for i, id := range order {
					ns[string(id)] = sleeps(time.Duration(i+1) * time.Second)
				}
				text := strings.Replace(fan, "max_concurrency: 2", "max_concurrency: 8", 1)
				out, c, err := drive(t.Context(), t, text, ns)
				if err != nil || out.Output != "b\nc\nd\ne" || out.Steps != 3 {
					t.Errorf("outcome %+v, %v", out, err)
				}
				started := eventtest.Bodies[event.StepStarted](c)
				if len(started) != 1 || !slices.Equal(started[0].Nodes, []string{"b", "c", "d", "e"}) {
					t.Errorf("step started %v", started)
				}
			})
		})
	}
}

func TestConcurrencyIsCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		work := func(ctx context.Context, tk *run.Task) graph.Result {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			res := sleeps(time.Second)(ctx, tk)
			mu.Lock()
			running--
			mu.Unlock()
			return res
		}
		begin := time.Now()
		out, _, err := drive(t.Context(), t, fan, nodes{"b": work, "c": work, "d": work, "e": work})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); most != 2 || took != 2*time.Second {
			t.Errorf("%d at once, for %s; want 2 for 2s", most, took)
		}
		for _, n := range out.Nodes {
			if n.Type == graph.ScriptNode && n.Node != "a" && n.Total != time.Second {
				t.Errorf("node %s worked for %s; waiting for its turn must not count", n.Node, n.Total)
			}
		}
	})
}

func TestBranchesDoNotSeeEachOther(t *testing.T) {
	write := func(_ context.Context, tk *run.Task) graph.Result {
		tk.Draft.Set("out", value.Of(tk.Node.ID))
		if v, _ := tk.Draft.Get("out"); v.Text() != tk.Node.ID {
			return graph.Result{Err: fmt.Errorf("sees %s", v.Text())}
		}
		return follow(tk)
	}
	if _, _, err := drive(t.Context(), t, fan, nodes{"b": write, "c": write, "d": write, "e": write}); err != nil {
		t.Error(err)
	}
}

func TestEventsOfARun(t *testing.T) {
	out, c, err := drive(t.Context(), t, `
name: story
start: a
nodes:
  a: {type: script, script: a.sh, next: [b, c]}
  b: {type: script, script: b.sh, next: done}
  c: {type: script, script: c.sh, next: done}
  done: {type: end, output: "{{out}}"}
`, nodes{"a": sleeps(0)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ev := range c.Events() {
		if ev.Agent != "test" {
			t.Errorf("event of agent %q", ev.Agent)
		}
		line := fmt.Sprintf("%d %s %s", ev.Step, ev.Node, ev.Body.Type())
		got = append(got, line)
	}
	slices.Sort(got[7:9]) // b and c finish in any order
	want := []string{
		"0  started",
		"1 a node_started", "1 a node_finished", "1  state_updated",
		"2  step_started", "2 b node_started", "2 c node_started", "2 b node_finished", "2 c node_finished", "2  step_finished",
		"3 done node_started", "3 done node_finished",
		"0  finished",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	fin := eventtest.Bodies[event.Finished](c)[0]
	if fin.Output != "a" || fin.Steps != 3 || fin.Error != "" || out.Output != "a" {
		t.Errorf("finished %+v", fin)
	}
	last := eventtest.Bodies[event.NodeFinished](c)[3]
	if !last.End || last.Parallel || len(last.Targets) != 0 {
		t.Errorf("the end: %+v", last)
	}
}

func TestStartSaysWhetherStatesAreShown(t *testing.T) {
	for text, want := range map[string]bool{chain: false, "settings: {log_state_snapshots: false}\n" + chain: true, "settings: {log_state_snapshots: true}\n" + chain: false} {
		_, c, err := drive(t.Context(), t, text, nil)
		if started := eventtest.Bodies[event.Started](c); err != nil || len(started) != 1 || started[0].NoSnapshots != want || started[0].Graph != "chain" || started[0].Node != "a" {
			t.Errorf("%s\nstarts with %+v, %v", text, started, err)
		}
	}
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := func(ctx context.Context, tk *run.Task) graph.Result {
			time.Sleep(time.Duration(tk.Visit) * time.Second)
			tk.Usage = tk.Usage.Add(chat.Usage{InputTokens: 10, OutputTokens: tk.Visit})
			if tk.Visit == 1 {
				f := &graph.Failure{Node: "b", Type: graph.ScriptNode, Message: "once"}
				return graph.Result{Targets: []string{"a"}, Failure: f}
			}
			return follow(tk)
		}
		out, _, err := drive(t.Context(), t, chain, nodes{"b": loop})
		if err != nil {
			t.Fatal(err)
		}
		if out.Steps != 5 || out.Failures != 1 || out.Usage.InputTokens != 20 || out.Usage.OutputTokens != 3 || out.Duration != 3*time.Second {
			t.Errorf("outcome %+v", out)
		}
		var names []string
		for _, n := range out.Nodes {
			names = append(names, n.Node)
			if n.Node == "b" && (n.Visits != 2 || n.Total != 3*time.Second || n.Max != 2*time.Second || n.Failures != 1 || n.Usage.OutputTokens != 3) {
				t.Errorf("stats of b: %+v", n)
			}
		}
		if !slices.Equal(names, []string{"a", "b", "done"}) {
			t.Errorf("nodes %v", names)
		}
		if v, ok := out.State.Get(graph.LastErrorKey); !ok || !strings.Contains(v.String(), "once") {
			t.Errorf("last error %v", v)
		}
	})
}

func TestFailures(t *testing.T) {
	broken := fault.New(fault.Tool, "out of order")
	for _, tt := range []struct {
		name  string
		ns    nodes
		code  fault.Code
		parts []string
	}{
		{"node", nodes{"b": func(context.Context, *run.Task) graph.Result { return graph.Result{Err: broken} }}, fault.Tool, []string{`"b"`, "out of order"}},
		{"panic", nodes{"b": func(context.Context, *run.Task) graph.Result { panic("at the disco") }}, fault.Failure, []string{`"b"`, "panic: at the disco", "run_test.go"}},
		{"unknown_target", nodes{"b": func(context.Context, *run.Task) graph.Result { return graph.Result{Targets: []string{"nowhere"}} }}, fault.Failure, []string{"nowhere"}},
		{"endless_loop", nodes{"b": func(context.Context, *run.Task) graph.Result { return graph.Result{Targets: []string{"a"}} }}, fault.Limit, []string{"100"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, c, err := drive(t.Context(), t, chain, tt.ns)
			if fault.CodeOf(err) != tt.code {
				t.Errorf("error %v of code %s, want %s", err, fault.CodeOf(err), tt.code)
			}
			for _, part := range tt.parts {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v lacks %q", err, part)
				}
			}
			fin := eventtest.Bodies[event.Finished](c)
			if len(fin) != 1 || fin[0].Error == "" || fin[0].Code != string(tt.code) || fin[0].Output != "" {
				t.Errorf("finished %+v", fin)
			}
			if out.Steps == 0 {
				t.Error("the outcome lacks the steps that were done")
			}
		})
	}
}

func TestSiblingsOfAFailedBranchAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := false
		text := strings.Replace(fan, "max_concurrency: 2", "max_concurrency: 8", 1)
		_, _, err := drive(t.Context(), t, text, nodes{
			"b": func(context.Context, *run.Task) graph.Result { return graph.Result{Err: errors.New("broken")} },
			"c": func(ctx context.Context, tk *run.Task) graph.Result {
				time.Sleep(time.Minute)
				done = true
				return follow(tk)
			},
		})
		if err == nil || !done {
			t.Errorf("error %v, the sibling finished: %t", err, done)
		}
	})
}

func TestTimeoutBetweenSuperSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "settings: {timeout: 10}\n" + chain
		out, _, err := drive(t.Context(), t, text, nodes{"a": sleeps(11 * time.Second)})
		if fault.CodeOf(err) != fault.Limit || !strings.Contains(err.Error(), "10s, before super-step 2 with b") {
			t.Errorf("error %v", err)
		}
		if out.Steps != 1 {
			t.Errorf("%d steps", out.Steps)
		}
		for _, d := range []time.Duration{9 * time.Second, 10 * time.Second} {
			if _, _, err := drive(t.Context(), t, text, nodes{"a": sleeps(d)}); err != nil {
				t.Errorf("in time, after %s: %v", d, err)
			}
		}
	})
}

func TestCancelledRunLeavesNothingRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		ns := nodes{}
		for _, id := range []string{"b", "c", "d", "e"} {
			ns[id] = sleeps(time.Hour)
		}
		begin := time.Now()
		_, c, err := drive(ctx, t, fan, ns)
		if fault.CodeOf(err) != fault.Canceled {
			t.Errorf("error %v", err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("it took %s", took)
		}
		if fin := eventtest.Bodies[event.Finished](c); len(fin) != 1 || fin[0].Code != string(fault.Canceled) {
			t.Errorf("finished %+v", fin)
		}
		// The bubble ends only when all its goroutines have.
	})
}

func TestCancelledBeforeItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran := false
	_, _, err := drive(ctx, t, chain, nodes{"a": func(context.Context, *run.Task) graph.Result { ran = true; return graph.Result{} }})
	if fault.CodeOf(err) != fault.Canceled || ran || !strings.Contains(err.Error(), "before super-step 1 with a:") {
		t.Errorf("error %v, ran: %t", err, ran)
	}
}

func TestEmitterErrorEndsTheRun(t *testing.T) {
	full := errors.New("disk full")
	for _, at := range []string{"started", "node_started", "node_finished", "state_updated", "finished"} {
		t.Run(at, func(t *testing.T) {
			p := plan(t, chain)
			ranB := false
			_, err := run.Run(t.Context(), run.Options{
				Work: run.Graph{Plan: p, Nodes: nodes{"a": sleeps(0), "b": func(_ context.Context, tk *run.Task) graph.Result { ranB = true; return follow(tk) }}, Start: start(p)},
				Events: event.NewScope(event.Func(func(_ context.Context, ev event.Event) error {
					if ev.Body.Type() == at {
						return full
					}
					return nil
				}), event.Source{}, nil),
			})
			if !errors.Is(err, full) {
				t.Errorf("error %v", err)
			}
			if ranB != (at == "finished") {
				t.Errorf("the run went on: %t", ranB)
			}
		})
	}
}

func TestRunWithoutListeners(t *testing.T) {
	p := plan(t, fan)
	out, err := run.Run(t.Context(), run.Options{Work: run.Graph{Plan: p, Nodes: nodes{"c": sleeps(0)}, Start: start(p)}})
	if err != nil || out.Output != "c" {
		t.Errorf("outcome %+v, %v", out, err)
	}
}
