package sqlite

import (
	"path/filepath"
	"testing"

	"loki/internal/run"
	"loki/internal/run/runtest"
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
	runtest.Run(t, func(t *testing.T) run.Store {
		return open(t, filepath.Join(t.TempDir(), "state dir", "runs.db"), Options{})
	}, func(t *testing.T, s run.Store) run.Store {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return open(t, s.(*Store).path, Options{})
	})
}
