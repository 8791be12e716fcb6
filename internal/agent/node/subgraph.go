package node

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// subgraphKey begins the keys of the steps of a subgraph in the record of its node.
const subgraphKey = "graph"

// subgraph runs the subgraph of a node, and writes what leaves it.
func (r *Runner) subgraph(ctx context.Context, t *run.Task, wanted string) (product, error) {
	sub := t.Node.Sub
	state, err := sub.Initial(t.Draft)
	if err != nil {
		return r.fail(ctx, t, fmt.Errorf("with: %w", err))
	}
	out, err := tryNode(ctx, r, t, func(ctx context.Context) (subgraphEnd, error) {
		return within(ctx, t.Node, func(ctx context.Context) (subgraphEnd, error) { return r.runSubgraph(ctx, t, state) })
	})
	if err != nil {
		return r.fail(ctx, t, err)
	}
	p := product{result: value.Of(out.output), inner: out.failed}
	for _, m := range out.results {
		t.Draft.Set(m.Name, m.Value)
		if m.Name == wanted {
			p.wanted, p.updated = m.Value, true
		}
	}
	if v, updated := t.Draft.ApplyUpdates(t.Node.Updates, outputKey, p.result, wanted); updated {
		p.wanted, p.updated = v, true
	}
	return r.exit(ctx, t, p)
}

// subgraphEnd is what comes out of a subgraph.
type subgraphEnd struct {
	output  string
	results []value.Member
	failed  graph.Failed
}

// runSubgraph runs the subgraph of a node once. What it does is recorded below the node.
func (r *Runner) runSubgraph(ctx context.Context, t *run.Task, state graph.State) (subgraphEnd, error) {
	sub := t.Node.Sub
	def, outer := sub.Graph, r.budget()
	inner := &Runner{Options: r.Options, static: graph.InnerName(r.static, t.Node.ID)}
	own := run.NewBudget(def.Settings.Budget, chat.Usage{}).SetIn("settings.budget of node " + inner.static)
	budget := own.Under(outer)
	inner.Plan = r.Plan.Inner(t.Node.ID)
	inner.within = r.eventName(t)
	inner.around = r.questionPlace(t)
	if try := strings.TrimSuffix(strings.TrimPrefix(t.Steps.Key(""), t.Base), "/"); try != "" {
		inner.around += "/" + try
	}
	inner.Context.Model = cmp.Or(def.Model, r.Context.Model)
	inner.Context.Sampling = def.Sampling.Over(r.Context.Sampling)
	if budget != nil {
		inner.Context.Budget = budget
	}
	out, err := run.RunNested(ctx, run.NestedOptions{
		Work:   run.Graph{Plan: inner.Plan, Nodes: inner, Start: run.StartCheckpoint(inner.Plan, state)},
		Events: t.Events.With(func(s *event.Source) { s.Item = nil }), Steps: t.Steps.At(subgraphKey), Budget: budget, Now: r.Now,
		Within: inner.within, Turn: t.Turn, Secrets: t.Secrets,
	})
	addUsage(t, out.Usage)
	if err != nil {
		if isOwnLimit(err, own, outer) {
			err = &limitError{err}
		}
		return subgraphEnd{}, err
	}
	results, err := sub.Results(out.State)
	if err != nil {
		return subgraphEnd{}, fmt.Errorf("outputs: %w", err)
	}
	return subgraphEnd{out.Output, results, graph.Failed{Failures: out.Failures, Unhandled: out.Unhandled}}, nil
}

// budget returns the budget of the run, nil for none.
func (r *Runner) budget() *run.Budget {
	b, _ := r.Context.Budget.(*run.Budget)
	return b
}

// eventName returns the name of the node of t as that of its subgraph: with the item of a map.
func (r *Runner) eventName(t *run.Task) string {
	name := t.Events.Node
	if isItem(t) {
		name += fmt.Sprintf("#%d", *t.Events.Item)
	}
	return name
}

// name returns the name of the node of t, with the subgraphs that it is in.
func (r *Runner) name(t *run.Task) string { return graph.InnerName(r.within, t.Node.ID) }

// limitError says that a subgraph reached a limit of its own. That is a failure of its node: the run can continue without it.
type limitError struct{ error }

// Unwrap returns the limit.
func (e *limitError) Unwrap() error { return e.error }

// isOwnLimit reports whether err is about a limit that a subgraph sets itself: its budget own, which is below outer, its timeout, or its
// loops.
func isOwnLimit(err error, own, outer *run.Budget) bool {
	return fault.CodeOf(err) == fault.Limit && (!is[*run.ExceededError](err) || own.Refused(err) && !outer.Refused(err))
}
