package manager_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/llm/engine"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// sleepers returns work that waits, and what it did, as "prompt: what".
func sleepers() (work map[string]func(context.Context, *run.Frame) error, did func() []string) {
	var mu sync.Mutex
	var list []string
	do := func(ctx context.Context, f *run.Frame, text string) error {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, text)
		return say(ctx, f, text)
	}
	within := func(ctx context.Context, f *run.Frame, d time.Duration) (string, error) {
		q := run.Questions{Steps: f.Steps(), Events: f.Events, Place: "q", Waits: "the test"}
		return q.AskWithin(ctx, ask.Question{Kind: ask.Text, Text: "Go?", Default: "no", HasDefault: true}, d)
	}
	until := time.Now().Add(30 * time.Minute)
	work = map[string]func(context.Context, *run.Frame) error{
		"provider": func(ctx context.Context, f *run.Frame) error {
			if time.Now().Before(until) {
				return fault.Wrap(fault.Suspended, &engine.LaterError{At: until, Err: errors.New("come back later")}, "the test waits")
			}
			return do(ctx, f, "provider: back")
		},
		"limit": func(ctx context.Context, f *run.Frame) error {
			if at := until.Add(time.Hour); time.Now().Before(at) {
				return fault.Wrap(fault.Limit, &run.SpentError{At: at, Err: errors.New("nothing is left")}, "")
			}
			return do(ctx, f, "limit: begins again")
		},
		"question": func(ctx context.Context, f *run.Frame) error {
			answer, err := within(ctx, f, time.Hour)
			if err != nil {
				return err
			}
			return do(ctx, f, "question: "+answer)
		},
		"never": func(ctx context.Context, f *run.Frame) error {
			if _, err := within(ctx, f, 2*time.Hour); err != nil {
				return err
			}
			return errors.Join(do(ctx, f, "never: again"), fault.New(fault.Suspended, "always"))
		},
		"breakpoint": func(ctx context.Context, f *run.Frame) error {
			return errors.Join(do(ctx, f, "breakpoint: stops"), fault.Wrap(fault.Suspended, &run.BreakError{Place: "before b"}, ""))
		},
		"human": func(ctx context.Context, f *run.Frame) error {
			q := run.Questions{Steps: f.Steps(), Events: f.Events, Place: "q", Waits: "the test"}
			_, err := q.Ask(ctx, ask.Question{Kind: ask.Text, Text: "Go?"})
			return err
		},
	}
	return work, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}
}

// TestWake lets runs go on when their time has come: in one process, and in one after another.
func TestWake(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart_%v", restart), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work, did := sleepers()
				store := memstore.New(nil)
				begin := func() (h *host, end func()) {
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
				h, end := begin()
				for _, prompt := range []string{"question", "provider", "limit", "never", "human", "breakpoint"} {
					h.begin(prompt)
				}
				time.Sleep(29 * time.Minute)
				if restart {
					end()
					time.Sleep(3 * time.Hour)
					_, end = begin()
				} else {
					time.Sleep(2 * time.Minute)
					if got := did(); !slices.Equal(got, []string{"breakpoint: stops", "provider: back"}) {
						t.Errorf("after 31 minutes: %q", got)
					}
				}
				time.Sleep(24 * time.Hour)
				want := []string{"breakpoint: stops", "provider: back", "question: no", "limit: begins again", "never: again"}
				if got := did(); !slices.Equal(got, want) {
					t.Errorf("at the end %q, want %q", got, want)
				}
				infos, err := store.Runs(t.Context(), run.Query{})
				if err != nil {
					t.Fatal(err)
				}
				for _, info := range infos {
					status := run.Suspended
					if slices.Contains([]string{"provider", "question", "limit"}, info.Prompt) {
						status = run.Done
					}
					if info.Status != status {
						t.Errorf("%s is %s", info.Prompt, info.Status)
					}
				}
				end()
			})
		})
	}
}

// TestWakeInTurn lets more runs be due at once than may work: the others are not begun before it is their turn.
func TestWakeInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		working, most, done := 0, 0, 0
		until := time.Now().Add(time.Hour)
		h := hostOn(t, memstore.New(nil), 2, map[string]func(context.Context, *run.Frame) error{
			"provider": func(context.Context, *run.Frame) error {
				if time.Now().Before(until) {
					return fault.Wrap(fault.Suspended, &engine.LaterError{At: until, Err: errors.New("come back later")}, "the test waits")
				}
				mu.Lock()
				working++
				most = max(most, working)
				mu.Unlock()
				time.Sleep(time.Minute)
				mu.Lock()
				working--
				done++
				mu.Unlock()
				return nil
			},
		})
		var waking sync.WaitGroup
		waking.Go(func() { h.Wake(t.Context()) })
		for range 50 {
			h.begin("provider")
		}
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if active := h.Active(); len(active) > 3 {
			t.Errorf("%d runs are at work or wait for their turn", len(active))
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if most != 2 || done != 50 {
			t.Errorf("%d worked at once, and %d are done", most, done)
		}
		h.Shutdown(t.Context())
		waking.Wait()
	})
}

// TestFree: runs that were suspended for a limit resume when it is raised, if they may, and only they.
func TestFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work, did := sleepers()
		var raised atomic.Bool
		limit := work["limit"]
		work["limit"] = func(ctx context.Context, f *run.Frame) error {
			if raised.Load() {
				return nil
			}
			return limit(ctx, f)
		}
		h := hostOn(t, memstore.New(nil), 2, work)
		var waking sync.WaitGroup
		waking.Go(func() { h.Wake(t.Context()) })
		first, second := h.begin("limit"), h.begin("limit")
		h.begin("provider")
		time.Sleep(time.Second)
		raised.Store(true)
		err := h.Free(t.Context(), func(i run.Info) error {
			if i.ID == second {
				return errors.New("nothing is left")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for id, want := range map[string]run.Status{first: run.Done, second: run.Suspended} {
			if info, err := h.store.Info(t.Context(), id); err != nil || info.Status != want {
				t.Errorf("%s, %v, want %s", info.Status, err, want)
			}
		}
		if got := did(); len(got) != 0 {
			t.Errorf("%q", got)
		}
		h.Shutdown(t.Context())
		waking.Wait()
	})
}

// TestShutdownIsBounded ends a manager while a run ignores that it is interrupted.
func TestShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan bool)
		h := hostOn(t, memstore.New(nil), 0, map[string]func(context.Context, *run.Frame) error{
			"deaf": func(context.Context, *run.Frame) error { <-never; return nil },
		})
		h.begin("deaf")
		grace, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		h.Shutdown(grace)
		if took := time.Since(began); took < 30*time.Second || took > 35*time.Second {
			t.Errorf("it took %v", took)
		}
		close(never)
		synctest.Wait()
	})
}
