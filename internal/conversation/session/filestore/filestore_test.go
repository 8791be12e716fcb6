package filestore_test

import (
	"path/filepath"
	"testing"

	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/conversation/session/sessiontest"
)

// testStore is a store that knows its options.
type testStore struct {
	*filestore.Store
	options filestore.Options
}

func open(t testing.TB, o filestore.Options) testStore {
	t.Helper()
	o.AgentDir = func(agent string) string { return filepath.Join(o.Dir, "..", "agents", agent, "sessions") }
	st, err := filestore.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return testStore{st, o}
}

func TestStore(t *testing.T) {
	sessiontest.Run(t,
		func(t *testing.T, o session.Options) session.Store {
			return open(t, filestore.Options{Options: o, Dir: filepath.Join(t.TempDir(), "config", "sessions"), NoSync: true})
		},
		func(t *testing.T, s session.Store) session.Store { return open(t, s.(testStore).options) })
}
