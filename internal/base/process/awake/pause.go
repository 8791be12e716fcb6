package awake

import (
	"context"
	"sync"
	"time"
)

type pauseKey struct{}

// pausable is what [Pause] stops for a while.
type pausable interface {
	pause()
	resume()
	outer() context.Context
}

// Pause stops the limits of ctx, and counts the time for its meters, until resume is called. Several pauses at once are one.
func Pause(ctx context.Context) (resume func()) {
	var all []pausable
	for {
		p, ok := ctx.Value(pauseKey{}).(pausable)
		if !ok {
			break
		}
		p.pause()
		all = append(all, p)
		ctx = p.outer()
	}
	return func() {
		for _, p := range all {
			p.resume()
		}
	}
}

// meter adds up pauses.
type meter struct {
	context.Context
	mu    sync.Mutex
	n     int       // pauses that are not over; guarded by mu
	since time.Time // guarded by mu
	total time.Duration
}

// WithMeter returns a context, and how long work with it has been paused.
func WithMeter(ctx context.Context) (context.Context, func() time.Duration) {
	m := &meter{Context: ctx}
	return context.WithValue(ctx, pauseKey{}, m), func() time.Duration {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.n > 0 {
			return m.total + time.Since(m.since)
		}
		return m.total
	}
}

func (m *meter) outer() context.Context { return m.Context }

func (m *meter) pause() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n++; m.n == 1 {
		m.since = time.Now()
	}
}

func (m *meter) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n--; m.n == 0 {
		m.total += time.Since(m.since)
	}
}

// Value implements [context.Context].
func (c *limited) Value(key any) any {
	if key == (pauseKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func (c *limited) outer() context.Context { return c.Context }
func (c *limited) pause()                 { c.timer.pause() }
func (c *limited) resume()                { c.timer.resume() }

// pause has the time not count until as many calls of resume.
func (t *Timer) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused++; t.paused > 1 || t.over {
		return
	}
	t.timer.Stop()
	t.left -= timeAwake(time.Since(t.last), t.wait)
}

func (t *Timer) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused--; t.paused > 0 || t.over {
		return
	}
	t.last = time.Now()
	t.wait = max(0, min(t.left, t.slice))
	t.timer.Reset(t.wait)
}
