package sqlite

import (
	"path/filepath"
	"testing"

	"loki/internal/workflow/run"
	"loki/internal/workflow/run/runtest"
)

// open returns a store over the file at path that is closed at the end of the test.
func open(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	runtest.Run(t, runtest.Options{
		New: func(t *testing.T) run.Store {
			return open(t, filepath.Join(t.TempDir(), "state dir", "runs.db"), Options{})
		},
		Reopen: func(t *testing.T, s run.Store) run.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, s.(*Store).path, Options{})
		},
		TakeOver: func(t *testing.T, s run.Store, id string) run.Journal {
			err := s.(*Store).write("orphan", false, func(c *conn) error {
				_, err := c.exec("UPDATE leases SET pid = 1 << 30 WHERE run = (SELECT id FROM runs WHERE name = ?)", id)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			j, _, err := open(t, s.(*Store).path, Options{}).Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return j
		},
	})
}
