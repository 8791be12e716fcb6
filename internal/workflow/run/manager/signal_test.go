package manager_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// TestWakeOfWaits lets runs go on that wait for a time or a signal, also for one that another process has put on record, and
// after a restart.
func TestWakeOfWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var did []string
		begin := time.Now()
		wait := func(f *run.Frame) run.Wait {
			return run.Wait{Steps: f.Steps(), Events: f.Events, Place: "w", Waits: "the test", Now: time.Now, Sleep: retry.Sleep}
		}
		note := func(ctx context.Context, f *run.Frame, what string) error {
			mu.Lock()
			defer mu.Unlock()
			did = append(did, what+" after "+time.Since(begin).Round(time.Minute).String())
			return say(ctx, f, what)
		}
		work := map[string]func(context.Context, *run.Frame) error{
			"timer": func(ctx context.Context, f *run.Frame) error {
				w := wait(f)
				began, err := w.Began(ctx)
				if err == nil {
					err = w.Until(ctx, began.Add(30*time.Minute))
				}
				if err != nil {
					return err
				}
				return note(ctx, f, "timer")
			},
			"signal": func(ctx context.Context, f *run.Frame) error {
				v, _, err := wait(f).Signal(ctx, "paid", time.Time{})
				if err != nil {
					return err
				}
				return note(ctx, f, "signal "+v.String())
			},
		}
		store := memstore.New(nil)
		start := func() (h *host, end func()) {
			h = hostOn(t, store, 1, work)
			var waking sync.WaitGroup
			waking.Go(func() {
				if err := h.ResumeOnStart(t.Context()); err != nil {
					t.Error(err)
				}
				h.Wake(t.Context())
			})
			return h, func() { h.Shutdown(t.Context()); waking.Wait() }
		}
		h, end := start()
		first, second := h.begin("signal"), h.begin("signal")
		h.begin("timer")
		time.Sleep(10*time.Minute + 20*time.Second) // between two looks
		send := func(id, value string) {
			if _, err := store.Signal(t.Context(), id, "other", []byte("0"), ""); err != nil {
				t.Error(err)
			}
			if _, err := store.Signal(t.Context(), id, "paid", []byte(value), ""); err != nil {
				t.Error(err)
			}
		}
		send(first, "1")
		time.Sleep(10 * time.Minute)
		end()
		send(second, "2") // while no server is there
		time.Sleep(20 * time.Minute)
		_, end = start()
		time.Sleep(time.Hour)
		end()
		slices.Sort(did)
		if want := []string{"signal 1 after 11m0s", "signal 2 after 40m0s", "timer after 40m0s"}; !slices.Equal(did, want) {
			t.Errorf("got %q, want %q", did, want)
		}
	})
}
