package source

import (
	"context"
	"sync"
	"time"

	"loki/internal/base/fault/retry"
)

// pace is how fast a site may be asked. The zero pace is as fast as one likes. It may be used from several
// goroutines.
type pace struct {
	mu    sync.Mutex
	every time.Duration // between two requests; 0 for none
	next  time.Time     // when the next request may begin
}

// wait waits until a request may begin.
func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	at := p.next
	if at.Before(now) {
		at = now
	}
	p.next = at.Add(p.every)
	p.mu.Unlock()
	if at.Equal(now) {
		return ctx.Err()
	}
	return retry.Sleep(ctx, at.Sub(now))
}

// pause lets no request begin for a time.
func (p *pace) pause(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.next) {
		p.next = until
	}
}
