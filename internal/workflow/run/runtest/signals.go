package runtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/workflow/run"
)

// signal gives a run a signal.
func (s *suite) signal(id, name, value string) run.Signal {
	s.Helper()
	sig, err := s.store.Signal(s.Context(), id, name, []byte(value), "")
	s.ok(err)
	return sig
}

// takes checks which signal a wait takes, "" for none.
func (s *suite) takes(j run.Journal, name, by string, before time.Time, want string) {
	s.Helper()
	sig, ok, err := j.Take(s.Context(), name, by, before)
	s.ok(err)
	if ok != (want != "") || string(sig.Value) != want || ok && sig.Taken != by {
		s.Errorf("%s takes %s, %v; want %q", by, sig.Value, ok, want)
	}
}

// signals come while the run is at work and while it rests, and each is taken once, in order, also by processes that come later.
func (s *suite) signals() {
	j := s.begin()
	id := j.ID()
	long := `"` + strings.Repeat("long ", 5000) + `"`
	var want []run.Signal
	for i, of := range [][2]string{{"paid", "1"}, {"other", `{"a": [1.50, "<b>"]}`}, {"paid", long}, {"paid", "3"}} {
		if i == 2 { // the last ones while it rests
			s.ok(j.End(s.Context(), run.Ending{Status: run.Suspended, Code: fault.Suspended}))
			s.ok(j.Close())
			s.reopen()
		}
		sig := s.signal(id[:run.IDLength-1], of[0], of[1])
		if sig.Number != i+1 || sig.Name != of[0] || string(sig.Value) != of[1] || sig.At.IsZero() || sig.Taken != "" {
			s.Errorf("signal %d is %+v", i+1, sig)
		}
		sig.At = sig.At.UTC()
		want = append(want, sig)
	}
	s.same("signals", s.listed(id), want)
	s.same("signals of the history", s.utc(s.history(id).Signals), want)

	j, _ = s.resume(id)
	s.takes(j, "paid", "1/a/wait", time.Time{}, "1")
	s.takes(j, "paid", "1/a/wait", time.Time{}, "1") // asks once more
	s.takes(j, "paid", "1/b/wait", want[1].At, "")   // came too late
	s.takes(j, "paid", "1/b/wait", want[3].At, long)
	s.takes(j, "none", "1/c/wait", time.Time{}, "")
	s.ok(j.Close())
	s.reopen()
	j, _ = s.resume(id)
	s.takes(j, "paid", "1/b/wait", time.Time{}, long)
	s.takes(j, "paid", "2/a/wait", time.Time{}, "3")
	s.takes(j, "paid", "2/b/wait", time.Time{}, "")
	s.takes(j, "other", "2/b/wait", time.Time{}, `{"a": [1.50, "<b>"]}`)
	for i, by := range []string{"1/a/wait", "2/b/wait", "1/b/wait", "2/a/wait"} {
		want[i].Taken = by
	}
	s.same("signals that were taken", s.listed(id), want)
	s.ok(j.Close())
}

// withdrawn withdraws signals: one that waits is not taken, and one that was taken, or is not there, stays as it is.
func (s *suite) withdrawn() {
	j := s.begin()
	for i := range 3 {
		s.signal(j.ID(), "now", fmt.Sprint(i))
	}
	s.takes(j, "now", "a", time.Time{}, "0")
	for number, want := range map[int]bool{1: false, 2: true, 4: false} {
		if ok, err := s.store.Withdraw(s.Context(), j.ID(), number); err != nil || ok != want {
			s.Errorf("withdrawing signal %d: %v, %v", number, ok, err)
		}
	}
	if ok, err := s.store.Withdraw(s.Context(), j.ID(), 2); err != nil || ok {
		s.Errorf("withdrawing it again: %v, %v", ok, err)
	}
	if _, err := s.store.Withdraw(s.Context(), "zzzzzzzz", 1); fault.CodeOf(err) != fault.NotFound {
		s.Errorf("of no run: %v", err)
	}
	s.takes(j, "now", "b", time.Time{}, "2")
	s.takes(j, "now", "c", time.Time{}, "")
	s.takes(j, "now", "a", time.Time{}, "0")
	s.ok(j.Close())
}

