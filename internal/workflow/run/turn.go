package run

import (
	"context"
	"sync"

	"loki/internal/workflow/graph"
)

// Turn is the place of a task, or of an item of a map, in the order in which the questions of a super-step are put to
// the user. A nil Turn comes at once.
type Turn struct {
	line  *line
	place int
	in    *Turn // a part of it; nil for a task
}

// line is an order of turns.
type line struct {
	coming []chan struct{} // closed when a turn comes, by place

	mu   sync.Mutex
	over []bool // by place; guarded by mu
	next int    // the first that is not over; guarded by mu
}

// Turns returns n turns, one after the other. The first comes when t does. End each one once.
func (t *Turn) Turns(n int) []*Turn {
	l := &line{over: make([]bool, n), coming: make([]chan struct{}, n)}
	turns := make([]*Turn, n)
	for i := range turns {
		l.coming[i] = make(chan struct{})
		turns[i] = &Turn{line: l, place: i, in: t}
	}
	if n > 0 {
		close(l.coming[0])
	}
	return turns
}

// Wait returns once all turns before t are over. If ctx ends first the error is its cause.
func (t *Turn) Wait(ctx context.Context) error {
	for ; t != nil; t = t.in {
		select {
		case <-t.line.coming[t.place]:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// End says that nothing more is asked in this turn.
func (t *Turn) End() {
	if t == nil {
		return
	}
	l := t.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over[t.place] = true
	for l.next < len(l.over) && l.over[l.next] {
		if l.next++; l.next < len(l.over) {
			close(l.coming[l.next])
		}
	}
}

// giveTurns gives the tasks that are questions their turns in a turn, in the order of the tasks. Tasks that are nil were done before.
func (t *Turn) giveTurns(g *graph.Graph, work []*Task) {
	var asking []*Task
	for _, task := range work {
		if task != nil && g.IsQuestion(task.Node) {
			asking = append(asking, task)
		}
	}
	for i, turn := range t.Turns(len(asking)) {
		asking[i].Turn = turn
	}
}
