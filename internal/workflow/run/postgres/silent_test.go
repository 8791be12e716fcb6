package postgres

import (
	"errors"
	"testing"
	"time"

	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run"
)

// TestSilent reads from a database that does not answer, since another session locks a table: each read ends after some time.
func TestSilent(t *testing.T) {
	t.Parallel()
	address := postgrestest.Database(t)
	other := open(t, address, Options{})
	id := create(t, other, run.Info{Agent: "a"}).ID()
	db, err := postgres.Open(address, postgres.Options{Setting: "store", Timing: postgres.Timing{Wait: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	s := New(db, Options{})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	locks, err := other.db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Exec(t.Context(), "LOCK TABLE loki.runs, loki.leases"); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"info":       func() error { _, err := s.Info(t.Context(), id); return err },
		"runs":       func() error { _, err := s.Runs(t.Context(), run.Query{}); return err },
		"history":    func() error { _, err := s.History(t.Context(), id); return err },
		"pending":    func() error { _, err := s.Pending(t.Context(), id); return err },
		"checkpoint": func() error { _, err := s.Checkpoint(t.Context(), id, -1); return err },
		"ready":      func() error { _, err := s.Ready(t.Context(), 1); return err },
		"probe":      func() error { return s.Probe(t.Context()) },
	} {
		if err := read(); !errors.Is(err, run.ErrPassing) || !errors.Is(err, postgres.ErrAway) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := locks.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), id)
	for n := 0; errors.Is(err, postgres.ErrAway) && n < 100; n++ { // each waits for 200 ms, which is short on a busy machine
		info, err = s.Info(t.Context(), id)
	}
	if err != nil || info.ID != id {
		t.Errorf("it answers again: %+v, %v", info, err)
	}
}
