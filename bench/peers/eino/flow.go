package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudwego/eino/compose"
)

func increment(_ context.Context, n int) (int, error) { return n + 1, nil }

// loop is a node that adds one to a counter and goes back to itself as long as a condition
// holds.
func loop(ctx context.Context, rounds int) (bench, error) {
	b := newBuilder[int, int]()
	node(b, "work", increment)
	b.edges(compose.START, "work")
	branch(b, "work", func(_ context.Context, n int) (string, error) {
		if n < rounds {
			return "work", nil
		}
		return compose.END, nil
	}, "work", compose.END)
	g, err := b.compile(ctx, loops)
	return func(ctx context.Context) error {
		n, err := g.Invoke(ctx, 0)
		return errors.Join(err, want("n", n, rounds))
	}, err
}

// choose is a node that goes on to those of n nodes whose condition holds, which are k, and
// one that counts their results.
func choose(ctx context.Context, k, n int) (bench, error) {
	b := newBuilder[int, int]()
	node(b, "split", func(_ context.Context, n int) (int, error) { return n, nil })
	node(b, "join", func(_ context.Context, results map[string]any) (int, error) { return len(results), nil })
	names, ends := make([]string, n), make(map[string]bool)
	for i := range names {
		w := fmt.Sprintf("w%d", i)
		names[i], ends[w] = w, true
		node(b, w, func(context.Context, int) (string, error) { return w, nil }, compose.WithOutputKey(w))
		b.edges(w, "join")
	}
	b.edges(compose.START, "split")
	b.err = errors.Join(b.err, b.AddBranch("split", compose.NewGraphMultiBranch(func(_ context.Context, k int) (map[string]bool, error) {
		taken := make(map[string]bool)
		for i, w := range names {
			if k > i {
				taken[w] = true
			}
		}
		return taken, nil
	}, ends)))
	b.edges("join", compose.END)
	g, err := b.compile(ctx)
	return func(ctx context.Context) error {
		total, err := g.Invoke(ctx, k)
		return errors.Join(err, want("total", total, k))
	}, err
}

// mapChains is a node that runs a chain of three nodes for each of n numbers, at once: eino has no map of its own.
func mapChains(ctx context.Context, n int) (bench, error) {
	one, err := row(ctx, 3, increment)
	if err != nil {
		return nil, err
	}
	outer := newBuilder[[]int, []int]()
	node(outer, "all", func(ctx context.Context, items []int) ([]int, error) {
		results := make([]int, len(items))
		return results, each(len(items), func(i int) (err error) {
			results[i], err = one.Invoke(ctx, items[i])
			return err
		})
	})
	outer.edges(compose.START, "all", compose.END)
	g, err := outer.compile(ctx)
	items := make([]int, n)
	for i := range items {
		items[i] = i
	}
	return func(ctx context.Context) error {
		results, err := g.Invoke(ctx, items)
		sum := 0
		for _, r := range results {
			sum += r
		}
		return errors.Join(err, want("sum", sum, n*(n-1)/2+3*n))
	}, err
}
