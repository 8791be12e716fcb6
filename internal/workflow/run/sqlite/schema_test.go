package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// TestFirstOnes opens a file that is not there by many at once. All of them record
// their run.
func TestFirstOnes(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "runs.db")
		var wg sync.WaitGroup
		errs := make([]error, 12) // goroutine i writes errs[i] only
		for i := range errs {
			wg.Go(func() {
				s, err := Open(path, Options{})
				if err != nil {
					errs[i] = err
					return
				}
				j, err := s.Create(context.Background(), run.Info{}, run.Checkpoint{})
				if err == nil {
					err = j.Close()
				}
				errs[i] = errors.Join(err, s.Close())
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		s := open(t, path, Options{})
		if infos, err := s.Runs(t.Context(), run.Query{}); err != nil || len(infos) != len(errs) {
			t.Fatalf("%d runs are on record, want %d; %v", len(infos), len(errs), err)
		}
	}
}

// TestUpgrade opens a file as the first version of the schema left it, while an older
// process has it open.
func TestUpgrade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	fresh := open(t, filepath.Join(t.TempDir(), "fresh.db"), Options{})
	if err := create(t, fresh, graph.State{}).Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := react(t, s, 3, 3000)
	id := j.ID()
	want, err := s.Checkpoint(t.Context(), id, -1)
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	for _, back := range []string{
		"DROP TABLE entries", "DROP INDEX runs_by_origin", "ALTER TABLE runs DROP COLUMN origin",
		"DROP TABLE signals", "ALTER TABLE leases DROP COLUMN working", "ALTER TABLE runs DROP COLUMN takeovers", "ALTER TABLE runs DROP COLUMN progress",
		"DROP INDEX runs_by_owner", "ALTER TABLE runs DROP COLUMN owner", "ALTER TABLE runs DROP COLUMN owner_key",
		"ALTER TABLE runs DROP COLUMN epoch", "ALTER TABLE runs DROP COLUMN gap",
		"ALTER TABLE leases DROP COLUMN epoch", "ALTER TABLE leases DROP COLUMN boot", "ALTER TABLE leases DROP COLUMN ends", "ALTER TABLE leases DROP COLUMN beats",
		"ALTER TABLE leases DROP COLUMN watcher", "ALTER TABLE leases DROP COLUMN watched", "ALTER TABLE leases DROP COLUMN since", "ALTER TABLE events DROP COLUMN first", "PRAGMA user_version = 1",
	} {
		if _, err := s.writer.c.ExecContext(t.Context(), back); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	old, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	// What an older process has prepared goes on working.
	insert, err := old.PrepareContext(t.Context(), "INSERT OR REPLACE INTO leases (run, token, host, machine, pid, born, until) VALUES (7, x'01', 'h', 'm', 1, '', 0)")
	if err != nil {
		t.Fatal(err)
	}
	defer insert.Close()

	s = open(t, path, Options{})
	infos, err := s.Runs(t.Context(), run.Query{})
	if err != nil || len(infos) != 1 || infos[0].ID != id || infos[0].Steps != 3 || infos[0].Owner != nil {
		t.Fatalf("listed are %+v, %v", infos, err)
	}
	k, found, err := s.Open(t.Context(), id)
	if err != nil || string(found.Last.State.AppendJSON(nil)) != string(want.State.AppendJSON(nil)) {
		t.Fatalf("open: %v", err)
	}
	if err := errors.Join(recordStep(k, "k"), k.Close()); err != nil {
		t.Error(err)
	}
	if _, err := insert.ExecContext(t.Context()); err != nil {
		t.Errorf("a process of an older version cannot write any more: %v", err)
	}
	if got, want := columns(t, s), columns(t, fresh); !slices.Equal(got, want) {
		t.Errorf("the columns are\n%v, want\n%v", got, want)
	}
}

// columns returns the columns of all tables.
func columns(t *testing.T, s *Store) (all []string) {
	t.Helper()
	err := s.view(t.Context(), func(c *conn) error {
		var name string
		return c.rows("SELECT m.name || '.' || i.name || ' ' || i.type || i.\"notnull\" FROM sqlite_schema m, pragma_table_info(m.name) i WHERE m.type = 'table' ORDER BY 1",
			nil, []any{&name}, func() error { all = append(all, name); return nil })
	})
	if err != nil || len(all) < 40 {
		t.Fatal(len(all), err)
	}
	return all
}
