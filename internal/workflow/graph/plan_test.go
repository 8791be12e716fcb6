package graph

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/value"
)

// build makes a graph of nodes, the first of which is the start.
func build(reducers map[string]Reducer, nodes ...*Node) *Graph {
	g := &Graph{Name: "g", Start: nodes[0].ID, Nodes: nodes, Reducers: reducers, byID: map[string]*Node{}}
	g.Settings.MaxLoopIterations = DefaultMaxLoopIterations
	for _, n := range nodes {
		g.byID[n.ID] = n
	}
	return g
}

func step1(id string, next ...string) *Node {
	return &Node{ID: id, Type: ScriptNode, Next: next, HasNext: true, FanOut: len(next) > 1}
}

func joinAll(n *Node) *Node { n.Join = JoinAll; return n }

func endNode(id string) *Node { return &Node{ID: id, Type: EndNode} }

// follow runs the plan with work(task) as what each node does and returns the
// super-steps, as "a b | c | d", and the last progress.
func follow(t *testing.T, p *Plan, initial State, work func(Task, *Draft) Result) (string, Progress, error) {
	t.Helper()
	var trace []string
	pr := p.Begin(initial)
	for !pr.Done {
		tasks, err := p.Next(pr)
		if err != nil {
			return strings.Join(trace, " | "), pr, err
		}
		trace = append(trace, strings.Join(pr.Frontier, " "))
		if pr.Step != len(trace)-1 || pr.Step > 1000 {
			t.Fatalf("%d super-steps are done, progress says %d", len(trace)-1, pr.Step)
		}
		var results []Result
		for _, task := range tasks {
			if task.Step != len(trace) {
				t.Errorf("a task of super-step %d says %d", len(trace), task.Step)
			}
			d := NewDraft(pr.State)
			r := work(task, d)
			r.Node, r.Writes = task.Node.ID, d.Writes()
			results = append(results, r)
		}
		if pr, err = p.Apply(pr, results); err != nil {
			return strings.Join(trace, " | "), pr, err
		}
	}
	return strings.Join(trace, " | "), pr, nil
}

// static is what a node does that only follows its next.
func static(task Task, _ *Draft) Result {
	return Result{Targets: task.Node.Next, Ended: task.Node.Type == EndNode}
}

