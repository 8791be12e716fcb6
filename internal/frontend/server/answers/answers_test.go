package answers_test

import (
	"path/filepath"
	"testing"
	"time"

	"loki/internal/frontend/server/answers"
	"loki/internal/frontend/server/answers/answerstest"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
)

// file is a store that knows where it is.
type file struct {
	*answers.Store
	path string
	now  func() time.Time
}

func openFile(t *testing.T, path string, now func() time.Time) rest.Answers {
	f := file{answers.New(path, now), path, now}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestStore(t *testing.T) {
	answerstest.Run(t,
		func(t *testing.T, now func() time.Time) rest.Answers {
			return openFile(t, filepath.Join(t.TempDir(), "state", "requests.db"), now)
		},
		func(t *testing.T, s rest.Answers) rest.Answers {
			f := s.(file)
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			return openFile(t, f.path, f.now)
		})
}

// shared is the store of one server.
type shared struct {
	*answers.Shared
	db      *postgres.DB
	address string
	now     func() time.Time
}

func openShared(t *testing.T, address string, now func() time.Time) rest.Answers {
	t.Helper()
	db, err := postgres.Open(address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return shared{answers.NewShared(db, now), db, address, now}
}

func TestShared(t *testing.T) {
	answerstest.Run(t,
		func(t *testing.T, now func() time.Time) rest.Answers {
			return openShared(t, postgrestest.Database(t), now)
		},
		func(t *testing.T, s rest.Answers) rest.Answers {
			one := s.(shared)
			one.db.Close()
			return openShared(t, one.address, one.now)
		})
}

// TestSharedByServers sends a request to two servers, the first of which does it.
func TestSharedByServers(t *testing.T) {
	first := openShared(t, postgrestest.Database(t), nil)
	second := openShared(t, first.(shared).address, nil)
	begin := func(s rest.Answers) *rest.Kept {
		t.Helper()
		k, err := s.Begin(t.Context(), "ann", "k", []byte("d"), false)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if k := begin(first); k != nil {
		t.Fatalf("at the first: %+v", k)
	}
	if k := begin(second); k == nil || k.State != rest.KeptRunning {
		t.Fatalf("at the second: %+v", k)
	}
	if err := second.Forget(t.Context(), "ann", "k"); err != nil { // which is the first one's
		t.Fatal(err)
	}
	if err := first.End(t.Context(), "ann", "k", rest.Kept{Status: 200}); err != nil {
		t.Fatal(err)
	}
	if k := begin(second); k == nil || k.State != rest.KeptWhole || k.Status != 200 {
		t.Fatalf("answered by the first: %+v", k)
	}
}
