package awake

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSpent(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct{ passed, wait, want time.Duration }{
		"in_time":              {500 * ms, 500 * ms, 500 * ms},
		"late_on_a_busy_host":  {950 * ms, 500 * ms, 950 * ms},
		"stopped":              {7000 * ms, 500 * ms, 500 * ms},
		"short_and_late":       {90 * ms, 5 * ms, 90 * ms},
		"short_and_stopped":    {3000 * ms, 5 * ms, 5 * ms},
		"looked_at_early":      {100 * ms, 500 * ms, 100 * ms},
		"stopped_for_a_second": {1500 * ms, 500 * ms, 500 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			if got := timeAwake(tt.passed, tt.wait); got != tt.want {
				t.Errorf("%v of %v count, want %v", got, tt.passed, tt.want)
			}
		})
	}
}

// TestStopped has timers that find that the process was stopped.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, fired := time.Now(), make(chan time.Duration, 1)
		timer := AfterFunc(4*time.Second, func() { fired <- time.Since(begin) })
		time.Sleep(2250 * time.Millisecond)
		timer.mu.Lock()
		timer.last = timer.last.Add(-time.Minute) // as if the minute had passed since
		timer.mu.Unlock()
		if got := <-fired; got < 4*time.Second || got > 4500*time.Millisecond {
			t.Errorf("the timer ended after %v", got)
		}
		if timer.Stop() || timer.Remaining() != 0 {
			t.Error("a timer that is over was stopped")
		}
		timer = AfterFunc(4*time.Second, func() { t.Error("a stopped timer ended") })
		time.Sleep(time.Second)
		if left := timer.Remaining(); left != 3*time.Second {
			t.Errorf("%v are left", left)
		}
		time.Sleep(time.Minute)
	})
}

func TestWithTimeoutCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("too slow")
		begin := time.Now()
		ctx, cancel := WithTimeoutCause(t.Context(), time.Hour, cause)
		defer cancel()
		child, cancelChild := context.WithCancel(ctx)
		defer cancelChild()
		<-child.Done()
		for _, c := range []context.Context{ctx, child} {
			<-c.Done()
			if !errors.Is(c.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(c), cause) || time.Since(begin) != time.Hour {
				t.Errorf("after %v: %v, %v", time.Since(begin), c.Err(), context.Cause(c))
			}
		}
		ctx, cancel = WithTimeout(t.Context(), time.Hour)
		cancel()
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("canceled: %v, %v", ctx.Err(), context.Cause(ctx))
		}
	})
}

// TestPause: paused time does not count, and is added up.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		Pause(t.Context())() // nothing to stop
		begin := time.Now()
		metered, outer := WithMeter(t.Context())
		timed, cancel := WithTimeout(metered, 10*time.Second)
		defer cancel()
		ctx, inner := WithMeter(timed)
		time.Sleep(3 * time.Second)
		first := Pause(ctx)
		time.Sleep(time.Minute)
		second := Pause(timed)
		first()
		time.Sleep(time.Minute)
		if inner() != time.Minute || outer() != 2*time.Minute {
			t.Errorf("paused for %v and %v", inner(), outer())
		}
		second()
		time.Sleep(5 * time.Second)
		if ctx.Err() != nil {
			t.Error("a pause counted")
		}
		<-ctx.Done()
		if took := time.Since(begin); took != 2*time.Minute+10*time.Second {
			t.Errorf("ended after %v", took)
		}
		Pause(ctx)() // its time is over
		over, end := WithTimeout(t.Context(), 0)
		defer end()
		Pause(over)()
		left := AfterFunc(time.Minute, func() { t.Error("a stopped timer ended") })
		left.pause()
		time.Sleep(time.Hour)
		if d := left.Remaining(); d != time.Minute {
			t.Errorf("%v are left", d)
		}
		left.resume()
	})
}
