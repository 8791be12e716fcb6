package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/engine"
	"loki/internal/fault"
)

// TestResumeInTime: with --wait a run is resumed again at the time that its provider named, as
// often as that names one. Without it, and for other errors, it is resumed once.
func TestResumeInTime(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		name string
		wait bool
		errs []error // nil stands for a provider that names a time in two minutes
		took time.Duration
		want error
	}{
		{"waits", true, []error{nil, nil, boom}, 4 * time.Minute, boom},
		{"does_not_wait", false, []error{nil}, 0, nil},
		{"fails", true, []error{boom}, 0, boom},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, calls, notes := time.Now(), 0, 0
				note := func(until time.Time) {
					if notes++; time.Until(until) != 2*time.Minute {
						t.Errorf("it waits until %v", until)
					}
				}
				err := resumeInTime(t.Context(), tt.wait, note, func() error {
					calls++
					if err := tt.errs[calls-1]; err != nil {
						return err
					}
					return fmt.Errorf("suspended: %w", &engine.LaterError{At: time.Now().Add(2 * time.Minute), Err: errors.New("later")})
				})
				if waits := int(tt.took / (2 * time.Minute)); notes != waits {
					t.Errorf("%d waits were shown, want %d", notes, waits)
				}
				if calls != len(tt.errs) || time.Since(begin) != tt.took || tt.want != nil && !errors.Is(err, tt.want) || err == nil {
					t.Errorf("%d calls in %v, error %v", calls, time.Since(begin), err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := resumeInTime(ctx, true, func(time.Time) {}, func() error {
			return fault.Wrap(fault.Suspended, &engine.LaterError{At: time.Now().Add(time.Hour), Err: boom}, "").WithHint("loki --resume x")
		})
		if !errors.Is(err, context.DeadlineExceeded) || fault.HintOf(err) != "loki --resume x" {
			t.Errorf("error %v, hint %q", err, fault.HintOf(err))
		}
	})
}
