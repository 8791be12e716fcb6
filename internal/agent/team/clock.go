package team

import (
	"context"
	"errors"
	"strconv"
	"time"

	"loki/internal/base/fault/steps"
)

// tick is how often the time that a child has worked is put on record.
const tick = time.Minute

// clock is how long a child has worked. While a run is interrupted it stands still, so that a child
// has the time that was left when it resumes. What is on record is exact for a suspended run, and
// up to a tick too little after a kill.
type clock struct {
	before time.Duration // in earlier processes
	since  time.Time     // when it began in this one; zero if it has not
	notes  int           // on record
}

// workTime returns how long c has worked. t.mu is held.
func (c *Member) workTime() time.Duration {
	if c.clock.since.IsZero() {
		return c.clock.before
	}
	return c.clock.before + c.team.o.Now().Sub(c.clock.since)
}

// errNoTime ends a step that only reads how long a child had worked.
var errNoTime = errors.New("it is not on record how long the agent has worked")

// clockStep is the n-th note of how long a child has worked.
func clockStep(n int) steps.Step {
	return steps.Step{Kind: steps.Time, Key: "clock/" + strconv.Itoa(n)}
}

// startClock starts or continues the time of c's work.
func (c *Member) startClock(ctx context.Context, resumed bool) error {
	var before time.Duration
	notes := 0
	for resumed && c.Steps.Recording() {
		worked, err := steps.Do(ctx, c.Steps, clockStep(notes+1), func(context.Context) (time.Duration, error) { return 0, errNoTime })
		if errors.Is(err, errNoTime) {
			break
		}
		if err != nil {
			return err
		}
		before = worked
		notes++
	}
	c.team.mu.Lock()
	defer c.team.mu.Unlock()
	c.clock = clock{before: max(before, c.clock.before), since: c.team.o.Now(), notes: notes}
	return nil
}

// keepTime puts on record how long c has worked. Without that c has more time after an
// interruption, which is no reason to stop it.
func (c *Member) keepTime(ctx context.Context) {
	c.team.mu.Lock()
	worked, begun := c.workTime(), !c.clock.since.IsZero()
	c.clock.notes++
	n := c.clock.notes
	c.team.mu.Unlock()
	if begun && c.Steps.Recording() {
		_, _ = steps.Do(ctx, c.Steps, clockStep(n), func(context.Context) (time.Duration, error) { return worked, nil })
	}
}
