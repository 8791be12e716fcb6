package manager_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/ask"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/run/sqlite"
)

// answering is a store that calls then once after it has recorded an answer, and opened once it has opened a run.
type answering struct {
	run.Store
	then, opened func(id string)
	refused      func() // called when a run is held that was to be opened; nil for nothing
}

func (s *answering) Answer(ctx context.Context, id, question string, r run.Reply) error {
	err := s.Store.Answer(ctx, id, question, r)
	once(&s.then, id)
	return err
}

func (s *answering) Open(ctx context.Context, id string, unless ...run.Status) (run.Journal, run.Recovery, error) {
	j, found, err := s.Store.Open(ctx, id, unless...)
	if err == nil {
		once(&s.opened, id)
	} else if _, held := errors.AsType[*run.LeaseError](err); held && s.refused != nil {
		s.refused()
	}
	return j, found, err
}

// once calls a function that is to be called once.
func once(f *func(id string), id string) {
	if call := *f; call != nil {
		*f = nil
		call(id)
	}
}

// asks is work that asks and says the answer.
func asks(ctx context.Context, f *run.Frame) error {
	q := run.Questions{Steps: f.Steps(), Events: f.Events, Place: "q", Waits: "the test"}
	answer, err := q.Ask(ctx, ask.Question{Kind: ask.Text, Text: "Go?"})
	if err != nil {
		return err
	}
	return say(ctx, f, answer)
}

// answeringHost returns a manager on a file, and its store.
func answeringHost(t *testing.T, work func(context.Context, *run.Frame) error) (*host, *answering) {
	t.Helper()
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), sqlite.Options{EventDelay: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	s := &answering{Store: file}
	h := hostOn(t, s, 0, map[string]func(context.Context, *run.Frame) error{"ask": work})
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		h.Shutdown(ctx)
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, s
}

// TestCancelAfterAnswer cancels a run that was answered, before it goes on: it stays canceled, and the answer is refused.
func TestCancelAfterAnswer(t *testing.T) {
	t.Parallel()
	h, s := answeringHost(t, asks)
	id := h.begin("ask")
	if status := h.ended(id); status != run.Suspended {
		t.Fatalf("the run is %s", status)
	}
	s.then = func(id string) {
		if err := h.Cancel(t.Context(), id); err != nil {
			t.Errorf("canceled: %v", err)
		}
	}
	ended := new(run.EndedError)
	if _, err := h.Answer(t.Context(), id, manager.Answers{Texts: map[string]string{"q": "yes"}}); !errors.As(err, &ended) || ended.Status != run.Canceled {
		t.Errorf("the answer: %v", err)
	}
	want := []string{"1 started", "2 question", "3 finished", "4 finished"}
	if got := h.collect(id, 0); h.ended(id) != run.Canceled || !slices.Equal(got, want) {
		t.Errorf("the run is %s, frames %q, want %q", h.ended(id), got, want)
	}
	if _, err := h.Resume(t.Context(), run.Resumption{Continuation: run.Continuation{ID: id}}); err != nil || h.ended(id) != run.Done {
		t.Errorf("resumed by a user: %s, %v", h.ended(id), err)
	}
}

// TestCancelAsItGoesOn cancels a run whose lease is taken to go on with it, and that has not entered yet: it is canceled once it has.
func TestCancelAsItGoesOn(t *testing.T) {
	t.Parallel()
	h, s := answeringHost(t, func(ctx context.Context, f *run.Frame) error {
		err := asks(ctx, f)
		if err == nil {
			<-ctx.Done()
			err = context.Cause(ctx)
		}
		return err
	})
	id := h.begin("ask")
	if status := h.ended(id); status != run.Suspended {
		t.Fatalf("the run is %s", status)
	}
	var canceling sync.WaitGroup
	tried := make(chan struct{})
	s.opened = func(id string) {
		s.refused = sync.OnceFunc(func() { close(tried) })
		canceling.Go(func() {
			if err := h.Cancel(t.Context(), id); err != nil {
				t.Errorf("canceled: %v", err)
			}
		})
		<-tried
	}
	if _, err := h.Answer(t.Context(), id, manager.Answers{Texts: map[string]string{"q": "yes"}}); err != nil {
		t.Errorf("the answer: %v", err)
	}
	canceling.Wait()
	if status := h.ended(id); status != run.Canceled {
		t.Errorf("the run is %s", status)
	}
}

// TestCancelTooLate cancels a run that comes to its end all the same.
func TestCancelTooLate(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	h, _ := answeringHost(t, func(ctx context.Context, _ *run.Frame) error { close(began); <-ctx.Done(); return nil })
	id := h.begin("ask")
	<-began
	ended := new(run.EndedError)
	if err := h.Cancel(t.Context(), id); !errors.As(err, &ended) || ended.Status != run.Done || h.ended(id) != run.Done {
		t.Errorf("canceled: %v, and it is %s", err, h.ended(id))
	}
}

// takenStore is a shared store that calls then after a server has looked at a run that is ready.
type takenStore struct {
	sharedStore
	then func(id string)
}

func (s *takenStore) History(ctx context.Context, id string) (run.History, error) {
	h, err := s.sharedStore.History(ctx, id)
	once(&s.then, id)
	return h, err
}

func (s *takenStore) Answer(ctx context.Context, id, question string, r run.Reply) error {
	err := s.sharedStore.Answer(ctx, id, question, r)
	once(&s.then, id)
	return err
}

// TestShareCancel cancels a run at one server while another one is about to go on with it, because it was answered there or is ready.
func TestShareCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		work := map[string]func(context.Context, *run.Frame) error{"ask": asks}
		store := &takenStore{sharedStore: sharedStore{db}}
		a, b := hostOn(t, store, 1, work), hostOn(t, sharedStore{db}, 1, work)
		cancel := func(id string) {
			if err := b.Cancel(t.Context(), id); err != nil {
				t.Errorf("canceled: %v", err)
			}
		}
		answered := a.begin("ask")
		if status := a.ended(answered); status != run.Suspended {
			t.Fatalf("the run is %s", status)
		}
		store.then = func(string) { // Answer looks at it
			store.then = func(string) { // so does what records the answer
				store.then = cancel // once it is recorded
			}
		}
		ended := new(run.EndedError)
		if _, err := a.Answer(t.Context(), answered, manager.Answers{Texts: map[string]string{"q": "yes"}}); !errors.As(err, &ended) || ended.Status != run.Canceled {
			t.Errorf("the answer: %v", err)
		}

		j, err := sharedStore{db}.Create(t.Context(), run.Info{Kind: run.ChatRun, Prompt: "ask", Served: true}, run.Checkpoint{})
		if err == nil {
			err = j.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		store.then = cancel // once it is looked at to take it
		ctx, stop := context.WithCancel(t.Context())
		var waking sync.WaitGroup
		waking.Go(func() { a.Wake(ctx) })
		time.Sleep(time.Minute)
		for _, id := range []string{answered, j.ID()} {
			if info, err := db.Info(t.Context(), id); err != nil || info.Status != run.Canceled || info.Active {
				t.Errorf("run %s: %+v, %v", id, info, err)
			}
		}
		a.Shutdown(t.Context())
		b.Shutdown(t.Context())
		stop()
		waking.Wait()
	})
}
