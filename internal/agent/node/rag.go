package node

import (
	"context"
	"fmt"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/knowledge/rag"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Knowledge is the knowledge base of a rag node.
type Knowledge struct {
	rag.Searcher
	Version string // differs if the base, or the way it is searched, does
}

// rag searches in the knowledge base of a node. A failure goes to the node's fallback; without one the run fails.
func (r *Runner) rag(ctx context.Context, t *run.Task, wanted string) (product, error) {
	query, err := t.Node.RAG.Query.Strict(t.Draft)
	if err != nil {
		return r.fail(ctx, t, fmt.Errorf("query: %w", err))
	}
	base, ok := r.Knowledge[graph.InnerName(r.static, t.Node.ID)]
	if !ok {
		return product{}, &unfitError{fault.Config, fault.New(fault.Config, "node %q has no knowledge base: it is newer than the run", t.Node.ID)}
	}
	result, err := tryNode(ctx, r, t, func(ctx context.Context) (value.Value, error) {
		return withCache(ctx, r, t, func() []string { return []string{query, base.Version} }, func(ctx context.Context) (value.Value, error) {
			return within(ctx, t.Node, func(ctx context.Context) (value.Value, error) {
				found, err := rag.Retrieve(ctx, t.Steps, t.Events, base, rag.Query{Text: query, Budget: r.Context.Budget})
				addUsage(t, found.Usage)
				return passages(found), err
			})
		})
	})
	if err = suspendedUntilLater(t, err); err != nil {
		return r.fail(ctx, t, fmt.Errorf("searching the knowledge base: %w", asUnfit(err)))
	}
	return r.deliver(ctx, t, product{result: result}, nil, wanted)
}

// passages returns what was found as the result of a node: the passages as one text, and the
// documents they are from.
func passages(f rag.Found) value.Value {
	sources := make([]value.Value, 0, len(f.Hits))
	for _, path := range f.Sources() {
		sources = append(sources, value.Of(path))
	}
	return value.ObjectOf(
		value.Member{Name: "context", Value: value.Of(f.Context())},
		value.Member{Name: "sources", Value: value.ListOf(sources...).Value()},
	).Value()
}
