package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// endedRun makes a run with n texts of each bytes that has ended.
func endedRun(t testing.TB, s *Store, seed, n, each int) string {
	t.Helper()
	j := create(t, s, graph.State{})
	for i := range n {
		text := []byte(value.Of(prose(uint64(1000*seed+i), each)).String())
		j.Event(event.Event{Time: time.Now(), Body: event.Warning{Text: "x"}})
		if err := j.Task(1, "a").Record(t.Context(), string(rune('a'+i)), steps.Step{Kind: steps.Tool}, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(j.End(t.Context(), run.Ending{Status: run.Done}), j.Close()); err != nil {
		t.Fatal(err)
	}
	return j.ID()
}

// TestDeleteInSmallSteps counts what each transaction of a deletion does, and writes to
// the file from another connection after each of them.
func TestDeleteInSmallSteps(t *testing.T) {
	counts := make(map[int]int) // transactions by the number of large texts
	for _, n := range []int{2, 4} {
		path := filepath.Join(t.TempDir(), "runs.db")
		var s *Store
		var other run.Journal
		var before, pages [2]int
		measure := func(query string) (n int) {
			t.Helper()
			if err := s.writer.c.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
				t.Error(err)
			}
			return n
		}
		s = open(t, path, Options{Hook: func(op string, i int) {
			if op != "delete" && op != "vacuum" {
				return
			}
			end := (i + 1) % 2 // hooks come in pairs
			before[end], pages[end] = measure("SELECT total_changes()"), measure("PRAGMA page_count")
			if end == 0 {
				return
			}
			counts[n]++
			if rows := before[1] - before[0]; op == "delete" && rows > max(sweepPieces, 2*sweepRows)+8 {
				t.Errorf("a transaction changes %d rows", rows)
			}
			if given := pages[0] - pages[1]; given > freedPages+8 {
				t.Errorf("a transaction gives %d pages back", given)
			}
			if err := recordStep(other, "k"); err != nil {
				t.Errorf("another process writes while a run is deleted: %v", err)
			}
		}})
		id := endedRun(t, s, 1, n, 2<<20) // 2 MB are 259 pieces
		second := open(t, path, Options{})
		other = create(t, second, graph.State{})
		if deleted, err := s.Delete(t.Context(), id); err != nil || len(deleted) != 1 {
			t.Fatal(deleted, err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if free := measure("PRAGMA freelist_count"); free > 0 {
			t.Errorf("%d pages were not given back", free)
		}
	}
	if counts[2] < 2*259/sweepPieces || counts[4] > 2*counts[2]+8 {
		t.Errorf("transactions by size: %v", counts)
	}
}

// TestDeleteIsGoneOnWith interrupts a deletion after every fifth of its transactions.
func TestDeleteIsGoneOnWith(t *testing.T) {
	for at := 1; ; at += 5 {
		ctx, cancel := context.WithCancel(t.Context())
		left := 2 * at
		active := false
		s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{Durability: Off, Hook: func(string, int) {
			if active {
				if left--; left == 0 {
					cancel()
				}
			}
		}})
		keep := endedRun(t, s, 1, 2, 50_000)
		first, second := endedRun(t, s, 1, 3, 50_000), endedRun(t, s, 2, 200, 2000)
		active = true
		deleted, err := s.Delete(ctx, first, second)
		active = false
		interrupted := err != nil
		infos, err := s.Runs(t.Context(), run.Query{})
		if err != nil || len(infos)+len(deleted) != 3 {
			t.Fatalf("after %d transactions %v are deleted and %d left, %v", at, deleted, len(infos), err)
		}
		for _, id := range deleted {
			if _, err := s.History(t.Context(), id); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("after %d transactions a deleted run is still there: %v", at, err)
			}
		}
		if h, err := s.History(t.Context(), keep); err != nil || len(h.Steps) != 2 || len(h.Events) == 0 {
			t.Errorf("after %d transactions the run that stays has %d steps, %v", at, len(h.Steps), err)
		}
		// A new run with the same texts is not harmed by what is swept out later.
		again := endedRun(t, s, 2, 3, 2000)
		if _, err := s.Delete(t.Context(), first, second); err != nil {
			t.Fatal(err)
		}
		j, err := s.Create(t.Context(), run.Info{}, run.Checkpoint{})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{keep, again} {
			err := s.view(t.Context(), func(c *conn) error {
				return c.rows("SELECT result FROM steps WHERE run = (SELECT id FROM runs WHERE name = ?)", []any{id}, []any{new([]byte)}, func() error { return nil })
			})
			if _, err2 := s.History(t.Context(), id); err != nil || err2 != nil {
				t.Errorf("run %s: %v, %v", id, err, err2)
			}
			var broken int
			err = s.view(t.Context(), func(c *conn) error {
				_, err := c.row("SELECT count(*) FROM uses u LEFT JOIN blobs b ON b.id = u.blob LEFT JOIN pieces p ON p.id = b.id * 65536 WHERE u.run = (SELECT id FROM runs WHERE name = ?) AND (p.id IS NULL OR b.refs < 1)", []any{id}, &broken)
				return err
			})
			if err != nil || broken > 0 {
				t.Errorf("run %s has lost %d texts, %v", id, broken, err)
			}
		}
		if err := errors.Join(j.End(t.Context(), run.Ending{Status: run.Done}), j.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Delete(t.Context(), keep, again, j.ID()); err != nil {
			t.Fatal(err)
		}
		isEmpty(t, s)
		cancel()
		if !interrupted {
			if at < 5 {
				t.Errorf("two runs were deleted in %d transactions", at)
			}
			return
		}
	}
}

// TestTextsLeftBehindAreSwept interrupts a deletion when the texts of a run are not used any
// more and are still there. The next deletion sweeps them out, whatever it is asked to delete.
func TestTextsLeftBehindAreSwept(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	writes, active := 0, false
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{Hook: func(op string, _ int) {
		if active && op == "delete" {
			if writes++; writes == 4 { // the run is gone, then its uses of texts; hooks come in pairs
				cancel()
			}
		}
	}})
	id := endedRun(t, s, 1, 3, 50_000)
	active = true
	if deleted, err := s.Delete(ctx, id); !errors.Is(err, context.Canceled) || len(deleted) != 1 {
		t.Fatal(deleted, err)
	}
	var left int
	if err := s.writer.c.QueryRowContext(t.Context(), "SELECT count(*) FROM blobs WHERE refs <= 0").Scan(&left); err != nil || left == 0 {
		t.Fatalf("%d texts are left behind, %v", left, err)
	}
	if deleted, err := s.Delete(t.Context()); err != nil || len(deleted) > 0 {
		t.Error(deleted, err)
	}
	isEmpty(t, s)
}

// TestSweepLeavesBlobsInUse has a list of blobs to sweep out that another process has
// swept out before, and whose ids are used again.
func TestSweepLeavesBlobsInUse(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{})
	endedRun(t, s, 1, 3, 20_000)
	before := count(t, s, "pieces")
	d := deletion{store: s, ctx: t.Context()}
	if err := d.sweepBlobs([]garbage{{1, 3}, {2, 3}, {3, 3}, {99, 3}}); err != nil {
		t.Fatal(err)
	}
	if after := count(t, s, "pieces"); after != before || before < 9 {
		t.Errorf("%d pieces of %d are left", after, before)
	}
}

