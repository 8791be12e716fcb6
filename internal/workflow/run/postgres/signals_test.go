package postgres

import (
	"errors"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run"
)

// waits puts a wait for a signal, and until a time, on record.
func waits(t *testing.T, j run.Journal, id, signal string, until time.Time) {
	t.Helper()
	p := run.Pending{ID: id, Step: 1, Node: id, Key: "wait", Text: "waits", Asked: time.Now(), Deadline: until, Wait: run.ForSignal, Signal: signal}
	if signal == "" {
		p.Wait = run.ForTime
	}
	if err := j.Asked(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// TestSignalWakes gives runs signals at another server: the one that waits for it is ready once it rests, and one server takes it.
func TestSignalWakes(t *testing.T) {
	t.Parallel()
	a := open(t, postgrestest.Database(t), Options{})
	b := open(t, a.address, Options{})
	send := func(id, name string) {
		t.Helper()
		if _, err := b.Signal(t.Context(), id, name, []byte(`{"amount": 1}`), ""); err != nil {
			t.Fatal(err)
		}
	}
	suspended := run.Ending{Status: run.Suspended, Code: fault.Suspended}

	atWork := create(t, a, run.Info{Agent: "a", Served: true})
	waits(t, atWork, "paid", "paid", time.Time{})
	send(atWork.ID(), "other")
	send(atWork.ID(), "paid")
	ready(t, b, "it is at work")
	rest(t, atWork, suspended)
	ready(t, b, "it rests", atWork.ID())

	resting := create(t, a, run.Info{Agent: "a", Served: true})
	send(resting.ID(), "early") // nothing waits for it
	waits(t, resting, "paid", "paid", time.Time{})
	rest(t, resting, suspended)
	send(resting.ID(), "other")
	ready(t, b, "no signal for it", atWork.ID())
	send(resting.ID(), "paid")
	ready(t, b, "a signal for it", atWork.ID(), resting.ID())

	j, _, err := a.Open(t.Context(), resting.ID())
	if err != nil {
		t.Fatal(err)
	}
	held := new(run.LeaseError)
	if _, _, err := b.Open(t.Context(), resting.ID()); !errors.As(err, &held) {
		t.Errorf("another server takes it, too: %v", err)
	}
	if s, ok, err := j.Take(t.Context(), "paid", "1/paid/wait", time.Time{}); err != nil || !ok || s.Number != 3 {
		t.Errorf("it takes %+v, %v, %v", s, ok, err)
	}
	rest(t, j, suspended)
	ready(t, b, "the signal was taken", atWork.ID())
}

// TestTimerWakes: a run that waits for a time is ready from then on.
func TestTimerWakes(t *testing.T) {
	t.Parallel()
	a := open(t, postgrestest.Database(t), Options{})
	j := create(t, a, run.Info{Agent: "a", Served: true})
	waits(t, j, "later", "", time.Now().Add(time.Hour))
	rest(t, j, run.Ending{Status: run.Suspended, Code: fault.Suspended, Until: time.Now().Add(time.Hour)})
	ready(t, a, "its time has not come")
	k := create(t, a, run.Info{Agent: "a", Served: true})
	waits(t, k, "now", "", time.Now().Add(time.Millisecond))
	rest(t, k, run.Ending{Status: run.Suspended, Code: fault.Suspended, Until: time.Now().Add(time.Millisecond)})
	until(t, "its time has come", func() bool {
		ids, err := a.Ready(t.Context(), 10)
		return err == nil && len(ids) == 1 && ids[0] == k.ID()
	})
}
