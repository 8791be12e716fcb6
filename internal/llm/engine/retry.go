package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"loki/internal/llm/event"
	"loki/internal/llm/provider"
)

// Failures counts how often in a row each model failed in passing. Requests that share one,
// because they are tries of the same work, do not multiply: a model's retry policy counts the
// failures of all of them, and begins anew only once a call succeeds. The zero Failures has
// counted none. The requests must not run at once.
type Failures struct{ inARow map[string]int } // by the id of the model

// add counts a failure of a model and returns how many there are now.
func (f *Failures) add(model string) int {
	if f.inARow == nil {
		f.inARow = make(map[string]int)
	}
	f.inARow[model]++
	return f.inARow[model]
}

// clear forgets the failures of a model that answered.
func (f *Failures) clear(model string) { delete(f.inARow, model) }

// ask asks the model of c and then its fallbacks, until one answers.
func (e *Engine) ask(ctx context.Context, c *call, turn int) (turnResult, error) {
	first := c.model
	t, err := e.attempts(ctx, c, turn)
	for _, id := range first.Fallbacks {
		if !t.isUnanswered(err) {
			break
		}
		text := fmt.Sprintf("model %s is out of reach; asking %s instead: %v", c.model.ID, id, err)
		if err := c.rc.Events.Emit(ctx, event.Warning{Text: text}); err != nil {
			return t, err
		}
		if err := e.replace(ctx, c, id); err != nil {
			return t, err
		}
		t, err = e.attempts(ctx, c, turn)
	}
	if c.model.ID != first.ID {
		t.Model = c.model.ID
	}
	return t, err
}

// isUnanswered reports whether a call failed in a way that may pass, before any piece of a
// reply came.
func (t turnResult) isUnanswered(err error) bool {
	return provider.Retryable(err) && len(t.Message.Parts) == 0
}

// attempts asks the model of c, and again if that failed in passing.
func (e *Engine) attempts(ctx context.Context, c *call, turn int) (turnResult, error) {
	failures, policy := c.rc.Failures, c.model.Retry
	if failures == nil {
		failures = new(Failures)
	}
	for attempt := 1; ; attempt++ {
		t, err := e.attempt(ctx, c, turn)
		if err == nil {
			failures.clear(c.model.ID)
		}
		lost := c.req.Whole && provider.Retryable(err) // half an answer is of no use
		if !lost && !t.isUnanswered(err) {
			return t, err
		}
		if e, ok := errors.AsType[*provider.Error](err); ok && e.Away && len(c.model.Fallbacks) > 0 {
			return t, err
		}
		wait, ok := policy.Wait(failures.add(c.model.ID), provider.RetryAfter(err), rand.Float64())
		if !ok {
			return t, WithTime(err, policy.Patience(), e.now())
		}
		var again event.Body = event.Warning{Text: fmt.Sprintf("%v; trying again in %v", err, wait.Round(100*time.Millisecond))}
		if len(t.Message.Parts) > 0 {
			again = event.Retry{Attempt: attempt, Error: err.Error(), Wait: wait} // the pieces so far are void
		}
		if err := c.rc.Events.Emit(ctx, again); err != nil {
			return t, err
		}
		if err := e.sleep(ctx, wait); err != nil {
			return t, err
		}
	}
}

// LaterError says that a provider asks for a longer wait than the retry policy allows.
type LaterError struct {
	At  time.Time // when the same call may work
	Err error     // names the time as well
}

func (e *LaterError) Error() string { return e.Err.Error() }

// Unwrap returns the provider's error.
func (e *LaterError) Unwrap() error { return e.Err }

// WithTime adds the time at which, as the provider says, the same call may work to err. The
// result is a [*LaterError] if the wait, from now on, exceeds patience.
func WithTime(err error, patience time.Duration, now time.Time) error {
	wait := provider.RetryAfter(err)
	if wait < time.Second {
		return err
	}
	at := now.Add(wait)
	layout := "15:04:05"
	if wait >= 12*time.Hour {
		layout = "January 2, 15:04"
	}
	err = fmt.Errorf("%w; try again in %s, at %s", err, roundedWait(wait), at.Local().Format(layout))
	if wait <= patience {
		return err
	}
	return &LaterError{at, err}
}

// roundedWait writes a wait in the unit that fits it, rounded up: 90 seconds, 2 hours.
func roundedWait(d time.Duration) string {
	unit, name := time.Second, "second"
	switch {
	case d > 2*time.Hour:
		unit, name = time.Hour, "hour"
	case d >= 2*time.Minute:
		unit, name = time.Minute, "minute"
	}
	n := int64((d + unit - 1) / unit)
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}
