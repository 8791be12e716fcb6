// Package awake has time limits that count only while the process runs. The time in which it was stopped, as with Ctrl-Z or
// SIGSTOP, or in which the computer slept, does not count: nothing that others did meanwhile could be noticed.
package awake

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	most  = 500 * time.Millisecond // that is waited at once
	least = 5 * time.Millisecond
	late  = 100 * time.Millisecond // by which a timer on a busy machine comes too late, at least
)

// slice returns how long a limit of d waits at once.
func slice(d time.Duration) time.Duration { return min(max(d/8, least), most) }

// timeAwake returns how much of passed, the time between two moments that were to be wait apart, the process ran.
func timeAwake(passed, wait time.Duration) time.Duration {
	if passed > wait+max(wait, late) {
		return wait
	}
	return passed
}

// Timer calls a function after a time in which the process ran. Its methods may be called from several goroutines.
type Timer struct {
	mu    sync.Mutex
	timer *time.Timer
	f     func()
	left  time.Duration
	slice time.Duration
	wait  time.Duration // of timer
	last  time.Time     // when left was counted
	over  bool          // f was called, or is not to be called

	paused int // see [Pause]
}

// AfterFunc calls f in a goroutine of its own after the process has run for d.
func AfterFunc(d time.Duration, f func()) *Timer {
	t := &Timer{f: f, left: d, slice: slice(d), last: time.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait = max(0, min(t.left, t.slice))
	t.timer = time.AfterFunc(t.wait, t.tick)
	return t
}

// tick counts the time since the last one.
func (t *Timer) tick() {
	t.mu.Lock()
	if t.over || t.paused > 0 {
		t.mu.Unlock()
		return
	}
	now := time.Now()
	t.left -= timeAwake(now.Sub(t.last), t.wait)
	t.last = now
	if t.over = t.left <= 0; !t.over {
		t.wait = min(t.left, t.slice)
		t.timer.Reset(t.wait)
	}
	over := t.over
	t.mu.Unlock()
	if over {
		t.f()
	}
}

// Stop has the function not be called. It returns false if it was called, or the timer was stopped before.
func (t *Timer) Stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	stopped := !t.over
	t.over = true
	t.timer.Stop()
	return stopped
}

// Remaining stops the timer and returns how much of its time is left, 0 if it is over.
func (t *Timer) Remaining() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return 0
	}
	t.over = true
	t.timer.Stop()
	if t.paused > 0 {
		return max(0, t.left)
	}
	return max(0, t.left-timeAwake(time.Since(t.last), t.wait))
}

// WithTimeoutCause is [context.WithTimeoutCause] for a limit that counts only while the process runs. The context has no
// deadline of its own.
func WithTimeoutCause(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	c := &limited{Context: inner, done: make(chan struct{})}
	context.AfterFunc(inner, func() { close(c.done) })
	expire := func() {
		if inner.Err() == nil {
			c.expired.Store(true)
		}
		cancel(cause)
	}
	if d <= 0 {
		c.timer = &Timer{over: true}
		expire()
		return c, func() {}
	}
	c.timer = AfterFunc(d, expire)
	return c, func() {
		c.timer.Stop()
		cancel(nil)
	}
}

// WithTimeout is [WithTimeoutCause] without a cause of its own.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return WithTimeoutCause(ctx, d, context.DeadlineExceeded)
}

// limited is a context whose error is that of a deadline once its time is over.
type limited struct {
	context.Context // canceled when the time is over
	done            chan struct{}
	expired         atomic.Bool
	timer           *Timer
}

// Done implements [context.Context].
func (c *limited) Done() <-chan struct{} { return c.done }

// Err implements [context.Context].
func (c *limited) Err() error {
	err := c.Context.Err()
	if err != nil && c.expired.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// AfterFunc calls f once the context is done. Package context uses it for contexts that descend from c.
func (c *limited) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.Context, f) }
