package postgres

import (
	"path/filepath"
	"testing"

	"loki/internal/postgres/postgrestest"
	"loki/internal/run"
	"loki/internal/run/runtest"
	"loki/internal/run/sqlite"
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
			return to
		},
		TakeOver: func(t *testing.T, _ run.Store, _ string) run.Journal {
			t.Skip("who holds a run is not copied")
			return nil
		},
	})
}
