package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestProbe asks about stores that answer, that do not, and that answer again: what was found before does not stand for a store that is
// silent now.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stores
		var looked atomic.Int32 // by probes in the background
		answer := func(context.Context) error { looked.Add(1); return nil }
		hang := func(ctx context.Context) error { looked.Add(1); <-ctx.Done(); return context.Cause(ctx) }
		for range 3 {
			if err := s.probe(t.Context(), answer); err != nil {
				t.Errorf("stores that answer: %v", err)
			}
		}
		if n := looked.Load(); n != 1 {
			t.Errorf("looked %d times", n)
		}
		time.Sleep(probeEvery)
		var waiting sync.WaitGroup
		for i := range 4 {
			waiting.Go(func() {
				time.Sleep(time.Duration(i) * 400 * time.Millisecond)
				began := time.Now()
				if err := s.probe(t.Context(), hang); !errors.Is(err, errSilent) || time.Since(began) > probePatience {
					t.Errorf("stores that do not answer: %v after %v", err, time.Since(began))
				}
			})
		}
		waiting.Wait()
		if n := looked.Load(); n != 2 {
			t.Errorf("looked %d times", n)
		}
		time.Sleep(probeEvery)
		if err := s.probe(t.Context(), answer); err != nil {
			t.Errorf("stores that answer again: %v", err)
		}
		s.background.Wait()
	})
}