// TestDeleteSideBySide deletes the same runs twice at once.
func TestDeleteSideBySide(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, Options{})
	var ids []string
	for i := range 4 {
		ids = append(ids, endedRun(t, s, i, 5, 50_000))
	}
	var wg sync.WaitGroup
	var gone [2][]string
	var errs [2]error
	for i, store := range []*Store{s, open(t, path, Options{})} {
		wg.Go(func() { gone[i], errs[i] = store.Delete(context.Background(), ids...) })
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil || len(gone[0])+len(gone[1]) != len(ids) {
		t.Errorf("deleted are %v and %v, %v", gone[0], gone[1], err)
	}
	isEmpty(t, s)
}

// TestDamagedRun damages what belongs to one run each. The others are listed, opened and
// deleted as ever.
func TestDamagedRun(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{})
	var ids []string
	for i := range 5 {
		ids = append(ids, endedRun(t, s, i, 1, 3000))
	}
	for i, damage := range []string{
		"UPDATE runs SET about = x'00' WHERE name = ?", "UPDATE runs SET ending = x'0001' WHERE name = ?",
		"DELETE FROM checkpoints WHERE run = (SELECT id FROM runs WHERE name = ?)", "UPDATE checkpoints SET doc = x'' WHERE run = (SELECT id FROM runs WHERE name = ?)",
	} {
		err := s.write("damage", false, func(c *conn) error { _, err := c.exec(damage, ids[i]); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	infos, err := s.Runs(t.Context(), run.Query{})
	if err != nil || len(infos) != 5 {
		t.Fatalf("%d runs are listed, %v", len(infos), err)
	}
	for _, info := range infos {
		if info.Damaged != (info.ID != ids[4]) || info.Agent != "a" || info.Status != run.Done || info.Started.IsZero() {
			t.Errorf("listed is %+v", info)
		}
	}
	for _, id := range ids[:4] {
		_, err := s.History(t.Context(), id)
		if err == nil || !strings.Contains(err.Error(), "run "+id) || !strings.Contains(fault.HintOf(err), "other runs are not affected") {
			t.Errorf("history of a damaged run: %v (hint %q)", err, fault.HintOf(err))
		}
	}
	if _, err := s.History(t.Context(), ids[4]); err != nil {
		t.Error(err)
	}
	deleted, err := s.Delete(t.Context(), ids...)
	if slices.Sort(deleted); err != nil || !slices.Equal(deleted, slices.Sorted(slices.Values(ids))) {
		t.Errorf("deleted are %v, %v", deleted, err)
	}
	isEmpty(t, s)
}

// TestListIsShort lists runs with prompts and outputs of megabytes.
func TestListIsShort(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{Durability: Off})
	const size = 2 << 20
	for i := range 3 {
		j, err := s.Create(t.Context(), run.Info{Prompt: prose(uint64(i), size)}, run.Checkpoint{})
		if err == nil {
			err = errors.Join(j.End(t.Context(), run.Ending{Status: run.Done, Output: prose(uint64(100+i), size)}), j.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	infos, err := s.Runs(t.Context(), run.Query{})
	runtime.ReadMemStats(&after)
	if err != nil || len(infos) != 3 || len(infos[0].Prompt) > 2*run.HeadSize || !strings.HasPrefix(infos[0].Output, prose(102, 1000)) {
		t.Errorf("%d runs are listed, %v", len(infos), err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > size/4 {
		t.Errorf("to list %d bytes of text takes %d bytes of memory", 3*2*size, n)
	}
}

// BenchmarkDelete reports how long deleting a megabyte takes, and for how long another
// connection found the file locked at a stretch.
func BenchmarkDelete(b *testing.B) {
	for _, runs := range []int{4, 16} {
		b.Run(fmt.Sprintf("%dMB", 12*runs), func(b *testing.B) {
			var longest, took time.Duration
			deleted := 0
			for b.Loop() {
				b.StopTimer()
				path := filepath.Join(b.TempDir(), "runs.db")
				s := open(b, path, Options{})
				var ids []string
				for i := range runs {
					ids = append(ids, endedRun(b, s, i, 4, 3<<20))
				}
				stop := make(chan struct{})
				probe := make(chan time.Duration)
				go func() { probe <- longestLock(b, path, stop) }() // ends with stop
				b.StartTimer()
				start := time.Now()
				gone, err := s.Delete(b.Context(), ids...)
				took += time.Since(start)
				close(stop)
				longest = max(longest, <-probe)
				if deleted += len(gone); err != nil || len(gone) != runs {
					b.Fatal(gone, err)
				}
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "longest-lock-ms")
			b.ReportMetric(float64(took.Microseconds())/1000/float64(12*deleted), "ms/MB")
		})
	}
}

// longestLock returns for how long at most the file was locked until stop is closed.
func longestLock(b *testing.B, path string, stop <-chan struct{}) (longest time.Duration) {
	db, err := connect(path)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer db.Close()
	c, err := newConn(db)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer c.close()
	if _, err := c.exec("PRAGMA busy_timeout = 0"); err != nil {
		b.Error(err)
	}
	for free := time.Now(); ; time.Sleep(time.Millisecond) {
		if err := c.transaction("BEGIN IMMEDIATE", func() error { return nil }); err == nil {
			free = time.Now()
		}
		longest = max(longest, time.Since(free))
		select {
		case <-stop:
			return longest
		default:
		}
	}
}
