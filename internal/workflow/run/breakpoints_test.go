package run_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

const stoppingGraph = `
name: stopping
start: draft
nodes:
  draft: {type: script, script: a.sh, state_updates: {}, next: [left, right]}
  left: {type: script, script: a.sh, state_updates: {}, next: join}
  right: {type: script, script: a.sh, state_updates: {}, next: join}
  join: {type: script, script: a.sh, state_updates: {}, next: [draft, end]}
  end: {type: end}
`

// stopping is a service whose runs go from draft over left and right to join, twice, and then to the end.
func stopping(t *testing.T, store run.Store) (*run.Service, run.Job) {
	t.Helper()
	g, _, err := graph.Parse("graph.yaml", []byte(stoppingGraph))
	if err != nil {
		t.Fatal(err)
	}
	p := graph.NewPlan(g)
	ns := nodes{"join": func(_ context.Context, task *run.Task) graph.Result {
		if task.Visit == 1 {
			return graph.Result{Targets: []string{"draft"}}
		}
		return graph.Result{Targets: []string{"end"}}
	}}
	j := run.Job{
		Info: run.Info{Agent: "x", Fingerprint: graph.Fingerprint(g), Definition: g.Text}, Graph: g, Durability: graph.DurabilityProcess,
		Start: run.StartCheckpoint(p, graph.State{}), Events: event.NewScope(nil, event.Source{}, nil),
		Make: func(_ context.Context, at run.Point) (run.Work, func() error, error) {
			return run.Graph{Plan: p, Nodes: ns, Start: at.Last, Tasks: at.Tasks, Set: at.Set, Stops: at.Stops, Past: at.Past}, nil, nil
		},
	}
	return service(lasting{Store: store}, j), j
}

// TestBreakpoints resumes a run with the same breakpoints until it is done.
func TestBreakpoints(t *testing.T) {
	for _, tt := range []struct {
		name   string
		breaks []string
		steps  int
		want   []string // where it stops, and after which super-step
	}{
		{name: "none"},
		{name: "before_the_start", breaks: []string{"draft"}, want: []string{"0 before draft", "3 before draft"}},
		{name: "before_one_of_two", breaks: []string{"right"}, want: []string{"1 before right", "4 before right"}},
		{name: "after_one_of_two", breaks: []string{"left:after"}, want: []string{"2 after left", "5 after left"}},
		{name: "before_the_end", breaks: []string{"end"}, want: []string{"6 before end"}},
		{name: "after_comes_first", breaks: []string{"join", "left:after"}, want: []string{"2 after left", "5 after left"}},
		{name: "steps", steps: 3, want: []string{"3 after super-step 3", "6 after super-step 6"}},
		{name: "steps_and_nodes", steps: 2, breaks: []string{"join:after"}, want: []string{"2 after super-step 2", "3 after join", "5 after super-step 5", "6 after join"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := memstore.New(nil)
			s, j := stopping(t, store)
			var err error
			if j.Stops, err = run.ParseBreakpoints(j.Graph, tt.breaks); err != nil {
				t.Fatal(err)
			}
			j.Stops.Steps = tt.steps
			out, err := s.Start(t.Context(), j)
			var got []string
			for range 10 {
				if err == nil {
					break
				}
				at, ok := errors.AsType[*run.BreakError](err)
				if !ok || fault.CodeOf(err) != fault.Suspended || !strings.Contains(fault.HintOf(err), "loki --resume "+out.Run) {
					t.Fatalf("error %v, hint %q", err, fault.HintOf(err))
				}
				info, infoErr := store.Info(t.Context(), out.Run)
				if infoErr != nil || info.Status != run.Suspended || info.Breakpoint != at.Place || info.Steps != at.Step {
					t.Errorf("on record: %+v, %v", info, infoErr)
				}
				got = append(got, string(rune('0'+at.Step))+" "+at.Place)
				out, err = s.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: out.Run, Break: tt.breaks, Steps: tt.steps}})
			}
			if err != nil || out.Steps != 7 || !slices.Equal(got, tt.want) {
				t.Errorf("stopped at %q, and ended after %d super-steps with %v", got, out.Steps, err)
			}
		})
	}
}

