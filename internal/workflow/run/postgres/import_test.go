package postgres

import (
	"path/filepath"
	"slices"
	"testing"

	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/runtest"
	"loki/internal/workflow/run/sqlite"
)

// TestImport records runs in a file, and goes on with them in a database.
func TestImport(t *testing.T) {
	runtest.Run(t, runtest.Options{
		New: func(t *testing.T) run.Store {
			s, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		Reopen: func(t *testing.T, s run.Store) run.Store {
			if there, ok := s.(server); ok {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				there.db.Close()
				return open(t, there.address, Options{})
			}
			to := open(t, postgrestest.Database(t), Options{})
			infos, err := s.Runs(t.Context(), run.Query{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range infos {
				rows, err := s.(*sqlite.Store).Export(t.Context(), infos[len(infos)-1-i].ID) // the oldest one first
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range []bool{true, false} {
					if imported, err := to.Import(t.Context(), rows); err != nil || imported != want {
						t.Fatalf("imported %v, %v", imported, err)
					}
				}
			}
			entries, err := s.Entries(t.Context(), "", 0) // as --migrate-store copies them
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				e.Version = 0
				if err := to.Put(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			return to
		},
		TakeOver: func(t *testing.T, _ run.Store, _ string) run.Journal {
			t.Skip("who holds a run is not copied")
			return nil
		},
	})
}

// TestOrderOfStart copies the newer one of two runs first, as runs of the same moment are and as older versions did with all. The newest
// run is the one that was started last.
func TestOrderOfStart(t *testing.T) {
	t.Parallel()
	from, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = from.Close() })
	var ids []string // by start, the newest first
	for range 4 {
		ids = slices.Insert(ids, 0, recorded(t, from))
	}
	to := open(t, postgrestest.Database(t), Options{})
	for _, i := range []int{0, 2, 1} {
		rows, err := from.Export(t.Context(), ids[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Import(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
	}
	ids = slices.Insert(ids[:3], 0, recorded(t, to.Store)) // without the oldest one, which was not copied
	list := func(q run.Query) (got []string) {
		t.Helper()
		infos, err := to.Runs(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			got = append(got, info.ID)
		}
		return got
	}
	if got := list(run.Query{}); !slices.Equal(got, ids) {
		t.Errorf("the newest first: %v, want %v", got, ids)
	}
	for i, id := range ids {
		if got := list(run.Query{Before: id}); !slices.Equal(got, ids[i+1:]) {
			t.Errorf("before %s: %v, want %v", id, got, ids[i+1:])
		}
		if got := list(run.Query{Before: id, Limit: 1}); !slices.Equal(got, ids[i+1:min(i+2, len(ids))]) {
			t.Errorf("one before %s: %v", id, got)
		}
	}
}

// recorded returns the id of a new run that is at rest.
func recorded(t *testing.T, s run.Store) string {
	t.Helper()
	j := create(t, s, run.Info{Kind: run.GraphRun, Agent: "a", Dir: "/"})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return j.ID()
}
