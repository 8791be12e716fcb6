package node

import (
	"context"
	"fmt"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/run"
)

// exit returns p with where it goes: to the fallback of a node that failed and has one, and else to its next. A node no edge of
// which holds has failed.
func (r *Runner) exit(ctx context.Context, t *run.Task, p product) (product, error) {
	if p.failure != nil && t.Node.Fallback != "" {
		return r.leave(ctx, t, p, "fallback", t.Node.Fallback)
	}
	return r.depart(ctx, t, p, "next", t.Node.Next...)
}

// depart returns p with the targets at a place of the node, or at its fallback if no edge holds at the place.
func (r *Runner) depart(ctx context.Context, t *run.Task, p product, place string, ids ...string) (product, error) {
	left, err := r.leave(ctx, t, p, place, ids...)
	if err == nil || p.failure != nil || t.Node.Fallback == "" {
		return left, err
	}
	failed, err := r.tolerate(ctx, t, err)
	if err != nil {
		return failed, err
	}
	p.failure = failed.failure
	return r.exit(ctx, t, p)
}

// leave returns p with the targets at a place of the node: those of the choice there, or else ids.
func (r *Runner) leave(ctx context.Context, t *run.Task, p product, place string, ids ...string) (product, error) {
	c := t.Node.Choices[place]
	if c == nil || isItem(t) { // where an item would go does not matter
		if p.targets = ids; place != "next" && c == nil {
			p.taken = []string{t.Node.ID + "." + place}
		}
		return p, nil
	}
	var state graph.Lookup = t.Draft
	if p.failure != nil { // which is where the state will have it
		state = graph.Overlay{Lookup: state, Key: graph.LastErrorKey, Value: p.failure.Value()}
	}
	now, err := r.clock(ctx, t, c.UsesClock(), steps.Step{Key: "now/" + place, Name: "now_is_past"})
	if err != nil {
		return product{}, err
	}
	ways, err := c.Take(state, t.Loop, expr.Env{Now: now})
	if err != nil {
		return product{}, fmt.Errorf("%s: %w", place, err)
	}
	for _, w := range ways {
		p.targets, p.taken = append(p.targets, w.To), append(p.taken, w.ID)
	}
	return p, nil
}

// clock returns the time that conditions see if they use it, which is the same when the run resumes after an interruption: the result of a step.
func (r *Runner) clock(ctx context.Context, t *run.Task, used bool, s steps.Step) (time.Time, error) {
	if !used {
		return time.Time{}, nil
	}
	s.Kind = steps.Time
	return steps.Do(ctx, t.Steps, s, func(context.Context) (time.Time, error) { return r.Now(), nil })
}
