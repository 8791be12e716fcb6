package team

import (
	"context"
	"fmt"
	"sync"
	"time"

	"loki/internal/base/ask"
	"loki/internal/llm/event"
)

// pulse is when a child, or a descendant of it, last did something. Every event counts.
type pulse struct {
	mu   sync.Mutex
	last time.Time
	asks int // questions of it and its descendants that are open
}

// listen returns an emitter that feels the events on their way to next.
func (p *pulse) listen(next event.Emitter) event.Emitter {
	return event.Func(func(ctx context.Context, ev event.Event) error {
		p.feel(0)
		return next.Emit(ctx, ev)
	})
}

// feel notes that something was done, and that so many more questions are open.
func (p *pulse) feel(asks int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	p.asks += asks
}

// remainingTime returns for how long a child may do nothing yet.
func (p *pulse) remainingTime(limit time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asks > 0 {
		return limit
	}
	return limit - time.Since(p.last)
}

// Patient returns an asker like a, during whose questions neither m nor a member above it counts as
// idle.
func (m *Member) Patient(a ask.Asker) ask.Asker {
	feel := func(asks int) {
		for p := m; p.life != nil; p = p.Parent {
			p.pulse.feel(asks)
		}
	}
	return ask.Func(func(ctx context.Context, q ask.Question) (string, error) {
		feel(1)
		defer feel(-1)
		return a.Ask(ctx, q)
	})
}

// limitError says that a child worked, or did nothing, for too long.
type limitError struct {
	member *Member
	text   string
}

func (e *limitError) Error() string { return e.text }

// watch returns a context of c's work that ends if it takes too long. The caller calls stop at the
// end of the work.
func (c *Member) watch(ctx context.Context) (limited context.Context, stop func()) {
	limited, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	if c.limits.Timeout > 0 || c.limits.IdleTimeout > 0 {
		wg.Go(func() {
			if text := c.overdue(limited); text != "" {
				cancel(&limitError{c, text})
			}
		})
	}
	return limited, func() {
		cancel(nil)
		wg.Wait()
	}
}

// overdue waits until c takes too long, and says so, or until ctx ends.
func (c *Member) overdue(ctx context.Context) string {
	var deadline, idle <-chan time.Time // nil for never
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	if limit := c.limits.Timeout; limit > 0 {
		c.team.mu.Lock()
		limit -= c.workTime()
		c.team.mu.Unlock()
		timer := time.NewTimer(limit)
		defer timer.Stop()
		deadline = timer.C
	}
	var check *time.Timer
	limit := c.limits.IdleTimeout
	if limit > 0 {
		c.pulse.feel(0)
		check = time.NewTimer(limit)
		defer check.Stop()
		idle = check.C
	}
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-ticker.C:
			c.keepTime(ctx)
		case <-deadline:
			return fmt.Sprintf("it worked longer than %s (timeout)", c.limits.Timeout)
		case <-idle:
			left := c.pulse.remainingTime(limit)
			if left <= 0 {
				return fmt.Sprintf("it did nothing for %s (idle_timeout)", limit)
			}
			check.Reset(left)
		}
	}
}
