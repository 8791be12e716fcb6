package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault/retry"
)

func ExamplePolicy_Wait() {
	p := retry.Policy{Attempts: 5, Backoff: time.Second, Factor: 3, MaxBackoff: 5 * time.Second, Jitter: 0.2}
	for failures := 1; ; failures++ {
		wait, ok := p.Wait(failures, 0, 0.5) // a random number in the middle leaves the wait as it is
		if !ok {
			fmt.Println("failed", failures, "times")
			return
		}
		fmt.Println(wait)
	}
	// Output:
	// 1s
	// 3s
	// 5s
	// 5s
	// failed 5 times
}

func TestWait(t *testing.T) {
	p := retry.Policy{Attempts: 3, Backoff: time.Second, Factor: 2, MaxBackoff: 10 * time.Second, Jitter: 0.5}
	patient := p
	patient.MaxBackoff = time.Hour
	for _, tt := range []struct {
		name     string
		policy   retry.Policy
		failures int
		asked    time.Duration
		random   float64
		wait     time.Duration
		ok       bool
	}{
		{"shortest", p, 1, 0, 0, 500 * time.Millisecond, true},
		{"longest", p, 2, 0, 1, 3 * time.Second, true},
		{"used_up", p, 3, 0, 0, 0, false},
		{"as_asked", p, 1, 7 * time.Second, 0.5, 7 * time.Second, true},
		{"longer_than_asked", p, 2, time.Second, 0.5, 2 * time.Second, true},
		{"a_minute", p, 1, time.Minute, 0.5, time.Minute, true},
		{"more_than_a_minute", p, 1, time.Minute + time.Second, 0.5, 0, false},
		{"as_long_as_its_own_waits", patient, 1, time.Hour, 0.5, time.Hour, true},
		{"at_once", retry.Policy{Attempts: 2}, 1, 0, 0.5, 0, true},
		{"once", retry.Policy{Attempts: 1}, 1, 0, 0.5, 0, false},
		{"no_policy", retry.Policy{}, 1, 0, 0.5, 0, false},
		{"no_overflow", retry.Policy{Attempts: 1 << 20, Backoff: time.Second, Factor: 1e300, MaxBackoff: time.Minute}, 1 << 19, 0, 0.5, time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if wait, ok := tt.policy.Wait(tt.failures, tt.asked, tt.random); wait != tt.wait || ok != tt.ok {
				t.Errorf("got %v, %v, want %v, %v", wait, ok, tt.wait, tt.ok)
			}
		})
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if err := retry.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if err := retry.Sleep(t.Context(), time.Minute); err != nil || time.Since(begin) != time.Minute+time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

func TestAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		after, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"3", "", 3 * time.Second},
		{" 0.5 ", "", 500 * time.Millisecond},
		{"-1", "", 0},
		{"NaN", "", 0},
		{"1e300", "", 24 * time.Hour},
		{"Sun, 22 Nov 2026 12:00:30 GMT", "Sun, 22 Nov 2026 12:00:00 GMT", 30 * time.Second},
		{"Sun, 22 Nov 2026 12:00:00 GMT", "Sun, 22 Nov 2026 12:00:30 GMT", 0},
		{"soon", "", 0},
	} {
		h := http.Header{"Retry-After": {tt.after}, "Date": {tt.date}}
		if got := retry.After(h); got != tt.want {
			t.Errorf("%q, %q: %v", tt.after, tt.date, got)
		}
	}
	if got := retry.After(nil); got != 0 {
		t.Error(got)
	}
}
