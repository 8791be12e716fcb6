package bulk_test

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/bulk"
	"loki/internal/workflow/run/memstore"
	runpostgres "loki/internal/workflow/run/postgres"
	"loki/internal/workflow/run/sqlite"
)

// TestRetention forgets runs by status and age. Those that work or wait stay, and the newest ones.
func TestRetention(t *testing.T) {
	now := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	all := []run.Info{ // newest first
		{ID: "newest", Status: run.Done, Updated: now.Add(-900 * day)},
		{ID: "young", Status: run.Done, Updated: now.Add(-29 * day)},
		{ID: "done", Status: run.Done, Updated: now.Add(-30 * day)},
		{ID: "waits", Status: run.Suspended, Updated: now.Add(-900 * day)},
		{ID: "works", Status: run.Running, Active: true, Updated: now.Add(-900 * day)},
		{ID: "died", Status: run.Running, Updated: now.Add(-900 * day)},
		{ID: "failed", Status: run.Failed, Updated: now.Add(-90 * day)},
		{ID: "failed young", Status: run.Failed, Updated: now.Add(-89 * day)},
		{ID: "canceled", Status: run.Canceled, Updated: now.Add(-91 * day)},
	}
	filter, err := bulk.ParseFilter("", now)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rule bulk.Retention
		want []string
	}{
		{bulk.Retention{Done: 30 * day, Failed: 90 * day, Keep: 1}, []string{"done", "failed", "canceled"}},
		{bulk.Retention{Done: 30 * day, Failed: bulk.Never}, []string{"newest", "done"}},
		{bulk.Retention{Done: bulk.Never, Failed: 90 * day}, []string{"failed", "canceled"}},
		{bulk.Retention{Done: bulk.Never, Failed: bulk.Never, Keep: 1}, nil},
	} {
		if ids, _, err := test.rule.Pick(all, filter); err != nil || !slices.Equal(ids, test.want) {
			t.Errorf("%+v: %v, %v, want %v", test.rule, ids, err, test.want)
		}
	}
}

// TestRetentionByOne: of several processes one forgets, and no process does again before the time is over.
func TestRetentionByOne(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) [2]run.Store{
		"memory": func(*testing.T) [2]run.Store {
			s := memstore.New(nil)
			return [2]run.Store{s, s}
		},
		"file": func(t *testing.T) (stores [2]run.Store) {
			path := filepath.Join(t.TempDir(), "runs.db")
			for i := range stores {
				s, err := sqlite.Open(path, sqlite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				stores[i] = s
			}
			return stores
		},
		"database": func(t *testing.T) (stores [2]run.Store) {
			address := postgrestest.Database(t)
			for i := range stores {
				db, err := postgres.Open(address, postgres.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(db.Close)
				stores[i] = runpostgres.New(db, runpostgres.Options{})
			}
			return stores
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores := open(t)
			t.Cleanup(func() {
				for _, s := range stores {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
			})
			retainByOne(t, stores)
		})
	}
}

// retainByOne applies retention in two stores of the same runs.
func retainByOne(t *testing.T, stores [2]run.Store) {
	ctx := t.Context()
	for range 5 {
		j, err := stores[0].Create(ctx, run.Info{Agent: "a"}, run.Checkpoint{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.End(ctx, run.Ending{Status: run.Done}), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
	rule, now := bulk.Retention{Done: time.Hour, Failed: bulk.Never, Keep: 2}, time.Now()
	for _, when := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {59 * time.Minute, 0}, {2 * time.Hour, 3}} {
		var mu sync.Mutex
		var wg sync.WaitGroup
		var ids []string
		for i := range 8 {
			wg.Go(func() {
				got, err := rule.Apply(ctx, stores[i%2], now.Add(when.after), time.Hour)
				mu.Lock()
				defer mu.Unlock()
				if ids = append(ids, got...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(ids) != when.want {
			t.Fatalf("after %v: %v were forgotten, want %d runs", when.after, ids, when.want)
		}
	}
	if left, err := stores[1].Runs(ctx, run.Query{}); err != nil || len(left) != 2 {
		t.Fatalf("%d runs are left, %v", len(left), err)
	}
}
