package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text/sample"
	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// together makes all calls while another write is under way, so that they wait for the file
// as one group, and returns their errors. Each call makes one write.
func together(s *Store, calls ...func() error) []error {
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	s.writing.Lock()
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
	}
	for s.queued() < len(calls) {
		runtime.Gosched()
	}
	s.writing.Unlock()
	wg.Wait()
	return errs
}

// queued returns the number of writes that wait for the file.
func (s *Store) queued() int {
	s.groupMu.Lock()
	defer s.groupMu.Unlock()
	if s.waiting == nil {
		return 0
	}
	return len(s.waiting.writes)
}

// noisy returns a long text that no other n has.
func noisy(n int) []byte { return []byte(value.Of(prose(uint64(n), 3000)).String()) }

// keep records a long result.
func keep(ctx context.Context, j run.Journal, n int) func() error {
	return func() error {
		return j.Task(1, "a").Record(ctx, "kept", steps.Step{Kind: steps.Tool}, noisy(n))
	}
}

// isKept checks that the result is on record.
func isKept(t *testing.T, s *Store, j run.Journal, n int) {
	t.Helper()
	h, err := s.History(t.Context(), j.ID())
	if err != nil || len(h.Steps) != 1 || h.Steps[0].Key != "kept" || !h.Steps[0].Done {
		t.Errorf("run %d has steps %+v, %v", n, h.Steps, err)
	}
	r, err := j.Task(1, "a").Lookup(t.Context(), "kept", steps.Step{})
	if err != nil || string(r.Result) != string(noisy(n)) {
		t.Errorf("run %d: the step came back as %.50q, %v", n, r.Result, err)
	}
}

func TestGroupIsOneTransaction(t *testing.T) {
	transactions := 0
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{Hook: func(_ string, n int) { transactions = n / 2 }})
	var journals []run.Journal
	var calls []func() error
	for i := range 100 {
		j := create(t, s, graph.State{})
		journals = append(journals, j)
		calls = append(calls, keep(t.Context(), j, i%50)) // two runs keep the same
	}
	before := transactions
	if err := errors.Join(together(s, calls...)...); err != nil {
		t.Fatal(err)
	}
	if n := transactions - before; n > len(calls)/2 { // a slow machine needs several
		t.Errorf("%d writes at once took %d transactions", len(calls), n)
	}
	for i, j := range journals {
		isKept(t, s, j, i%50)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{})
	s.writing.Lock()
	defer s.writing.Unlock()
	for i := range 2*maxGroup + 1 {
		g, first := s.join(&write{})
		if first != (i%maxGroup == 0) || len(g.writes) != i%maxGroup+1 {
			t.Fatalf("write %d is number %d of its group and first: %v", i, len(g.writes), first)
		}
	}
}

// TestErrorInGroup has writes that fail in one group with writes that do not.
func TestErrorInGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	c := newClock()
	o := Options{Now: c.now, Live: c.since, Owner: elsewhere(1)}
	s := open(t, path, o)
	good := []run.Journal{create(t, s, graph.State{}), create(t, s, graph.State{}), create(t, s, graph.State{})}
	answered, lost := create(t, s, graph.State{}), create(t, s, graph.State{})
	q := run.Pending{ID: "q", Step: 1, Node: "a", Key: "ask"}
	ask := steps.Step{Kind: steps.Question}
	if err := errors.Join(answered.Asked(t.Context(), q), answered.Task(1, "a").Record(t.Context(), "ask", ask, []byte(`"yes"`))); err != nil {
		t.Fatal(err)
	}
	o.Owner = inContainer(2)
	other := open(t, path, o)
	c.advance(s.o.LeaseTime)
	if _, _, err := other.Open(t.Context(), lost.ID()); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	errs := together(
		s,
		keep(t.Context(), good[0], 0),
		keep(t.Context(), lost, 1),
		keep(t.Context(), good[1], 2),
		func() error { return answered.Asked(t.Context(), q) },
		func() error { return s.write("fails", false, func(*conn) error { return boom }) },
		func() (err error) {
			defer func() { err = fmt.Errorf("panic: %v", recover()) }()
			return s.write("panics", false, func(*conn) error { panic("oh") })
		},
		func() error {
			_, _, err := s.Open(t.Context(), lost.ID()) // the other process holds it
			return err
		},
		keep(t.Context(), good[2], 3),
	)
	_, held := errors.AsType[*run.LeaseError](errs[6])
	for i, ok := range []bool{
		errs[0] == nil, errors.Is(errs[1], run.ErrLeaseLost), errs[2] == nil, errors.Is(errs[3], run.ErrAnswered),
		errors.Is(errs[4], boom), strings.Contains(errs[5].Error(), "oh"), held, errs[7] == nil,
	} {
		if !ok {
			t.Errorf("write %d: %v", i, errs[i])
		}
	}
	if err := context.Cause(lost.Lease()); !errors.Is(err, run.ErrLeaseLost) {
		t.Errorf("the lease that is lost ends with %v", err)
	}
	for i, j := range good {
		if err := context.Cause(j.Lease()); err != nil {
			t.Errorf("run %d lost its lease: %v", i, err)
		}
		isKept(t, s, j, []int{0, 2, 3}[i])
	}
	if h, err := s.History(t.Context(), lost.ID()); err != nil || len(h.Steps) != 0 {
		t.Errorf("the run that was taken over has steps %+v, %v", h.Steps, err)
	}
}

