package rest

import (
	"context"
	"sync"
)

// watchers are the requests that only watch.
type watchers struct {
	mu      sync.Mutex // guards what follows
	ended   bool
	last    int
	cancels map[int]context.CancelCauseFunc
}

// add adds a request, unless there are most of them. Its context ends with it, or when all are ended.
func (w *watchers) add(ctx context.Context, most int) (_ context.Context, remove func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
		return nil, nil, overloaded(errStopping.Error())
	case len(w.cancels) >= most:
		return nil, nil, overloaded("too many requests watch at once")
	case w.cancels == nil:
		w.cancels = make(map[int]context.CancelCauseFunc)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w.last++
	id := w.last
	w.cancels[id] = cancel
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.cancels, id)
		cancel(nil)
	}, nil
}

// end ends them.
func (w *watchers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, cancel := range w.cancels {
		cancel(errStopping)
	}
}