// TestBreakpointAfterDeath lets the process die between the super-step before a breakpoint and the record that the run stopped there.
func TestBreakpointAfterDeath(t *testing.T) {
	store := memstore.New(nil)
	s, j := stopping(t, store)
	p := graph.NewPlan(j.Graph)
	died, err := store.Create(t.Context(), j.Info, j.Start)
	if err != nil {
		t.Fatal(err)
	}
	pr, err := p.Apply(j.Start.Progress(p), []graph.Result{{Node: "draft", Targets: []string{"left", "right"}}})
	if err == nil {
		err = errors.Join(died.Working(t.Context()), died.Commit(t.Context(), run.CheckpointOf(p, pr, usage(0)), nil), store.Orphan(died.ID()))
	}
	if err != nil {
		t.Fatal(err)
	}
	again := run.Resumption{Continuation: run.Continuation{ID: died.ID(), Break: []string{"left"}}}
	for _, want := range []string{"before left, after super-step 1", "before left, after super-step 4"} {
		if _, err := s.Resume(t.Context(), again); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("stopped with %v, want %s", err, want)
		}
	}
}

func TestBreakpointsRefused(t *testing.T) {
	s, j := stopping(t, memstore.New(nil))
	for _, tt := range []struct{ place, want, hint string }{
		{"drft", `node "drft", which the graph stopping does not have`, "did you mean draft?"},
		{"publishing", `node "publishing"`, "its nodes: draft, left, right, join, end"},
		{"end:after", `after node "end", which ends it`, "stop before it: end"},
		{"left:before", `node "left:before"`, ""},
		{"", `node ""`, ""},
	} {
		_, err := run.ParseBreakpoints(j.Graph, []string{"draft", tt.place})
		if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), tt.want) || !strings.Contains(fault.HintOf(err), tt.hint) {
			t.Errorf("%q: %v, hint %q", tt.place, err, fault.HintOf(err))
		}
	}
	const inside = `name: nest
start: find
nodes:
  find: {type: graph, start: search, nodes: {search: {type: llm, prompt: p, next: deep}, deep: {type: graph, start: dive, nodes: {dive: {type: llm, prompt: p, next: top}, top: {type: end}}, next: done}, done: {type: end}}, next: each}
  each: {type: map, over: "{{items}}", branch: item, as: x, collect_into: all, next: end}
  item: {type: graph, start: look, nodes: {look: {type: llm, prompt: p, next: end}, end: {type: end}}}
  end: {type: end}
`
	nest := graphPlan(t, inside).Graph()
	for _, tt := range []struct{ place, want, hint string }{
		{"find/search", `find/search, which is inside the subgraph of node "find"`, "stop before the whole of it, find, or after it, find:after"},
		{"find.search:after", `find/search, which is inside`, "find:after"},
		{"dive", `find/deep/dive, which is inside the subgraph of node "find"`, "find:after"},
		{"item", `"item", which map "each" runs for each item`, "the whole of it, each"},
		{"item/look", `item/look, which is inside`, "the whole of it, each"},
		{"find/serch", `"find/serch", which the graph nest does not have`, ""},
	} {
		_, err := run.ParseBreakpoints(nest, []string{tt.place})
		if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), tt.want) || !strings.Contains(fault.HintOf(err), tt.hint) {
			t.Errorf("%q: %v, hint %q", tt.place, err, fault.HintOf(err))
		}
	}
	off, dry, replayed := j, *s, *s
	off.Durability, dry.Unrecorded, replayed.Always, replayed.Volatile = graph.DurabilityOff, true, true, true
	chat := job(&attempt{errs: []error{nil}}, nil)
	for _, tt := range []struct {
		s    *run.Service
		j    run.Job
		hint string
	}{{s, off, "durability: off"}, {&dry, j, "--dry-run"}, {&replayed, j, "--replay"}, {s, chat, "leave out --break"}} {
		tt.j.Stops.Steps = 1
		if _, err := tt.s.Start(t.Context(), tt.j); fault.CodeOf(err) != fault.Usage || !strings.Contains(fault.HintOf(err), tt.hint) {
			t.Errorf("%v, hint %q, want %s", err, fault.HintOf(err), tt.hint)
		}
	}
}
