package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/conversation/session"
	"loki/internal/service/postgres/postgrestest"
)

// TestTurns has processes that follow each other in sessions, one of which dies in its turn.
func TestTurns(t *testing.T) {
	address := postgrestest.Database(t)
	dying := open(t, address, session.Options{})
	ids := []session.ID{session.NewID(), session.NewID()}
	if _, err := dying.Enter(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	first := open(t, address, session.Options{})
	if _, err := first.Enter(waiting, ids[0]); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("another process has the session, but the error is %v", err)
	}
	var inside [2]atomic.Int32
	var total atomic.Int32
	var processes sync.WaitGroup
	for range 4 {
		st := open(t, address, session.Options{})
		for i, id := range ids {
			processes.Go(func() {
				for range 10 {
					leave, err := st.Enter(t.Context(), id)
					if err != nil {
						t.Error(err)
						return
					}
					if inside[i].Add(1) != 1 {
						t.Error("two processes are in the session")
					}
					total.Add(1)
					inside[i].Add(-1)
					leave()
					leave() // harmless
				}
			})
		}
	}
	dying.db.Close()
	processes.Wait()
	if total.Load() != 80 {
		t.Errorf("%d turns, want 80", total.Load())
	}
}

// TestTurnSurvivesARestart has the server of the database restart during a turn.
func TestTurnSurvivesARestart(t *testing.T) {
	server := postgrestest.Start(t)
	address := server.Database(t)
	id := session.NewID()
	a, b := open(t, address, session.Options{}), open(t, address, session.Options{})
	leave, err := a.Enter(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	server.Restart(t)
	waiting, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Enter(waiting, id); err == nil {
		t.Error("two processes have the session")
	}
	leave()
	again, err := b.Enter(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
