package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/run"
)

// bench is one case, made ready: run goes through its graph once, in r, and fails if
// the result is not the one it has to be.
type bench struct {
	run func(ctx context.Context, r runner) error
}

// makers makes the cases by name. The names are the same for all engines.
func makers() map[string]func() (bench, error) {
	return map[string]func() (bench, error){
		"chain_3":           func() (bench, error) { return counting(1) },
		"burst_10000":       func() (bench, error) { return counting(10_000) },
		"fanout_5":          fanOut,
		"chain_10":          func() (bench, error) { return noops(10) },
		"chain_1000":        func() (bench, error) { return noops(1000) },
		"react_agent_10":    func() (bench, error) { return react(10) },
		"react_agent_100":   func() (bench, error) { return react(100) },
		"subgraph_10":       func() (bench, error) { return subgraph(10) },
		"subgraph_100":      func() (bench, error) { return subgraph(100) },
		"loop_100":          func() (bench, error) { return loop(100) },
		"choose_5_of_10":    func() (bench, error) { return choose(5, 10) },
		"map_chains_100":    func() (bench, error) { return mapChains(100) },
		"wide_state_25x300": func() (bench, error) { return wide(5, 5, 300) },
		"wide_state_15x600": func() (bench, error) { return wide(3, 5, 600) },
		"wide_state_9x1200": func() (bench, error) { return wide(3, 3, 1200) },
	}
}

// runner runs graphs, and records the runs in store unless that is nil.
type runner struct{ store run.Store }

func (r runner) run(ctx context.Context, p *graph.Plan, nodes run.Executor, s graph.State) (graph.State, error) {
	start := run.StartCheckpoint(p, s)
	o := run.Options{Work: run.Graph{Plan: p, Nodes: nodes, Start: start}}
	if r.store == nil {
		out, err := run.Run(ctx, o)
		return out.State, err
	}
	g := p.Graph()
	journal, err := r.store.Create(ctx, run.Info{Agent: "bench", AgentDir: "/bench", Dir: "/bench", Graph: g.Name, Definition: g.Text, Status: run.Running}, start)
	if err != nil {
		return graph.State{}, err
	}
	o.Journal = journal
	out, err := run.Run(ctx, o)
	return out.State, errors.Join(err, journal.Close())
}

// work is a node that is a Go function. What it returns are the nodes to go to; none
// means the next of the definition.
type work func(ctx context.Context, t *run.Task) (targets []string, err error)

// functions are the nodes of a graph by id. A node without a function does nothing.
type functions map[string]work

// Execute implements run.Executor.
func (f functions) Execute(ctx context.Context, t *run.Task) graph.Result {
	if t.Node.Type == graph.EndNode {
		return graph.Result{Ended: true}
	}
	targets := t.Node.Next
	if do := f[t.Node.ID]; do != nil {
		to, err := do(ctx, t)
		if err != nil {
			return graph.Result{Err: err}
		}
		if to != nil {
			targets = to
		}
	}
	choice := t.Node.Choices["next"]
	if choice == nil {
		return graph.Result{Targets: targets}
	}
	ways, err := choice.Take(t.Draft, t.Loop, expr.Env{})
	res := graph.Result{Err: err}
	for _, w := range ways {
		res.Targets, res.Taken = append(res.Targets, w.To), append(res.Taken, w.ID)
	}
	return res
}

// plan parses a definition: "a -> b, c" is a node and its next, "a" an end node. head
// is YAML before the nodes.
func plan(head string, nodes ...string) (*graph.Plan, error) {
	var b strings.Builder
	start, _, _ := strings.Cut(nodes[0], " ")
	fmt.Fprintf(&b, "name: bench\nstart: %s\nsettings: {max_loop_iterations: 1000000}\n%snodes:\n", start, head)
	for _, n := range nodes {
		id, next, _ := strings.Cut(n, " -> ")
		if next == "" {
			fmt.Fprintf(&b, "  %s: {type: end}\n", id)
			continue
		}
		fmt.Fprintf(&b, "  %s: {type: script, script: x.sh, next: [%s]}\n", id, next)
	}
	g, _, err := graph.Parse("bench.yaml", []byte(b.String()))
	if err != nil {
		return nil, err
	}
	return graph.NewPlan(g), nil
}

