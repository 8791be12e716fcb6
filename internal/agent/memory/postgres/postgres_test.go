package postgres_test

import (
	"fmt"
	"sync"
	"testing"

	"loki/internal/agent/memory"
	factpostgres "loki/internal/agent/memory/postgres"
	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
)

func open(t *testing.T, address, owner string) *memory.Store {
	t.Helper()
	db, err := postgres.Open(address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return &memory.Store{Files: factpostgres.New(db, owner)}
}

// TestOwners: each owner has facts of their own, all processes see them, and proposals are accepted as in files.
func TestOwners(t *testing.T) {
	t.Parallel()
	address := postgrestest.Database(t)
	ada, again, bob := open(t, address, "ada"), open(t, address, "ada"), open(t, address, "bob")
	p := memory.Place{Agent: "coder"}
	f, err := ada.Save(t.Context(), p, memory.Fact{Scope: memory.User, Text: "Boats are green."})
	if err != nil {
		t.Fatal(err)
	}
	proposed, err := ada.Save(t.Context(), p, memory.Fact{Scope: memory.Agent, Text: "Tar takes two days.", Proposed: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := again.Recall(t.Context(), p, "how long does tar take on green boats?", 1000); len(r.Facts) != 1 || r.Facts[0].ID != f.ID {
		t.Errorf("recalled is %+v", r.Facts)
	}
	if _, err := again.Accept(t.Context(), p, proposed.ID); err != nil {
		t.Fatal(err)
	}
	if r := ada.Recall(t.Context(), p, "how long does tar take on green boats?", 1000); len(r.Facts) != 2 {
		t.Errorf("recalled is %+v", r.Facts)
	}
	if places := ada.Places(t.Context()); len(places) != 2 || places[1] != p {
		t.Errorf("the places are %+v", places)
	}
	if _, err := ada.Change(t.Context(), p, f.ID, "another", func(f *memory.Fact) { f.Text = "x" }); err == nil {
		t.Error("a fact was changed that had changed meanwhile")
	}
	if _, err := bob.Find(t.Context(), f.ID, p); err == nil || len(bob.List(t.Context(), p, false)) > 0 {
		t.Errorf("bob sees the fact of ada: %v", err)
	}
	if _, err := bob.Forget(t.Context(), p, f.ID); err == nil {
		t.Error("bob removed the fact of ada")
	}
	if _, err := ada.Forget(t.Context(), p, f.ID); err != nil || len(again.List(t.Context(), p, false)) != 1 {
		t.Errorf("after it was forgotten: %v", err)
	}
}

// TestNoWriteIsLost: writers of several processes wait for each other.
func TestNoWriteIsLost(t *testing.T) {
	t.Parallel()
	address := postgrestest.Database(t)
	var all sync.WaitGroup
	for w := range 4 {
		s := open(t, address, "ada")
		all.Go(func() {
			for i := range 10 {
				if _, err := s.Save(t.Context(), memory.Place{}, memory.Fact{Scope: memory.User, Text: fmt.Sprintf("word%d%d other%d%d", w, i, i, w)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := len(open(t, address, "ada").List(t.Context(), memory.Place{}, false)); n != 40 {
		t.Errorf("%d facts, want 40", n)
	}
}
