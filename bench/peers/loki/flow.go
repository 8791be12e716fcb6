package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// flow parses a definition of script nodes, each an id and its other fields.
func flow(head string, nodes ...string) (*graph.Plan, error) {
	var b strings.Builder
	start, _, _ := strings.Cut(nodes[0], ":")
	fmt.Fprintf(&b, "name: bench\nstart: %s\nsettings: {max_loop_iterations: 1000000}\n%snodes:\n  end: {type: end}\n", start, head)
	for _, n := range nodes {
		id, fields, _ := strings.Cut(n, ": ")
		fmt.Fprintf(&b, "  %s: {type: script, script: x.sh, %s}\n", id, fields)
	}
	g, _, err := graph.Parse("bench.yaml", []byte(b.String()))
	if err != nil {
		return nil, err
	}
	return graph.NewPlan(g), nil
}

// increment adds one to a number of the state.
func increment(_ context.Context, t *run.Task) ([]string, error) {
	t.Draft.Set("n", value.Of(number(t.Draft, "n")+1))
	return nil, nil
}

// numbered is a state with a number.
func numbered(n int) graph.State {
	return graph.NewState(value.ObjectOf(value.Member{Name: "n", Value: value.Of(n)}))
}

// loop is a node that adds one to a counter and goes back to itself as long as a condition holds.
func loop(rounds int) (bench, error) {
	p, err := flow("", fmt.Sprintf(`work: next: [{when: "n < %d", to: work, max: 1000000}, {to: end}]`, rounds))
	return bench{run: func(ctx context.Context, r runner) error {
		s, err := r.run(ctx, p, functions{"work": increment}, numbered(0))
		return errors.Join(err, want("n", number(s, "n"), int64(rounds)))
	}}, err
}

// choose is a node that goes on to those of n nodes whose condition holds, which are k, and one that counts their results.
func choose(k, n int) (bench, error) {
	nodes := functions{"join": func(_ context.Context, t *run.Task) ([]string, error) {
		t.Draft.Set("total", value.Of(list(t.Draft, "results").Len()))
		return nil, nil
	}}
	var edges, rest []string
	for i := range n {
		id := fmt.Sprintf("w%d", i)
		edges = append(edges, fmt.Sprintf(`{when: "n > %d", to: %s}`, i, id))
		rest = append(rest, id+": next: join")
		nodes[id] = func(_ context.Context, t *run.Task) ([]string, error) {
			t.Draft.Set("results", value.Of(t.Node.ID))
			return nil, nil
		}
	}
	first := fmt.Sprintf("split: pick: all, next: [%s]", strings.Join(edges, ", "))
	p, err := flow("reducers: {results: append}\n", append([]string{first, "join: next: end"}, rest...)...)
	return bench{run: func(ctx context.Context, r runner) error {
		s, err := r.run(ctx, p, nodes, numbered(k))
		return errors.Join(err, want("total", number(s, "total"), int64(k)))
	}}, err
}

// mapChains is a node that runs a chain of three nodes for each of n numbers, in nested runs as nodes of type graph
// have them: what they record is a part of the record of the run.
func mapChains(n int) (bench, error) {
	inner, err := chain(3)
	if err != nil {
		return bench{}, err
	}
	innerNodes := functions{"n00000": increment, "n00001": increment, "n00002": increment}
	outer, err := plan("", "all -> end", "end")
	nodes := functions{"all": func(ctx context.Context, t *run.Task) ([]string, error) {
		items := list(t.Draft, "items")
		results := make([]value.Value, items.Len())
		err := each(len(results), func(i int) error {
			start := graph.NewState(value.ObjectOf(value.Member{Name: "n", Value: items.At(i)}))
			out, err := run.RunNested(ctx, run.NestedOptions{
				Work:  run.Graph{Plan: inner, Nodes: innerNodes, Start: run.StartCheckpoint(inner, start)},
				Steps: t.Steps.At(fmt.Sprintf("item/%d", i)),
			})
			results[i] = value.Of(number(out.State, "n"))
			return err
		})
		t.Draft.Set("results", value.ListOf(results...).Value())
		return nil, err
	}}
	items := make([]value.Value, n)
	for i := range items {
		items[i] = value.Of(i)
	}
	start := graph.NewState(value.ObjectOf(value.Member{Name: "items", Value: value.ListOf(items...).Value()}))
	return bench{run: func(ctx context.Context, r runner) error {
		s, err := r.run(ctx, outer, nodes, start)
		if err != nil {
			return err
		}
		var sum int64
		for _, v := range list(s, "results").All() {
			i, _ := v.AsInt()
			sum += i
		}
		return want("sum", sum, int64(n*(n-1)/2+3*n))
	}}, err
}
