package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"loki/internal/base/fault/retry"
)

// ErrPassing says that a store could not be written for a reason that may be over
// soon, such as another process that holds a lock. Errors of stores wrap it.
var ErrPassing = errors.New("the store cannot be written now")

// As returns an error that reads as err and is also a kind, such as [ErrPassing], to [errors.Is].
func As(kind, err error) error { return &kindError{err, kind} }

type kindError struct {
	error
	kind error
}

func (e *kindError) Unwrap() []error { return []error{e.error, e.kind} }

// A write that fails in passing is tried again for patienceTime, after a pause each
// time. A store that waits for a lock by itself makes the pauses longer.
const (
	patienceTime  = time.Minute
	patiencePause = 200 * time.Millisecond
)

// Patience tries writes again that fail in passing, until one fails for good or all
// have failed for a minute. Several goroutines may share a Patience: then the minute is
// one for all, and the user is notified once. The zero Patience is ready.
type Patience struct {
	mu    sync.Mutex
	since time.Time // of the first failure after a success; zero for none
}

// Do calls write until it succeeds. The error is that of the last call. It gives up
// when ctx ends, but calls write at least once. notice, which may be nil, gets a line
// for the user when the waiting begins and another one when it is over; an error of it
// is returned at once.
func (p *Patience) Do(ctx context.Context, notice func(text string) error, write func() error) error {
	if notice == nil {
		notice = func(string) error { return nil }
	}
	for {
		start := time.Now()
		err := write()
		switch {
		case err == nil:
			if waited := p.succeed(); waited > 0 {
				return notice(fmt.Sprintf("the run continues after %s, with a complete record", waited.Round(time.Second)))
			}
			return nil
		case !errors.Is(err, ErrPassing):
			return err
		}
		waited, first := p.fail(start)
		if ctx.Err() != nil || waited >= patienceTime {
			return err
		}
		if first {
			if err := notice(fmt.Sprintf("the run waits up to a minute for its record: %v", err)); err != nil {
				return err
			}
		}
		if retry.Sleep(ctx, patiencePause) != nil {
			return err
		}
	}
}

// fail returns for how long writes have failed, and whether the one that began at start
// is the first of them.
func (p *Patience) fail(start time.Time) (waited time.Duration, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since, first = start, true
	}
	return time.Since(p.since), first
}

// succeed returns for how long writes failed before the one that succeeded.
func (p *Patience) succeed() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return 0
	}
	waited := time.Since(p.since)
	p.since = time.Time{}
	return waited
}
