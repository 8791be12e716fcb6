package bulk_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"loki/internal/workflow/run"
	"loki/internal/workflow/run/bulk"
	"loki/internal/workflow/run/memstore"
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
	ctx, clock := t.Context(), time.Now()
	store := memstore.New(func() time.Time { return clock })
	for range 5 {
		j, err := store.Create(ctx, run.Info{Agent: "a"}, run.Checkpoint{})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.End(ctx, run.Ending{Status: run.Done}); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	rule := bulk.Retention{Done: time.Hour, Failed: bulk.Never, Keep: 2}
	apply := func() (ids []string) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				got, err := rule.Apply(ctx, store, clock, time.Hour)
				mu.Lock()
				defer mu.Unlock()
				if ids = append(ids, got...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return ids
	}
	if ids := apply(); len(ids) != 0 {
		t.Fatalf("%v were forgotten before their time", ids)
	}
	clock = clock.Add(59 * time.Minute)
	if ids := apply(); len(ids) != 0 {
		t.Fatalf("%v were forgotten before their time", ids)
	}
	clock = clock.Add(time.Hour)
	if ids := apply(); len(ids) != 3 {
		t.Fatalf("%v were forgotten, want 3 runs", ids)
	}
	if left, err := store.Runs(ctx, run.Query{}); err != nil || len(left) != 2 {
		t.Fatalf("%d runs are left, %v", len(left), err)
	}
}
