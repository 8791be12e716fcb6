package rest

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"

	"loki/internal/frontend/server/stream"
	"loki/internal/service/auth"
)

// watchersPerSlot is how many requests may watch for each that may work.
const watchersPerSlot = 64

// watching is a request that only watches.
type watching struct {
	r        *http.Request // nil once the stream is detached
	gone     func()        // ends the context of the request, as its client has left
	end      func()        // gives the place among the watchers back
	detached bool          // another goroutine continues, and calls end
}

// watch serves a request that only watches.
func (a *API) watch(w http.ResponseWriter, r *http.Request, c *call, limits *Limits, serve func(w http.ResponseWriter, r *http.Request) error) error {
	ctx, cancel, remove, err := a.watchers.add(context.WithoutCancel(r.Context()), c.identity, limits)
	if err != nil {
		return err
	}
	c.admitted = true
	// A detached stream outlives the request, and so its context is not below that of the request.
	unlink := context.AfterFunc(r.Context(), func() { cancel(context.Cause(r.Context())) })
	c.watch = &watching{r: r, gone: func() { cancel(context.Canceled) }, end: remove}
	defer func() {
		unlink()
		if !c.watch.detached {
			remove()
		}
	}()
	return failure(ctx, serve(w, r.WithContext(ctx)))
}

// detach answers with the stream out from a goroutine of its own, whose stack is small: there may be thousands of
// streams, which are silent most of the time. It reports false if that cannot be done.
func (a *API) detach(ctx context.Context, c *call, out *stream.Writer, send func(context.Context, *stream.Writer) error) (bool, error) {
	taken, err := out.Detach(ctx, c.watch.r, c.watch.gone)
	if err != nil || !taken {
		return false, err
	}
	c.watch.r, c.watch.detached = nil, true
	go func() { // ends with ctx at the latest; Stop waits for it
		defer c.watch.end()
		defer out.Close()
		if err := a.Protect(ctx, func() error { return send(ctx, out) }); err != nil {
			a.sendError(ctx, c, out, err)
		}
	}()
	return true, nil
}

// Protect returns what do returns. A panic is logged, and an error like others.
func (a *API) Protect(ctx context.Context, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			a.o.Log.Error("panic", "request_id", RequestID(ctx), "route", Route(ctx), "error", a.o.Hide(fmt.Sprint(p)), "stack", a.o.Hide(string(debug.Stack())))
			err = Internal()
		}
	}()
	return do()
}

// watchers are the requests that only watch.
type watchers struct {
	mu      sync.Mutex // guards what follows
	ended   bool
	last    int
	all     map[int]watcher
	each    map[string]int // how many of each subject
	running sync.WaitGroup // nothing is added once ended is set
}

// watcher is one of them.
type watcher struct {
	who    auth.Identity
	cancel context.CancelCauseFunc
}

// add adds a request, unless there are as many as may be, in all or of its subject. Its context ends with remove, with cancel, when all are ended, or with the token of its caller.
func (w *watchers) add(ctx context.Context, who auth.Identity, limits *Limits) (_ context.Context, cancel context.CancelCauseFunc, remove func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
		return nil, nil, nil, overloadError(errStopping.Error())
	case len(w.all) >= limits.Requests*watchersPerSlot:
		return nil, nil, nil, overloadError("too many requests watch at once")
	case !who.Anonymous() && w.each[who.Subject] >= limits.PerSubject*watchersPerSlot:
		return nil, nil, nil, overloadError("too many requests of " + who.Subject + " watch at once")
	case w.all == nil:
		w.all, w.each = make(map[int]watcher), make(map[string]int)
	}
	ctx, cancel = context.WithCancelCause(ctx)
	stop := context.CancelFunc(func() {})
	if !who.Until.IsZero() {
		ctx, stop = context.WithDeadlineCause(ctx, who.Until, UnauthorizedError("the token has expired"))
	}
	w.last++
	id := w.last
	w.all[id] = watcher{who, cancel}
	w.each[who.Subject]++
	w.running.Add(1)
	return ctx, cancel, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, id)
		if w.each[who.Subject]--; w.each[who.Subject] == 0 {
			delete(w.each, who.Subject)
		}
		cancel(nil)
		stop()
		w.running.Done()
	}, nil
}

// end ends them.
func (w *watchers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, one := range w.all {
		one.cancel(errStopping)
	}
}

// Revoke ends the requests that only watch of callers who may not call any more.
func (a *API) Revoke(may func(auth.Identity) bool) {
	w := &a.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if !may(one.who) {
			one.cancel(UnauthorizedError("the key was revoked"))
		}
	}
}