// listed returns the signals of a run.
func (s *suite) listed(id string) []run.Signal {
	s.Helper()
	list, err := s.store.Signals(s.Context(), id)
	s.ok(err)
	return s.utc(list)
}

func (s *suite) utc(list []run.Signal) []run.Signal {
	for i := range list {
		list[i].At = list[i].At.UTC()
	}
	return list
}

// signalErrors gives signals to runs that do not exist or are done, and takes them without the lease. Signals that come at
// once get different numbers.
func (s *suite) signalErrors() {
	ctx := s.Context()
	if _, err := s.store.Signal(ctx, "zzzzzzzz", "paid", []byte("1"), ""); fault.CodeOf(err) != fault.NotFound {
		s.Errorf("signal to a run that does not exist: %v", err)
	}
	j := s.begin()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := s.store.Signal(context.WithoutCancel(ctx), j.ID(), "paid", fmt.Append(nil, i), ""); err != nil {
				s.Error(err)
			}
		})
	}
	wg.Wait()
	for i, sig := range s.listed(j.ID()) {
		if sig.Number != i+1 {
			s.Errorf("signal %d has number %d", i+1, sig.Number)
		}
	}
	if n := len(s.listed(j.ID())); n != 8 {
		s.Errorf("%d signals are on record, want 8", n)
	}
	sent := func(want int) {
		s.Helper()
		sig, err := s.store.Signal(ctx, j.ID(), "paid", []byte("1"), "request")
		s.ok(err)
		if sig.Number != want || sig.Key != "request" {
			s.Errorf("the signal of a request is %+v, want number %d", sig, want)
		}
	}
	sent(9)
	sent(9)
	lost := s.takeOver(s.T, s.store, j.ID())
	if _, _, err := j.Take(ctx, "paid", "1/a/wait", time.Time{}); !errors.Is(err, run.ErrLeaseLost) {
		s.Errorf("taken without the lease: %v", err)
	}
	s.ok(lost.End(ctx, run.Ending{Status: run.Done}))
	s.ok(lost.Close())
	sent(9) // sent again after the run took it and ended
	ended := new(run.EndedError)
	if _, err := s.store.Signal(ctx, j.ID(), "paid", []byte("1"), ""); !errors.As(err, &ended) {
		s.Errorf("signal to a run that is done: %v", err)
	}
	if _, _, err := lost.Take(ctx, "paid", "1/a/wait", time.Time{}); !errors.Is(err, run.ErrClosed) {
		s.Errorf("taken from a closed journal: %v", err)
	}
	deleted, err := s.store.Delete(ctx, j.ID())
	s.ok(err)
	if len(deleted) != 1 {
		s.Errorf("deleted are %v", deleted)
	}
}

// waits are on record beside questions, and no answer is one to them.
func (s *suite) waits() {
	ctx := s.Context()
	j := s.begin()
	timer := run.Pending{ID: "pause", Step: 1, Node: "pause", Key: "wait", Text: "waits", Wait: run.ForTime, Asked: at, Deadline: at.Add(time.Hour)}
	signal := run.Pending{ID: "paid", Step: 1, Node: "paid", Key: "wait", Text: "waits", Wait: run.ForSignal, Signal: "paid", Asked: at}
	for _, p := range []run.Pending{timer, question(1), signal} {
		s.ok(j.Asked(ctx, p))
	}
	waits, err := s.store.Waits(ctx, j.ID())
	s.ok(err)
	s.same("waits", waits, []run.Pending{timer, signal})
	pending, err := s.store.Pending(ctx, j.ID())
	s.ok(err)
	s.same("questions", pending, []run.Pending{question(1)})
	h := s.history(j.ID())
	s.same("waits of the history", h.Waiting, []run.Pending{timer, signal})
	s.same("questions of the history", h.Pending, []run.Pending{question(1)})
	s.record(j.Task(1, "pause"), "wait", "true")
	waits, err = s.store.Waits(ctx, j.ID())
	s.ok(err)
	s.same("waits that are left", waits, []run.Pending{signal})
	answered, err := s.store.Answered(ctx, j.ID())
	s.ok(err)
	s.same("questions that have their answers, after a wait is over", answered, []run.Pending(nil))
	s.ok(j.Close())
}
