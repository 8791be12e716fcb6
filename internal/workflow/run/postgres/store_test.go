package postgres

import (
	"testing"
	"time"

	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/runtest"
)

// server is a store with a database of its own, as another process has it.
type server struct {
	*Store
	address string
}

// open returns the store in the database at address, as another process has it.
func open(t testing.TB, address string, o Options) server {
	t.Helper()
	db, err := postgres.Open(address, postgres.Options{Setting: "store"})
	if err != nil {
		t.Fatal(err)
	}
	s := New(db, o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		db.Close()
	})
	return server{s, address}
}

// exec executes a statement in the database of the store.
func (s server) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := s.db.Pool().Exec(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

// bury removes all members, as others do that find them dead.
func (s server) bury(t testing.TB) {
	t.Helper()
	s.exec(t, "DELETE FROM loki.members")
}

func create(t testing.TB, s run.Store, info run.Info) run.Journal {
	t.Helper()
	j, err := s.Create(t.Context(), info, run.Checkpoint{Position: run.Position{Frontier: []string{"a"}}})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// until returns once a condition holds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("it does not come to it that %s", what)
		}
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	runtest.Run(t, runtest.Options{
		New: func(t *testing.T) run.Store { return open(t, postgrestest.Database(t), Options{}) },
		Reopen: func(t *testing.T, s run.Store) run.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s.(server).db.Close()
			return open(t, s.(server).address, Options{})
		},
		TakeOver: func(t *testing.T, s run.Store, id string) run.Journal {
			s.(server).bury(t)
			j, _, err := open(t, s.(server).address, Options{}).Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return j
		},
	})
}
