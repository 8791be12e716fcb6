package rest

import (
	"context"
	"errors"
	"sync"
)

// work is what the server does that belongs to no request.
type work struct {
	mu      sync.Mutex // guards what follows
	stopped bool
	last    int
	cancels map[int]context.CancelCauseFunc
	running sync.WaitGroup
}

// Go has do run in the background, with the values of ctx. Its context ends when the server stops, which
// waits for it. It reports false if that has happened already.
func (a *API) Go(ctx context.Context, do func(ctx context.Context)) bool {
	w := &a.work
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return false
	}
	if w.cancels == nil {
		w.cancels = make(map[int]context.CancelCauseFunc)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w.last++
	id := w.last
	w.cancels[id] = cancel
	w.running.Go(func() {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.cancels, id)
			cancel(nil)
		}()
		_ = a.Protect(ctx, func() error { do(ctx); return nil })
	})
	return true
}

// Stop ends what is done in the background and the requests that only watch, and waits for them, until ctx ends.
func (a *API) Stop(ctx context.Context) error {
	w := &a.work
	w.mu.Lock()
	w.stopped = true
	for _, cancel := range w.cancels {
		cancel(errStopping)
	}
	w.mu.Unlock()
	a.watchers.end()
	done := make(chan struct{})
	go func() { // ends with the work
		w.running.Wait()
		a.watchers.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("background work did not end in time")
	}
}