// TestCanceledInGroup cancels a context while its write waits: what was done is recorded.
func TestCanceledInGroup(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	j := create(t, s, graph.State{})
	errs := together(s, keep(ctx, j, 1), func() error {
		cancel()
		return s.write("nothing", false, func(*conn) error { return nil })
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	isKept(t, s, j, 1)
}

// TestCloseInGroup closes the store while writes wait: each is made, or says that it was not.
func TestCloseInGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, Options{})
	var journals []run.Journal
	for range 20 {
		journals = append(journals, create(t, s, graph.State{}))
	}
	errs := make([]error, len(journals))
	var wg sync.WaitGroup
	var closeErr error
	s.writing.Lock()
	for i, j := range journals {
		wg.Go(func() { errs[i] = keep(t.Context(), j, i)() })
	}
	for s.queued() == 0 {
		runtime.Gosched()
	}
	wg.Go(func() { closeErr = s.Close() })
	s.writing.Unlock()
	wg.Wait()
	if closeErr != nil {
		t.Error(closeErr)
	}
	s = open(t, path, Options{})
	for i, j := range journals {
		h, err := s.History(t.Context(), j.ID())
		switch {
		case err != nil || h.Info.Active:
			t.Errorf("run %d: %+v, %v", i, h.Info, err)
		case errs[i] == nil && len(h.Steps) != 1 || errs[i] != nil && len(h.Steps) != 0:
			t.Errorf("run %d: the write returned %v, and on record are %+v", i, errs[i], h.Steps)
		case errs[i] != nil && !errors.Is(errs[i], run.ErrClosed):
			t.Errorf("run %d: %v", i, errs[i])
		}
	}
}

// TestLockInGroup has another process hold the file when a group wants to write.
func TestLockInGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, Options{})
	var calls []func() error
	for i := range 10 {
		calls = append(calls, keep(t.Context(), create(t, s, graph.State{}), i))
	}
	other := open(t, path, Options{})
	create(t, other, graph.State{})
	if _, err := s.writer.c.ExecContext(t.Context(), "PRAGMA busy_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	err := other.write("hold", false, func(*conn) error {
		for i, err := range together(s, calls...) {
			if !errors.Is(err, run.ErrPassing) || !strings.Contains(err.Error(), "locked by another process") {
				t.Errorf("write %d while the file is locked: %v", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(together(s, calls...)...); err != nil {
		t.Errorf("after the lock is gone: %v", err)
	}
}

// TestFullDiskInGroup has one write in the group for which there is no space.
func TestFullDiskInGroup(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{})
	var journals []run.Journal
	for range 4 {
		journals = append(journals, create(t, s, graph.State{}))
	}
	var pages int
	if _, err := s.writer.row("PRAGMA page_count", nil, &pages); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.c.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages+50)); err != nil {
		t.Fatal(err)
	}
	errs := together(s, keep(t.Context(), journals[0], 0), keep(t.Context(), journals[1], 1), func() error {
		return journals[2].Task(1, "a").Record(t.Context(), "large", steps.Step{}, []byte(value.Of(prose(1, 1<<20)).String()))
	}, keep(t.Context(), journals[3], 3))
	if fault.CodeOf(errs[2]) != fault.Failure || !strings.Contains(fault.HintOf(errs[2]), "free some space") {
		t.Errorf("the large write: %v", errs[2])
	}
	if err := errors.Join(errs[0], errs[1], errs[3]); err != nil {
		t.Errorf("the small writes: %v", err)
	}
	for _, i := range []int{0, 1, 3} {
		isKept(t, s, journals[i], i)
	}
}

