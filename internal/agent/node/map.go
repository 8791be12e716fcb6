package node

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"

	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// mapOver runs the branch node once for each element of a list or member of an object, side by side, and collects
// the results of the branches in that order. Other changes to their state are lost.
func (r *Runner) mapOver(ctx context.Context, t *run.Task) (product, error) {
	collected, err := r.collect(ctx, t)
	if err != nil {
		return r.fail(ctx, t, err)
	}
	t.Draft.Set(t.Node.Map.CollectInto, value.ListOf(collected.results...).Value())
	return r.exit(ctx, t, product{inner: collected.failed})
}

// collection has the results of the items of a map, and what failed among them and was tolerated.
type collection struct {
	results []value.Value
	failed  graph.Failed
}

// collect returns the results of the items of a map.
func (r *Runner) collect(ctx context.Context, t *run.Task) (collection, error) {
	if len(t.Node.Next) == 0 && !t.Node.Defer && t.Undoes == nil {
		return collection{}, fmt.Errorf("map node has no next")
	}
	over, err := t.Node.Map.Over.Raw(t.Draft)
	if err != nil {
		return collection{}, fmt.Errorf("map node %q: over: %w", t.Node.ID, err)
	}
	list, err := r.itemsOf(ctx, t, over)
	if err != nil {
		return collection{}, fmt.Errorf("map node %q: %w", t.Node.ID, err)
	}
	return r.branches(ctx, t, list)
}

// subTask returns the task of the item with number i.
func (r *Runner) subTask(t *run.Task, base graph.State, i int, item value.Value) *run.Task {
	branch := r.Plan.Graph().Node(t.Node.Map.Branch)
	draft := graph.NewDraft(base).WithLoop(t.Loop)
	draft.Set(t.Node.Map.As, item)
	return &run.Task{
		Task:  graph.Task{Node: branch, Step: t.Step, Visit: t.Visit, Loop: t.Loop},
		Draft: draft, Life: t.Life,
		Events:  t.Events.With(func(s *event.Source) { s.Item = &i }),
		Steps:   t.Steps.At(itemKey(i)),
		Secrets: t.Secrets,
		Base:    t.Base + itemKey(i) + "/",
	}
}

// itemKey returns the beginning of the keys of the steps of an item.
func itemKey(i int) string { return "item/" + strconv.Itoa(i) }

// branch runs one branch and returns its result under key, and what failed in it and was tolerated.
func (r *Runner) branch(ctx context.Context, t *run.Task, key string) (v value.Value, failed graph.Failed, err error) {
	if ctx.Err() != nil {
		return v, failed, context.Cause(ctx)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if t.Node == nil {
		return v, failed, fmt.Errorf("there is no such node")
	}
	switch t.Node.Type {
	case graph.ScriptNode:
		if _, err := r.scriptBody(ctx, t); err != nil {
			return v, failed, err
		}
		v, ok := t.Draft.Get(key)
		if !ok {
			return v, failed, fmt.Errorf("script %s gave no value for %q", t.Node.Script.Script, key)
		}
		return v, failed, nil
	case graph.LLMNode, graph.AgentNode, graph.RAGNode, graph.ToolNode, graph.GraphNode, graph.ApprovalNode, graph.InputNode:
		p, err := r.work(ctx, t, key)
		if err != nil {
			return v, failed, err
		}
		return branchValue(t.Node, p, key), p.failure.CountFailed(p.inner), nil
	default:
		return v, failed, fmt.Errorf("a %s node cannot be the branch of a map", t.Node.Type)
	}
}

// branchValue returns what a branch other than a script passes to the map: the state_updates
// entry for key, the member of that name of a structured result, or the result.
func branchValue(n *graph.Node, p product, key string) value.Value {
	if p.updated {
		return p.wanted
	}
	structured := n.LLM != nil && n.LLM.OutputSchema != nil || n.Agent != nil && n.Agent.OutputSchema != nil || n.Tool != nil && n.Tool.OutputSchema != nil
	if structured && p.failure == nil {
		if v, ok := p.result.AsObject().Get(key); ok {
			return v
		}
	}
	return p.result
}
