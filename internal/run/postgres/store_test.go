package postgres

import (
	"testing"
	"time"

	"loki/internal/postgres"
	"loki/internal/postgres/postgrestest"
	"loki/internal/run"
	"loki/internal/run/runtest"
)

// quick is the timing of members in tests.
var quick = postgres.Timing{Beat: 50 * time.Millisecond, Dead: 600 * time.Millisecond, Patience: 3 * time.Second}

// server is a store with a database of its own, as another process has it.
type server struct {
	*Store
	address string
}

// open returns the store in the database at address, as another process has it.
func open(t testing.TB, address string, o Options) server {
	t.Helper()
	db, err := postgres.Open(address, postgres.Options{Setting: "store", Timing: quick})
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
			_, err := s.(server).db.Pool().Exec(t.Context(), `DELETE FROM loki.members WHERE id = (SELECT l.member FROM loki.leases l JOIN loki.runs r ON r.id = l.run WHERE r.name = $1)`, id)
			if err != nil {
				t.Fatal(err)
			}
			j, _, err := open(t, s.(server).address, Options{}).Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return j
		},
	})
}
