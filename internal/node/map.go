package node

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"

	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/run"
	"loki/internal/value"
)

// mapOver runs the branch node once for each element of a list, side by side, and collects
// the results of the branches in the order of the list. Other changes to their state are lost.
func (r *Runner) mapOver(ctx context.Context, t *run.Task) (product, error) {
	m := t.Node.Map
	if len(t.Node.Next) == 0 {
		return product{}, fmt.Errorf("map node has no next")
	}
	over, err := m.Over.Raw(t.Draft)
	if err != nil {
		return product{}, fmt.Errorf("map node %q: over: %w", t.Node.ID, err)
	}
	items, ok := over.AsList()
	if !ok {
		return product{}, fmt.Errorf("map node %q: over: %s is not an array but a %s", t.Node.ID, m.Over.Source, over.Kind())
	}
	settings := r.Plan.Graph().Settings
	width := max(1, cmp.Or(m.MaxConcurrency, settings.MaxConcurrency))
	collected, err := r.branches(ctx, t, items, min(width, items.Len()))
	if err != nil {
		return product{}, err
	}
	t.Draft.Set(m.CollectInto, value.ListOf(collected...).Value())
	return r.exit(ctx, t, product{})
}

// branches runs the branch for every item, at most width at once, and waits for all.
// The error is that of the smallest index that failed, or else of the smallest that waits.
func (r *Runner) branches(ctx context.Context, t *run.Task, items value.List, width int) ([]value.Value, error) {
	var (
		base      = t.Draft.State()
		collected = make([]value.Value, items.Len()) // element i is written by the goroutine that took i
		errs      = make([]error, items.Len())
		next      = make(chan int)
		wg        sync.WaitGroup
		progress  = mapProgress{task: t, total: items.Len()}
		turns     = make([]*run.Turn, items.Len())
	)
	if r.Plan.Graph().IsQuestion(t.Node) {
		turns = t.Turn.Turns(items.Len())
	}
	for range width {
		wg.Go(func() { // ends when next is closed
			for i := range next {
				sub := r.subTask(t, base, i, items.At(i))
				sub.Turn = turns[i]
				collected[i], errs[i] = r.branch(ctx, sub, t.Node.Map.OutputKey)
				sub.Turn.End()
				if err := progress.finish(ctx, sub); err != nil && errs[i] == nil {
					errs[i] = err
				}
			}
		})
	}
	for i := range items.Len() {
		next <- i
	}
	close(next)
	wg.Wait()
	return collected, r.itemsError(ctx, t, errs)
}

// itemsError returns the error of a map whose items ended with errs.
func (r *Runner) itemsError(ctx context.Context, t *run.Task, errs []error) error {
	var waits error
	for i, err := range errs {
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case fault.CodeOf(err) != fault.Suspended:
			return fmt.Errorf("map node %q: branch %q failed for item [%d]: %w", t.Node.ID, t.Node.Map.Branch, i, err)
		case waits == nil:
			waits = err
		}
	}
	return waits
}

// subTask returns the task of one item.
func (r *Runner) subTask(t *run.Task, base graph.State, i int, item value.Value) *run.Task {
	branch := r.Plan.Graph().Node(t.Node.Map.Branch)
	draft := graph.NewDraft(base).WithLoop(t.Loop)
	draft.Set(t.Node.Map.As, item)
	return &run.Task{
		Task:   graph.Task{Node: branch, Step: t.Step, Visit: t.Visit, Loop: t.Loop},
		Draft:  draft,
		Events: t.Events.With(func(s *event.Source) { s.Item = &i }),
		Steps:  t.Steps.At(itemKey(i)),
		Base:   t.Base + itemKey(i) + "/",
	}
}

// itemKey returns the beginning of the keys of the steps of an item.
func itemKey(i int) string { return "item/" + strconv.Itoa(i) }

// branch runs one branch and returns its result under key.
func (r *Runner) branch(ctx context.Context, t *run.Task, key string) (v value.Value, err error) {
	if ctx.Err() != nil {
		return v, context.Cause(ctx)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if t.Node == nil {
		return v, fmt.Errorf("there is no such node")
	}
	switch t.Node.Type {
	case graph.ScriptNode:
		if err := r.scriptBody(ctx, t); err != nil {
			return v, err
		}
		v, ok := t.Draft.Get(key)
		if !ok {
			return v, fmt.Errorf("script %s gave no value for %q", t.Node.Script.Script, key)
		}
		return v, nil
	case graph.LLMNode, graph.AgentNode, graph.RAGNode, graph.ToolNode, graph.ApprovalNode, graph.InputNode:
		p, err := r.work(ctx, t, key)
		if err != nil {
			return v, err
		}
		return branchValue(t.Node, p, key), nil
	default:
		return v, fmt.Errorf("a %s node cannot be the branch of a map", t.Node.Type)
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

// mapProgress counts finished items and adds up their usage.
type mapProgress struct {
	mu       sync.Mutex
	task     *run.Task
	finished int
	total    int
}

func (p *mapProgress) finish(ctx context.Context, sub *run.Task) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished++
	addUsage(p.task, sub.Usage)
	return p.task.Events.Emit(ctx, event.MapProgress{Done: p.finished, Total: p.total})
}