func TestSuperSteps(t *testing.T) {
	for _, tt := range []struct {
		name  string
		nodes []*Node
		want  string
	}{
		{"chain", []*Node{step1("a", "b"), step1("b", "e"), endNode("e")}, "a | b | e"},
		{
			"diamond",
			[]*Node{step1("top", "left", "right"), step1("left", "join"), step1("right", "join"), step1("join", "e"), endNode("e")},
			"top | left right | join | e",
		},
		{"duplicate_targets_run_once", []*Node{step1("a", "b", "b"), step1("b", "e"), endNode("e")}, "a | b | e"},
		{"uneven_branches_run_the_join_twice", []*Node{
			step1("top", "short", "long"), step1("short", "join"), step1("long", "long2"), step1("long2", "join"), step1("join", "e"), endNode("e"),
		}, "top | long short | join long2 | e join"},
		{"join_all_waits_for_the_longer_branch", []*Node{
			step1("top", "short", "long"), step1("short", "join"), step1("long", "long2"), step1("long2", "join"), joinAll(step1("join", "e")), endNode("e"),
		}, "top | long short | long2 | join | e"},
		{"join_all_in_a_row", []*Node{
			step1("top", "a", "b", "c"), step1("a", "j1"), step1("b", "b2"), step1("b2", "j1"), step1("c", "j2"),
			joinAll(step1("j1", "j2")), joinAll(step1("j2", "e")), endNode("e"),
		}, "top | a b c | b2 | j1 | j2 | e"},
		{"join_all_after_a_cycle", []*Node{
			step1("top", "x", "y"), step1("x", "x2"), step1("x2", "x3"),
			{ID: "x3", Type: ScriptNode, Next: []string{"j"}, Fallback: "x2"},
			step1("y", "j"),
			joinAll(step1("j", "e")), endNode("e"),
		}, "top | x y | x2 | x3 | j | e"},
		{"join_all_reached_once_does_not_wait", []*Node{step1("a", "j"), joinAll(step1("j", "e")), endNode("e")}, "a | j | e"},
		{"end_next_to_siblings", []*Node{step1("top", "e", "b"), step1("b", "c"), step1("c", "e"), endNode("e")}, "top | b e"},
		{"same_end_twice", []*Node{step1("top", "a", "b"), step1("a", "e"), step1("b", "e"), endNode("e")}, "top | a b | e"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, pr, err := follow(t, NewPlan(build(nil, tt.nodes...)), State{}, static)
			if err != nil || got != tt.want || !pr.Done {
				t.Errorf("steps are %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestPlanErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		nodes []*Node
		want  string
	}{
		{"no_way_on", []*Node{step1("a")}, ErrNoEnd.Error()},
		{"unknown_target", []*Node{step1("a", "nowhere")}, `graph "g" has no node "nowhere"`},
		{"two_ends", []*Node{step1("a", "y", "x"), endNode("x"), endNode("y")}, `end nodes "x", "y"`},
		{"loop", []*Node{step1("a", "b"), step1("b", "a")}, `node "a" visited 101 times (max_loop_iterations=100)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := follow(t, NewPlan(build(nil, tt.nodes...)), State{}, static)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestVisitsAreCountedPerSuperStep(t *testing.T) {
	loop := step1("a", "e")
	g := build(nil, loop, endNode("e"))
	g.Settings.MaxLoopIterations = 3
	times := 0
	again := func(task Task, d *Draft) Result {
		if task.Node.ID == "a" {
			if times++; task.Visit != times {
				t.Errorf("visit %d is numbered %d", times, task.Visit)
			}
			if times < 3 {
				return Result{Targets: []string{"a"}}
			}
		}
		return static(task, d)
	}
	p := NewPlan(g)
	if _, pr, err := follow(t, p, State{}, again); err != nil || p.Visits(pr, "a") != 3 {
		t.Errorf("three visits: %v", err)
	}
	times = -1000
	_, _, err := follow(t, p, State{}, func(task Task, d *Draft) Result { return Result{Targets: []string{"a"}} })
	if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Visits != 4 {
		t.Errorf("four visits: %v", err)
	}
}

func TestMerge(t *testing.T) {
	write := func(writes map[string]string) func(Task, *Draft) Result {
		return func(task Task, d *Draft) Result {
			for target, json := range writes {
				node, key, _ := strings.Cut(target, ".")
				if node == task.Node.ID {
					v, err := value.ParseJSON([]byte(json))
					if err != nil {
						t.Fatal(err)
					}
					d.Set(key, v)
				}
			}
			return static(task, d)
		}
	}
	fan := []*Node{step1("top", "c", "a", "b"), step1("a", "e"), step1("b", "e"), step1("c", "e"), endNode("e")}
	for _, tt := range []struct {
		name, reducers, initial, want, wantErr string
		writes                                 map[string]string
	}{
		{"disjoint", "", `{}`, `{"x":1,"y":2}`, "", map[string]string{"a.x": "1", "b.y": "2"}},
		{"appends_in_node_order", "l:append", `{}`, `{"l":["A","B","C"]}`, "", map[string]string{"c.l": `"C"`, "a.l": `"A"`, "b.l": `"B"`}},
		{"concat_after_what_was_there", "s:concat", `{"s":"0"}`, `{"s":"0\nA\nB"}`, "", map[string]string{"b.s": `"B"`, "a.s": `"A"`}},
		{"sum_onto_existing", "n:sum", `{"n":1}`, `{"n":6}`, "", map[string]string{"a.n": "2", "b.n": "3"}},
		{"collision", "", `{}`, "", `2 parallel branches wrote state key "x"`, map[string]string{"a.x": "1", "b.x": "1"}},
		{"equal_to_the_snapshot", "", `{"x":1}`, "", `2 parallel branches wrote state key "x"`, map[string]string{"a.x": "1", "b.x": "2"}},
		{"reducer_with_one_writer", "l:append", `{"l":[]}`, `{"l":[1]}`, "", map[string]string{"b.l": "1"}},
		{"reducer_type_error", "l:append", `{"l":""}`, "", `state key "l": reducer "append" needs an array`, map[string]string{"b.l": "1"}},
		{"end_node_goes_through_reducers", "l:append", `{}`, `{"l":[1,2]}`, "", map[string]string{"a.l": "1", "e.l": "2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reducers := map[string]Reducer{}
			if key, name, ok := strings.Cut(tt.reducers, ":"); ok {
				reducers[key] = Reducer(name)
			}
			_, pr, err := follow(t, NewPlan(build(reducers, fan...)), state(t, tt.initial), write(tt.writes))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error is %v, want %q", err, tt.wantErr)
				}
				return
			}
			if got := string(pr.State.AppendJSON(nil)); err != nil || got != tt.want {
				t.Errorf("state is %s, %v, want %s", got, err, tt.want)
			}
		})
	}
	t.Run("end_wins_over_its_sibling", func(t *testing.T) {
		for _, sibling := range []string{"a", "z"} { // before and after the end node
			g := build(nil, step1("top", "e", sibling), step1(sibling, "e"), endNode("e"))
			_, pr, err := follow(t, NewPlan(g), State{}, write(map[string]string{sibling + ".x": "1", "e.x": "2"}))
			if got := string(pr.State.AppendJSON(nil)); err != nil || got != `{"x":2}` {
				t.Errorf("state after %s and e is %s, %v", sibling, got, err)
			}
		}
	})
}

func TestFailures(t *testing.T) {
	g := build(nil, step1("begin", "top"), step1("top", "a", "b"), step1("a", "e"), step1("b", "e"), endNode("e"))
	p := NewPlan(g)
	fail := func(task Task, d *Draft) Result {
		r := static(task, d)
		if id := task.Node.ID; id == "a" || id == "b" {
			r.Failure = &Failure{Node: id, Type: ScriptNode, Message: "boom"}
		}
		return r
	}
	_, pr, err := follow(t, p, State{}, fail)
	if got := string(pr.State.AppendJSON(nil)); err != nil || pr.Failures != 2 || got != `{"_last_error":{"node":"b","type":"script","message":"boom"}}` {
		t.Errorf("state is %s, %d failures, %v", got, pr.Failures, err)
	}

	targets, ok := p.OnFailure(g.Node("a"))
	if !ok || targets[0] != "e" {
		t.Errorf("a failing script should go to its next: %v, %v", targets, ok)
	}
	strict := *g
	strict.Settings.OnFailure = FailStop
	if _, ok := NewPlan(&strict).OnFailure(g.Node("a")); ok {
		t.Error("on_failure: fail tolerates a failure")
	}
	rescued := step1("r", "e")
	rescued.Fallback = "rescue"
	if targets, ok := NewPlan(&strict).OnFailure(rescued); !ok || targets[0] != "rescue" {
		t.Errorf("a fallback should be taken: %v, %v", targets, ok)
	}
	if _, ok := p.OnFailure(endNode("x")); ok {
		t.Error("only llm and script nodes tolerate failures")
	}
}

// TestSameStateInEveryOrder runs random graphs whose nodes write random values
// through reducers, once in order and several times with the results of each
// super-step handed over in random order: the steps and the final state are the same.
func TestSameStateInEveryOrder(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := NewPlan(randomGraph(rnd))
		work := func(task Task, d *Draft) Result {
			// What a node does depends on nothing but itself and the state it sees.
			own := rand.New(rand.NewPCG(seed, uint64(task.Step)<<32|uint64(len(task.Node.ID))<<16|uint64(task.Node.ID[len(task.Node.ID)-1])))
			d.Set("log", value.Of(fmt.Sprintf("%s@%d", task.Node.ID, task.Step)))
			d.Set("total", value.Of(int64(own.IntN(100))))
			d.Set("own_"+task.Node.ID, value.Of(int64(own.IntN(3))))
			if own.IntN(4) == 0 {
				d.Set("best", value.Of(own.Float64()))
			}
			return static(task, d)
		}
		var first string
		for round := range 5 {
			pr := p.Begin(NewState(nil))
			for steps := 0; !pr.Done; steps++ {
				if pr.Step != steps {
					t.Fatalf("seed %d: %d super-steps are done, progress says %d", seed, steps, pr.Step)
				}
				tasks, err := p.Next(pr)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				var results []Result
				for _, task := range tasks {
					d := NewDraft(pr.State)
					r := work(task, d)
					r.Node, r.Writes = task.Node.ID, d.Writes()
					results = append(results, r)
				}
				if round > 0 {
					rnd.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
				}
				if pr, err = p.Apply(pr, results); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			got := string(pr.State.AppendJSON(nil))
			if round == 0 {
				first = got
			} else if got != first {
				t.Fatalf("seed %d: the order of results changed the state:\n%s\n%s", seed, first, got)
			}
		}
	}
}

// randomGraph is acyclic: every node leads to later ones, and all ways to the end.
func randomGraph(rnd *rand.Rand) *Graph {
	n := 3 + rnd.IntN(12)
	nodes := make([]*Node, 0, n+1)
	for i := range n {
		var next []string
		for range 1 + rnd.IntN(3) {
			if j := i + 1 + rnd.IntN(n-i); j < n {
				next = append(next, fmt.Sprintf("n%02d", j))
			} else {
				next = append(next, "end")
			}
		}
		node := step1(fmt.Sprintf("n%02d", i), next...)
		if rnd.IntN(3) == 0 {
			node.Join = JoinAll
		}
		nodes = append(nodes, node)
	}
	nodes = append(nodes, endNode("end"))
	return build(map[string]Reducer{"log": ReduceAppend, "total": ReduceSum, "best": ReduceMax}, nodes...)
}

// TestJoinAllRunsOnce checks on random graphs that a join: all node whose
// predecessors are all on declared edges runs exactly once.
func TestJoinAllRunsOnce(t *testing.T) {
	for seed := range uint64(300) {
		g := randomGraph(rand.New(rand.NewPCG(seed, 2)))
		for _, n := range g.Nodes {
			n.Join = JoinAll // the end too, so that no branch is dropped
		}
		p := NewPlan(g)
		_, pr, err := follow(t, p, State{}, static)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for id, visits := range p.VisitCounts(pr) {
			if visits != 1 {
				t.Errorf("seed %d: node %s ran %d times", seed, id, visits)
			}
		}
	}
}

func TestRestore(t *testing.T) {
	p := NewPlan(build(nil, step1("a", "b"), step1("b", "e"), endNode("e")))
	if n := p.Visits(Progress{}, "a"); n != 0 {
		t.Errorf("%d visits before the begin", n)
	}
	pr := p.Begin(State{})
	tasks, _ := p.Next(pr)
	pr, err := p.Apply(pr, []Result{{Node: tasks[0].Node.ID, Targets: []string{"b"}}})
	if err != nil {
		t.Fatal(err)
	}
	back := p.Restore(Progress{Step: pr.Step, State: pr.State, Frontier: slices.Clone(pr.Frontier)}, p.VisitCounts(pr))
	if p.Visits(back, "a") != 1 || p.Visits(back, "b") != 0 || back.Frontier[0] != "b" {
		t.Errorf("restored %+v", back)
	}
}
