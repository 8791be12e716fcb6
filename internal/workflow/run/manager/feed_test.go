package manager_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
	"loki/internal/workflow/run/sqlite"
)

// TestSlowWatcher watches a run that has far more frames than watchers share, slowly.
func TestSlowWatcher(t *testing.T) {
	const events = 5000
	read := make(chan int) // what the slow watcher has seen
	h := newHost(t, filepath.Join(t.TempDir(), "runs.db"), 0, map[string]func(context.Context, *run.Frame) error{
		"much": func(ctx context.Context, f *run.Frame) error {
			<-read // it has begun
			for i := range events {
				if err := say(ctx, f, fmt.Sprint(i)); err != nil {
					return err
				}
			}
			return nil
		},
	})
	id := h.begin("much")
	var all []int
	for frame, err := range h.Watch(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, frame.Number); frame.Number == 1 {
			read <- 1
			h.ended(id) // all of it is there before the next is read
		}
	}
	for i, n := range all {
		if n != i+1 {
			t.Fatalf("frame %d has number %d", i, n)
		}
	}
	if len(all) != events+2 {
		t.Errorf("%d frames, want %d", len(all), events+2)
	}
}

// heldStore waits with the first reading of events after a number.
type heldStore struct {
	run.Store
	after int
	once  sync.Once
	held  chan struct{} // closed when the reading may go on
}

func (s *heldStore) Events(ctx context.Context, id string, after, limit int) ([]run.EventRecord, error) {
	if after == s.after {
		s.once.Do(func() { <-s.held })
	}
	return s.Store.Events(ctx, id, after, limit)
}

// TestWatcherAhead has a watcher read more of the record than the reader of the feed has.
func TestWatcherAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before, during, after = 600, 100, 10 // events, of which the feed begins with the last
		store := &heldStore{Store: memstore.New(time.Now), after: before, held: make(chan struct{})}
		h := hostOn(t, store, 0, nil)
		j, err := store.Create(t.Context(), run.Info{Kind: run.ChatRun, Prompt: "x", Served: true}, run.Checkpoint{})
		if err != nil {
			t.Fatal(err)
		}
		emit := func(n int) {
			for range n {
				j.Event(event.Event{Time: time.Now(), Source: event.Source{Run: j.ID()}, Body: event.Warning{Text: "x"}})
			}
			if err := j.Task(1, "").Record(t.Context(), "x", steps.Step{Kind: steps.Script}, []byte("1")); err != nil {
				t.Error(err)
			}
		}
		emit(before)
		ctx, cancel := context.WithCancel(t.Context())
		var all []int
		var watching sync.WaitGroup
		watching.Go(func() {
			for frame, err := range h.Watch(ctx, j.ID(), 0) {
				if err != nil {
					break
				}
				if all = append(all, frame.Number); frame.Number == 1 {
					emit(during)
				}
			}
		})
		synctest.Wait()
		if len(all) != before+during {
			t.Errorf("%d events before the feed has any, want %d", len(all), before+during)
		}
		close(store.held)
		emit(after)
		time.Sleep(time.Minute)
		cancel()
		watching.Wait()
		for i, n := range all {
			if n != i+1 {
				t.Fatalf("event %d has number %d", i+1, n)
			}
		}
		if len(all) != before+during+after {
			t.Errorf("%d events, want %d", len(all), before+during+after)
		}
		h.Shutdown(t.Context())
	})
}

// TestWatchedElsewhere watches a run of another process, which is killed and goes on here.
func TestWatchedElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	h := newHost(t, path, 0, nil)
	other, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j, err := other.Create(t.Context(), run.Info{Kind: run.ChatRun, Prompt: "x", Served: true}, run.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	emit := func(body event.Body) {
		j.Event(event.Event{Time: time.Now(), Source: event.Source{Run: j.ID()}, Body: body})
		if err := j.Task(1, "").Record(t.Context(), fmt.Sprintf("%T", body), steps.Step{Kind: steps.Script}, []byte("1")); err != nil {
			t.Error(err)
		}
	}
	emit(event.Started{})
	var got []string
	for frame, err := range h.Watch(t.Context(), j.ID(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %s", frame.Number, frame.Type))
		switch len(got) {
		case 1:
			emit(event.Warning{Text: "from elsewhere"})
		case 2:
			j.Event(event.Event{Body: event.Warning{Text: "lost"}})
			if err := other.Close(); err != nil { // which writes what is left
				t.Fatal(err)
			}
		case 3:
			if err := h.ResumeOnStart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{"1 started", "2 warning", "3 warning", "4 started", "5 finished"}; !slices.Equal(got, want) {
		t.Errorf("frames %q, want %q", got, want)
	}
}

// TestWatchEnds ends a watch by its context, and by the end of the manager.
func TestWatchEnds(t *testing.T) {
	h := newHost(t, filepath.Join(t.TempDir(), "runs.db"), 0, map[string]func(context.Context, *run.Frame) error{
		"wait": func(ctx context.Context, _ *run.Frame) error { <-ctx.Done(); return context.Cause(ctx) },
	})
	id := h.begin("wait")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range h.Watch(ctx, id, 0) {
		cancel()
		last = err
	}
	if last != context.Canceled {
		t.Errorf("the watch ended with %v", last)
	}
	ended := make(chan error)
	began := make(chan bool)
	go func() {
		var last error
		for frame, err := range h.Watch(t.Context(), id, 0) {
			if frame.Number == 1 {
				close(began)
			}
			last = err
		}
		ended <- last
	}()
	<-began
	done, stop := context.WithCancel(t.Context())
	stop()
	h.Shutdown(done)
	if err := <-ended; err == nil {
		t.Error("the watch of a run that was interrupted ended as if it was over")
	}
}

// BenchmarkWatchers has 1,000 watchers of one run, and reports what one of them takes in bytes, and how long an
// event takes from the run to each of them: the 99th percentile and the most.
func BenchmarkWatchers(b *testing.B) {
	const watchers = 1000
	path := filepath.Join(b.TempDir(), "runs.db")
	emit := make(chan string)
	h := newHost(b, path, 0, map[string]func(context.Context, *run.Frame) error{
		"emit": func(ctx context.Context, f *run.Frame) error {
			for text := range emit {
				if err := say(ctx, f, text); err != nil {
					return err
				}
			}
			return nil
		},
	})
	id := h.begin("emit")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	arrived := make([][]time.Time, watchers)
	var ready, all, seen sync.WaitGroup
	for i := range watchers {
		arrived[i] = make([]time.Time, 0, b.N)
		ready.Add(1)
		all.Go(func() {
			for frame, err := range h.Watch(b.Context(), id, 0) {
				switch {
				case err != nil:
					b.Error(err)
				case frame.Number == 1:
					ready.Done()
				case frame.Type == "warning":
					arrived[i] = append(arrived[i], time.Now())
					seen.Done()
				}
			}
		})
	}
	ready.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	var sent []time.Time
	b.ResetTimer()
	for n := range b.N {
		seen.Add(watchers)
		sent = append(sent, time.Now())
		emit <- fmt.Sprint(n)
		seen.Wait()
	}
	b.StopTimer()
	close(emit)
	all.Wait()
	var took []time.Duration
	for _, times := range arrived {
		for n, at := range times {
			took = append(took, at.Sub(sent[n]))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
	b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/watchers, "B/watcher")
}
