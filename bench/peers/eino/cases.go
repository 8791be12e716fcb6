package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cloudwego/eino/compose"
)

// bench is one case, made ready: it goes through its graph once and fails if the result
// is not the one it has to be.
type bench func(ctx context.Context) error

// makers makes the cases by name. The names are the same for all engines.
func makers(ctx context.Context) map[string]func() (bench, error) {
	return map[string]func() (bench, error){
		"chain_3":           func() (bench, error) { return counting(ctx, 1) },
		"burst_10000":       func() (bench, error) { return counting(ctx, 10_000) },
		"fanout_5":          func() (bench, error) { return fanOut(ctx) },
		"chain_10":          func() (bench, error) { return noops(ctx, 10) },
		"chain_1000":        func() (bench, error) { return noops(ctx, 1000) },
		"react_agent_10":    func() (bench, error) { return react(ctx, 10) },
		"react_agent_100":   func() (bench, error) { return react(ctx, 100) },
		"subgraph_10":       func() (bench, error) { return subgraph(ctx, 10) },
		"subgraph_100":      func() (bench, error) { return subgraph(ctx, 100) },
		"loop_100":          func() (bench, error) { return loop(ctx, 100) },
		"choose_5_of_10":    func() (bench, error) { return choose(ctx, 5, 10) },
		"map_chains_100":    func() (bench, error) { return mapChains(ctx, 100) },
		"wide_state_25x300": func() (bench, error) { return wide(ctx, 5, 5, 300) },
		"wide_state_15x600": func() (bench, error) { return wide(ctx, 3, 5, 600) },
		"wide_state_9x1200": func() (bench, error) { return wide(ctx, 3, 3, 1200) },
	}
}

// loops lets a graph take as many steps as it needs.
var loops = compose.WithMaxRunSteps(1_000_000)

