package run

import (
	"context"
	"errors"
	"slices"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/workflow/graph"
)

// errLost is why a task is canceled that has lost a race.
var errLost = errors.New("other nodes were faster")

// race decides which tasks of a super-step are canceled because others were faster. It settles the results one after the other,
// in the order in which they come to be on record, so that a resumed run comes to the same decisions. A nil race cancels
// nothing. Its methods may be called from several goroutines.
type race struct {
	plan *graph.Plan
	pr   graph.Progress

	mu       sync.Mutex
	finished []graph.Result                     // canceled ones included
	cancels  map[string]context.CancelCauseFunc // of the tasks at work, by node
	lost     []string                           // nodes of the tasks to cancel
}

// newRace returns the race of the super-step after pr, nil if there can be none.
func newRace(p *graph.Plan, pr graph.Progress) *race {
	if !p.Races() {
		return nil
	}
	return &race{plan: p, pr: pr, cancels: make(map[string]context.CancelCauseFunc)}
}

// enter returns the context of a task that begins. The caller calls cancel when it is over.
func (r *race) enter(ctx context.Context, node string) (of context.Context, cancel func()) {
	if r == nil {
		return ctx, func() {}
	}
	of, stop := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancels[node] = stop
	if slices.Contains(r.lost, node) {
		stop(errLost)
	}
	return of, func() { stop(nil) }
}

// settle calls keep with the result of a task, or with that of a canceled one if it has lost, and then cancels the tasks that lose
// by it, unless keep says that the task is not over. The race must not be nil.
func (r *race) settle(res graph.Result, keep func(graph.Result) (over bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.lost, res.Node) {
		res = graph.Result{Node: res.Node, Canceled: true}
	}
	if keep(res) {
		r.finish(res)
	}
}

// noteFinished takes note of a task that was finished before the run was interrupted.
func (r *race) noteFinished(res graph.Result) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finish(res)
}

// finish cancels the tasks that lose by a result.
func (r *race) finish(res graph.Result) {
	r.finished = append(r.finished, res)
	r.lost = r.plan.Losers(r.pr, r.finished)
	for _, node := range r.lost {
		if cancel := r.cancels[node]; cancel != nil {
			cancel(errLost)
		}
	}
}

// loses reports whether a task that waits for something has lost meanwhile.
func (r *race) loses(res graph.Result) bool {
	return r != nil && fault.CodeOf(res.Err) == fault.Suspended && slices.Contains(r.lost, res.Node)
}