// TestLeaseIsReadAgain checks that a lease which another connection, or this store, has given
// away is not taken for the one that was read before.
func TestLeaseIsReadAgain(t *testing.T) {
	for _, by := range []string{"another_process", "the_same_store"} {
		t.Run(by, func(t *testing.T) {
			c := newClock()
			path := filepath.Join(t.TempDir(), "runs.db")
			s := open(t, path, Options{Now: c.now, Live: c.since, Owner: elsewhere(1)})
			j := create(t, s, graph.State{})
			if err := errors.Join(recordStep(j, "1"), recordStep(j, "2")); err != nil {
				t.Fatal(err)
			}
			other := s
			if by == "another_process" {
				other = open(t, path, Options{Now: c.now, Live: c.since, Owner: inContainer(2)})
			}
			c.advance(s.o.LeaseTime)
			k, _, err := other.Open(t.Context(), j.ID())
			if err != nil {
				t.Fatal(err)
			}
			if err := recordStep(j, "3"); !errors.Is(err, run.ErrLeaseLost) {
				t.Errorf("a write without the lease: %v", err)
			}
			if err := errors.Join(recordStep(k, "3"), recordStep(k, "4")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUsage checks when the file is left free for other processes.
func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		name         string
		locked, free time.Duration // in turns
		want         time.Duration // after which the file is left free; 0 for never
	}{
		{"all_the_time", 5 * time.Millisecond, 0, fairAfter},
		{"nearly_all_the_time", 9 * time.Millisecond, time.Millisecond, fairAfter},
		{"half_of_the_time", 5 * time.Millisecond, 5 * time.Millisecond, 0},
		{"long_and_then_not", time.Second, freeFor, 0},
		{"one_that_is_very_long", 3 * time.Second, freeFor, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var u usage
			start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
			var got time.Duration
			for at := start; got == 0 && at.Sub(start) < time.Minute; at = at.Add(tt.locked + tt.free) {
				if u.add(at, at.Add(tt.locked)) {
					got = at.Add(tt.locked).Sub(start)
				}
			}
			if got < tt.want || got > tt.want+tt.locked+tt.free || tt.want == 0 && got > 0 {
				t.Errorf("the file is left free after %s, want %s", got, tt.want)
			}
		})
	}
}

// burst drives runs side by side, of steps super-steps each, and prints a line of the run's id
// and the super-step for each commit that is acknowledged.
func burst(ctx context.Context, s *Store, runs, steps int, acknowledged io.Writer) error {
	errs := make([]error, runs)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			j, err := s.Create(ctx, run.Info{Agent: "burst"}, run.Checkpoint{})
			if err != nil {
				errs[i] = fmt.Errorf("create: %w", err)
				return
			}
			c := run.Checkpoint{}
			for range steps {
				c.Step++
				c.State = c.State.With(value.Member{Name: "n", Value: value.Of(c.Step)}, value.Member{Name: "text", Value: value.Of(prose(uint64(c.Step), 1500))})
				if err := j.Commit(ctx, c, []run.Visit{{Step: c.Step, Node: "a", Number: c.Step}}); err != nil {
					errs[i] = fmt.Errorf("commit: %w", err)
					return
				}
				mu.Lock()
				_, err := fmt.Fprintln(acknowledged, j.ID(), c.Step)
				mu.Unlock()
				if err != nil {
					errs[i] = err
					return
				}
			}
			errs[i] = errors.Join(j.End(ctx, run.Ending{Status: run.Done}), j.Close())
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// childBurst makes runs side by side until it is killed.
func childBurst() error {
	s, err := Open(filepath.Join(os.Getenv("DIR"), "runs.db"), Options{Durability: Durability(os.Getenv("DURABILITY"))})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(os.Getenv("STEPS"))
	if err != nil {
		return err
	}
	if err := burst(context.Background(), s, 40, n, os.Stdout); err != nil {
		return err
	}
	return s.Close()
}

// TestKillInBurst kills a process that makes many runs at once, and checks that all commits
// that it was told of are on record, and that each run can go on.
func TestKillInBurst(t *testing.T) {
	t.Parallel()
	for i, after := range []int{1, 25, 80, 200, 450} {
		if i%sample.Step(2) != 0 {
			continue
		}
		t.Run(strconv.Itoa(after), func(t *testing.T) {
			dir := t.TempDir()
			cmd := child(t, "burst", "DIR="+dir, "STEPS=1000000")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			acknowledged := make(map[string]int)
			lines := bufio.NewScanner(out)
			for n := 0; lines.Scan(); {
				var id string
				var step int
				if _, err := fmt.Sscan(lines.Text(), &id, &step); err != nil {
					break // the line in which it died
				}
				acknowledged[id] = step
				if n++; n == after {
					if err := cmd.Process.Kill(); err != nil {
						t.Fatal(err)
					}
				}
			}
			_ = cmd.Wait() // killed
			s := open(t, filepath.Join(dir, "runs.db"), Options{})
			infos, err := s.Runs(t.Context(), run.Query{})
			if err != nil {
				t.Fatal(err)
			}
			for _, info := range infos {
				j, found, err := s.Open(t.Context(), info.ID)
				if err != nil {
					t.Fatalf("open after the kill: %v", err)
				}
				c := found.Last
				n, _ := c.State.Get("n")
				if c.Step < acknowledged[info.ID] || c.Step > 0 && n.Text() != strconv.Itoa(c.Step) {
					t.Errorf("run %s came to super-step %d with n = %s; it was told that %d is on record", info.ID, c.Step, n.Text(), acknowledged[info.ID])
				}
				delete(acknowledged, info.ID)
				c.Step++
				if err := errors.Join(j.Commit(t.Context(), c, nil), j.End(t.Context(), run.Ending{Status: run.Done}), j.Close()); err != nil {
					t.Error(err)
				}
			}
			if len(acknowledged) > 0 {
				t.Errorf("runs are missing: %v", acknowledged)
			}
		})
	}
}

// TestBurstsOfProcesses has two processes, and this one, make many runs at once in one file.
func TestBurstsOfProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const each, runs = 5, 40
	var wait []func() error
	for range 2 {
		cmd := child(t, "burst", "DIR="+dir, "STEPS="+strconv.Itoa(each))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait = append(wait, cmd.Wait)
	}
	s := open(t, filepath.Join(dir, "runs.db"), Options{})
	if err := burst(t.Context(), s, runs, each, io.Discard); err != nil {
		t.Error(err)
	}
	for _, w := range wait {
		if err := w(); err != nil {
			t.Error(err)
		}
	}
	infos, err := s.Runs(t.Context(), run.Query{})
	if err != nil || len(infos) != 3*runs {
		t.Fatalf("%d runs, want %d; %v", len(infos), 3*runs, err)
	}
	for _, info := range infos {
		c, err := s.Checkpoint(t.Context(), info.ID, -1)
		if text, _ := c.State.Get("text"); err != nil || info.Status != run.Done || c.Step != each || text.Text() != prose(each, 1500) {
			t.Errorf("run %s is %s after super-step %d: %v", info.ID, info.Status, c.Step, err)
		}
	}
}

// TestManyBegin: of many runs that begin at the same time, few are at work, since those that have begun end before most of the others begin.
func TestManyBegin(t *testing.T) {
	const runs = 2000
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{Durability: Off})
	var wg sync.WaitGroup
	var working, most atomic.Int64
	for range runs {
		wg.Go(func() {
			j, err := s.Create(t.Context(), run.Info{Agent: "a"}, run.Checkpoint{})
			if err != nil {
				t.Error(err)
				return
			}
			defer working.Add(-1)
			for n := working.Add(1); ; {
				if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
					break
				}
			}
			for step := range 2 {
				if err := j.Commit(t.Context(), run.Checkpoint{Step: step + 1}, nil); err != nil {
					t.Error(err)
				}
			}
			if err := errors.Join(j.End(t.Context(), run.Ending{Status: run.Done}), j.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n > runs/2 {
		t.Errorf("%d of %d runs were at work at the same time", n, runs)
	}
}