func want[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
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

// builder collects the errors of building a graph.
type builder[I, O any] struct {
	*compose.Graph[I, O]
	err error
}

func newBuilder[I, O any](opts ...compose.NewGraphOption) *builder[I, O] {
	return &builder[I, O]{Graph: compose.NewGraph[I, O](opts...)}
}

func node[I, O, A, B any](b *builder[I, O], name string, f func(context.Context, A) (B, error), opts ...compose.GraphAddNodeOpt) {
	b.err = errors.Join(b.err, b.AddLambdaNode(name, compose.InvokableLambda(f), opts...))
}

// edges adds the edges of a path.
func (b *builder[I, O]) edges(path ...string) {
	for i := range path[1:] {
		b.err = errors.Join(b.err, b.AddEdge(path[i], path[i+1]))
	}
}

// branch goes from a node to where choose says.
func branch[I, O, V any](b *builder[I, O], from string, choose func(context.Context, V) (string, error), targets ...string) {
	ends := make(map[string]bool, len(targets))
	for _, t := range targets {
		ends[t] = true
	}
	b.err = errors.Join(b.err, b.AddBranch(from, compose.NewGraphBranch(choose, ends)))
}

func (b *builder[I, O]) compile(ctx context.Context, opts ...compose.GraphCompileOption) (compose.Runnable[I, O], error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.Compile(ctx, opts...)
}

// row is a chain of n nodes that all do the same to an integer.
func row(ctx context.Context, n int, f func(context.Context, int) (int, error)) (compose.Runnable[int, int], error) {
	b := newBuilder[int, int]()
	path := []string{compose.START}
	for i := range n {
		name := fmt.Sprintf("n%05d", i)
		node(b, name, f)
		path = append(path, name)
	}
	b.edges(append(path, compose.END)...)
	return b.compile(ctx)
}

// counting is a chain of three nodes that add one to a counter, run so many times at
// once.
func counting(ctx context.Context, times int) (bench, error) {
	g, err := row(ctx, 3, func(_ context.Context, n int) (int, error) { return n + 1, nil })
	once := func(ctx context.Context) error {
		n, err := g.Invoke(ctx, 0)
		return errors.Join(err, want("n", n, 3))
	}
	if times == 1 {
		return once, err
	}
	return func(ctx context.Context) error {
		return each(times, func(int) error { return once(ctx) })
	}, err
}

// noops is a chain of nodes that do nothing.
func noops(ctx context.Context, n int) (bench, error) {
	g, err := row(ctx, n, func(_ context.Context, n int) (int, error) { return n, nil })
	return func(ctx context.Context) error {
		_, err := g.Invoke(ctx, 0)
		return err
	}, err
}

// fanOut is a node, five side by side of which each has a result, and one that counts
// the results.
func fanOut(ctx context.Context) (bench, error) {
	b := newBuilder[int, int]()
	node(b, "split", func(_ context.Context, n int) (int, error) { return n, nil })
	node(b, "join", func(_ context.Context, results map[string]any) (int, error) { return len(results), nil })
	b.edges(compose.START, "split")
	for _, w := range []string{"w1", "w2", "w3", "w4", "w5"} {
		node(b, w, func(context.Context, int) (string, error) { return w, nil }, compose.WithOutputKey(w))
		b.edges("split", w, "join")
	}
	b.edges("join", compose.END)
	g, err := b.compile(ctx)
	return func(ctx context.Context) error {
		total, err := g.Invoke(ctx, 0)
		return errors.Join(err, want("total", total, 5))
	}, err
}

// message is a chat message.
type message struct {
	role, content string
	calls         []call
	callID        string // of the call that this is the result of
}

// call is a call of a tool.
type call struct{ id, name, query string }

// react is a model that asks n times for a tool and then answers, and the tool. The
// messages are the graph's state.
func react(ctx context.Context, n int) (bench, error) {
	type state struct{ messages []message }
	replies := make([]message, n+1)
	for i := range n {
		id := fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
		replies[i] = message{role: "assistant", calls: []call{{id, "search", strings.Repeat(id, 100)}}}
	}
	replies[n] = message{role: "assistant", content: strings.Repeat("answer", 100)}
	// A node's input is added to the messages before it, the way eino's own agent does.
	add := func(_ context.Context, in []message, s *state) ([]message, error) {
		s.messages = append(s.messages, in...)
		return s.messages, nil
	}
	b := newBuilder[[]message, []message](compose.WithGenLocalState(func(context.Context) *state { return &state{} }))
	node(b, "model", func(_ context.Context, in []message) ([]message, error) {
		return []message{replies[len(in)/2]}, nil
	}, compose.WithStatePreHandler(add))
	node(b, "tools", func(_ context.Context, in []message) ([]message, error) {
		c := in[len(in)-1].calls[0]
		return []message{{role: "tool", callID: c.id, content: strings.Repeat("result for query: "+c.query, 10)}}, nil
	}, compose.WithStatePreHandler(add))
	node(b, "finish", func(_ context.Context, in []message) ([]message, error) { return in, nil }, compose.WithStatePreHandler(add))
	b.edges(compose.START, "model")
	branch(b, "model", func(_ context.Context, out []message) (string, error) {
		if len(out[0].calls) > 0 {
			return "tools", nil
		}
		return "finish", nil
	}, "tools", "finish")
	b.edges("tools", "model")
	b.edges("finish", compose.END)
	g, err := b.compile(ctx, loops)
	return func(ctx context.Context) error {
		messages, err := g.Invoke(ctx, []message{{role: "user", content: "hi?"}})
		if err != nil {
			return err
		}
		if err := want("messages", len(messages), 2*n+2); err != nil {
			return err
		}
		return want("length of a tool result", len(messages[2].content), 36_180)
	}, err
}

// subgraph is a node that runs, for each of n subjects at once, a graph of twelve node
// runs of which ten are a loop.
func subgraph(ctx context.Context, n int) (bench, error) {
	type joke struct{ subject, text string }
	inner := newBuilder[joke, joke]()
	node(inner, "edit", func(_ context.Context, j joke) (joke, error) {
		j.subject += " - hohoho"
		return j, nil
	})
	node(inner, "generate", func(_ context.Context, j joke) (joke, error) {
		j.text = "Joke about " + j.subject
		return j, nil
	})
	node(inner, "bump", func(_ context.Context, j joke) (joke, error) {
		j.text += " a"
		return j, nil
	})
	inner.edges(compose.START, "edit", "generate", "bump")
	branch(inner, "bump", func(_ context.Context, j joke) (string, error) {
		if strings.HasSuffix(j.text, bumped) {
			return compose.END, nil
		}
		return "bump", nil
	}, "bump", compose.END)
	one, err := inner.compile(ctx, loops)
	if err != nil {
		return nil, err
	}
	outer := newBuilder[[]string, []string]()
	node(outer, "all", func(ctx context.Context, subjects []string) ([]string, error) {
		jokes := make([]string, len(subjects))
		return jokes, each(len(jokes), func(i int) error {
			j, err := one.Invoke(ctx, joke{subject: subjects[i]})
			jokes[i] = j.text
			return err
		})
	})
	outer.edges(compose.START, "all", compose.END)
	g, err := outer.compile(ctx)
	subjects := make([]string, n)
	for i := range subjects {
		subjects[i] = fmt.Sprintf("%05d", i) + strings.Repeat("subjects ", 555)
	}
	return func(ctx context.Context) error {
		jokes, err := g.Invoke(ctx, subjects)
		if err != nil {
			return err
		}
		if err := want("jokes", len(jokes), n); err != nil {
			return err
		}
		return want("length of a joke", len(jokes[n-1]), len("Joke about ")+5000+len(" - hohoho")+len(bumped))
	}, err
}

const bumped = " a a a a a a a a a a" // end of a joke that the loop is done with