func chain(n int) (*graph.Plan, error) {
	nodes := make([]string, 0, n+1)
	for i := range n {
		nodes = append(nodes, fmt.Sprintf("n%05d -> n%05d", i, i+1))
	}
	return plan("", append(nodes, fmt.Sprintf("n%05d", n))...)
}

func number(s interface {
	Get(string) (value.Value, bool)
}, key string,
) int64 {
	v, _ := s.Get(key)
	n, _ := v.AsInt()
	return n
}

func list(s interface {
	Get(string) (value.Value, bool)
}, key string,
) value.List {
	v, _ := s.Get(key)
	l, _ := v.AsList()
	return l
}

// want returns an error if what is not as it should be.
func want[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// counting is a chain of three nodes that add one to a counter, run so many times at
// once.
func counting(times int) (bench, error) {
	p, err := chain(3)
	count := func(_ context.Context, t *run.Task) ([]string, error) {
		t.Draft.Set("n", value.Of(number(t.Draft, "n")+1))
		return nil, nil
	}
	nodes := functions{"n00000": count, "n00001": count, "n00002": count}
	once := func(ctx context.Context, r runner) error {
		s, err := r.run(ctx, p, nodes, graph.State{})
		return errors.Join(err, want("n", number(s, "n"), 3))
	}
	if times == 1 {
		return bench{run: once}, err
	}
	return bench{run: func(ctx context.Context, r runner) error {
		return each(times, func(int) error { return once(ctx, r) })
	}}, err
}

// each calls do for 0 to n-1, all at once, and waits.
func each(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fanOut is a node, five side by side that each append to a list, and one that counts
// the list.
func fanOut() (bench, error) {
	p, err := plan("reducers: {results: append}\n", "start -> w1, w2, w3, w4, w5",
		"w1 -> join", "w2 -> join", "w3 -> join", "w4 -> join", "w5 -> join", "join -> end", "end")
	worker := func(_ context.Context, t *run.Task) ([]string, error) {
		t.Draft.Set("results", value.Of(t.Node.ID))
		return nil, nil
	}
	nodes := functions{
		"w1": worker, "w2": worker, "w3": worker, "w4": worker, "w5": worker,
		"join": func(_ context.Context, t *run.Task) ([]string, error) {
			t.Draft.Set("total", value.Of(list(t.Draft, "results").Len()))
			return nil, nil
		},
	}
	return bench{run: func(ctx context.Context, r runner) error {
		s, err := r.run(ctx, p, nodes, graph.State{})
		return errors.Join(err, want("total", number(s, "total"), 5))
	}}, err
}

// noops is a chain of nodes that do nothing.
func noops(n int) (bench, error) {
	p, err := chain(n)
	return bench{run: func(ctx context.Context, r runner) error {
		_, err := r.run(ctx, p, functions{}, graph.State{})
		return err
	}}, err
}

// react is a model that asks n times for a tool and then answers, and the tool. The
// messages are the state.
func react(n int) (bench, error) {
	p, err := plan("reducers: {messages: extend}\n", "model -> end", "tools -> model", "end")
	object := func(members ...value.Member) value.Value { return value.ObjectOf(members...).Value() }
	member := func(name string, v value.Value) value.Member { return value.Member{Name: name, Value: v} }
	replies := make([]value.Value, n+1)
	for i := range n {
		id := fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
		replies[i] = object(member("role", value.Of("assistant")), member("content", value.Of("")), member("tool_calls", value.ListOf(object(
			member("id", value.Of(id)), member("name", value.Of("search")),
			member("args", object(member("query", value.Of(strings.Repeat(id, 100))))))).Value()))
	}
	replies[n] = object(member("role", value.Of("assistant")), member("content", value.Of(strings.Repeat("answer", 100))))
	add := func(t *run.Task, message value.Value) {
		t.Draft.Set("messages", value.ListOf(message).Value())
	}
	field := func(v value.Value, name string) value.Value {
		v, _ = v.AsObject().Get(name)
		return v
	}
	tools := []string{"tools"}
	nodes := functions{
		"model": func(_ context.Context, t *run.Task) ([]string, error) {
			reply := replies[list(t.Draft, "messages").Len()/2]
			add(t, reply)
			if field(reply, "tool_calls").IsNull() {
				return nil, nil
			}
			return tools, nil
		},
		"tools": func(_ context.Context, t *run.Task) ([]string, error) {
			messages := list(t.Draft, "messages")
			calls, _ := field(messages.At(messages.Len()-1), "tool_calls").AsList()
			call := calls.At(0)
			query, _ := field(field(call, "args"), "query").AsString()
			result := strings.Repeat("result for query: "+query, 10)
			add(t, object(member("role", value.Of("tool")), member("tool_call_id", field(call, "id")), member("content", value.Of(result))))
			return nil, nil
		},
	}
	start := graph.NewState(value.ObjectOf(member("messages", value.ListOf(
		object(member("role", value.Of("user")), member("content", value.Of("hi?")))).Value())))
	return bench{run: func(ctx context.Context, r runner) error {
		s, err := r.run(ctx, p, nodes, start)
		if err != nil {
			return err
		}
		messages := list(s, "messages")
		if err := want("messages", messages.Len(), 2*n+2); err != nil {
			return err
		}
		result, _ := field(messages.At(2), "content").AsString()
		return want("length of a tool result", len(result), 36_180)
	}}, err
}

// subgraph is a node that runs, for each of n subjects at once, a graph of twelve node
// runs of which ten are a loop.
func subgraph(n int) (bench, error) {
	inner, err := plan("", "edit -> generate", "generate -> bump", "bump -> end", "end")
	if err != nil {
		return bench{}, err
	}
	again := []string{"bump"}
	text := func(t *run.Task, key string) string {
		v, _ := t.Draft.Get(key)
		s, _ := v.AsString()
		return s
	}
	innerNodes := functions{
		"edit": func(_ context.Context, t *run.Task) ([]string, error) {
			t.Draft.Set("subject", value.Of(text(t, "subject")+" - hohoho"))
			return nil, nil
		},
		"generate": func(_ context.Context, t *run.Task) ([]string, error) {
			t.Draft.Set("jokes", value.ListOf(value.Of("Joke about "+text(t, "subject"))).Value())
			return nil, nil
		},
		"bump": func(_ context.Context, t *run.Task) ([]string, error) {
			joke, _ := list(t.Draft, "jokes").At(0).AsString()
			joke += " a"
			t.Draft.Set("jokes", value.ListOf(value.Of(joke)).Value())
			if strings.HasSuffix(joke, bumped) {
				return nil, nil
			}
			return again, nil
		},
	}
	outer, err := plan("reducers: {jokes: extend}\n", "all -> end", "end")
	nodes := func(r runner) functions {
		return functions{"all": func(ctx context.Context, t *run.Task) ([]string, error) {
			subjects := list(t.Draft, "subjects")
			jokes := make([]value.Value, subjects.Len())
			err := each(len(jokes), func(i int) error {
				s, err := r.run(ctx, inner, innerNodes, graph.NewState(value.ObjectOf(value.Member{Name: "subject", Value: subjects.At(i)})))
				if err == nil {
					jokes[i] = list(s, "jokes").At(0)
				}
				return err
			})
			t.Draft.Set("jokes", value.ListOf(jokes...).Value())
			return nil, err
		}}
	}
	subjects := make([]value.Value, n)
	for i := range subjects {
		subjects[i] = value.Of(fmt.Sprintf("%05d", i) + strings.Repeat("subjects ", 555))
	}
	start := graph.NewState(value.ObjectOf(value.Member{Name: "subjects", Value: value.ListOf(subjects...).Value()}))
	return bench{run: func(ctx context.Context, r runner) error {
		s, err := r.run(ctx, outer, nodes(r), start)
		if err != nil {
			return err
		}
		jokes := list(s, "jokes")
		if err := want("jokes", jokes.Len(), n); err != nil {
			return err
		}
		joke, _ := jokes.At(n - 1).AsString()
		return want("length of a joke", len(joke), len("Joke about ")+5000+len(" - hohoho")+len(bumped))
	}}, err
}

const bumped = " a a a a a a a a a a" // end of a joke that the loop is done with
