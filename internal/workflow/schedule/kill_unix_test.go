//go:build unix

package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/service/auth"
	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run"
	runsdb "loki/internal/workflow/run/postgres"
	"loki/internal/workflow/run/sqlite"
	"loki/internal/workflow/schedule"
)

// Environment of a worker process.
const (
	workerStore = "LOKI_TEST_SCHEDULES" // path of a file, or address of a database
	workerClock = "LOKI_TEST_CLOCK"     // path of a file with the seconds by which the clock was set
)

func TestMain(m *testing.M) {
	if os.Getenv(workerStore) != "" {
		if err := worker(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// speed is how much faster the clock of the test goes: a minute takes 60 ms.
const speed = 1000

var epoch = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// fastClock returns a clock that goes fast, and is set as a file says. Its origin is written at the beginning of that file.
func fastClock(path string) func() time.Time {
	return func() time.Time {
		text, _ := os.ReadFile(path)
		began, set, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		nanoseconds, _ := strconv.ParseInt(began, 10, 64)
		seconds, _ := strconv.Atoi(set)
		return epoch.Add(time.Since(time.Unix(0, nanoseconds))*speed + time.Duration(seconds)*time.Second)
	}
}

// openStore opens the store of runs that a name means.
func openStore(name string) (run.Store, error) {
	if !strings.Contains(name, "://") {
		return sqlite.Open(name, sqlite.Options{})
	}
	db, err := postgres.Open(name, postgres.Options{Setting: "store"})
	if err != nil {
		return nil, err
	}
	return runsdb.New(db, runsdb.Options{}), nil
}

// serviceOver returns the schedules of the test over a store.
func serviceOver(store run.Store, clock func() time.Time) (*schedule.Service, error) {
	var all []*schedule.Schedule
	for name, d := range map[string]schedule.Doc{
		"skip": {Cron: "* * * * *", Missed: schedule.MissedSkip}, "once": {Cron: "*/2 * * * *"}, "all": {Every: "5m", Missed: schedule.MissedAll, Jitter: "1m"},
	} {
		d.Agent, d.Timezone, d.Overlap, d.Grace = "x", "Europe/Berlin", schedule.OverlapAllow, "3m"
		s, err := schedule.Check(name, d)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return &schedule.Service{
		Store: store, Now: clock, Log: slog.New(slog.DiscardHandler), Configured: func(context.Context) ([]*schedule.Schedule, error) { return all, nil },
		Job: func(_ context.Context, s *schedule.Schedule, _ *auth.Owner) (run.Job, error) {
			return run.Job{Info: run.Info{Agent: s.Agent, Served: true}}, nil
		},
		Start: func(ctx context.Context, job run.Job) (string, error) {
			j, err := store.Create(ctx, job.Info, run.Checkpoint{})
			if err != nil {
				return "", err
			}
			return j.ID(), errors.Join(j.End(ctx, run.Ending{Status: run.Done}), j.Close())
		},
	}, nil
}

// worker starts runs until it is killed. It prints a line once it works.
func worker() error {
	store, err := openStore(os.Getenv(workerStore))
	if err != nil {
		return err
	}
	s, err := serviceOver(store, fastClock(os.Getenv(workerClock)))
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		if _, _, err := s.Tick(context.Background()); err != nil {
			return err
		}
		if first {
			fmt.Println("works")
		}
		time.Sleep(5 * time.Millisecond) // a process that looks all the time would keep others from the file
	}
}

// TestKill kills processes that start runs, and sets their clock by an hour forward and back: each due time has one run, or one reason
// for none. LOKI_KILL_TEST=full kills 500 times with each store.
func TestKill(t *testing.T) {
	kills := 24
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		kills = 500
	}
	for name, of := range map[string]struct {
		servers int
		store   func(t *testing.T) string
	}{
		"files":    {1, func(t *testing.T) string { return filepath.Join(t.TempDir(), "runs.db") }},
		"database": {2, func(t *testing.T) string { return postgrestest.Database(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := of.store(t)
			began, set := time.Now().UnixNano(), 0
			clock := filepath.Join(t.TempDir(), "clock")
			write := func() {
				next := clock + ".next"
				if err := errors.Join(os.WriteFile(next, fmt.Appendf(nil, "%d %d\n", began, set), 0o600), os.Rename(next, clock)); err != nil {
					t.Error(err)
				}
			}
			write()
			var each sync.WaitGroup
			for n := range of.servers {
				each.Go(func() {
					for k := range kills / of.servers {
						if n == 0 && k%4 == 3 {
							set += []int{3600, -3600, -3600, 3600}[k/4%4]
							write()
						}
						kill(t, where, clock)
					}
				})
			}
			each.Wait()
			set = max(set, 0) + 3600
			write()
			checkOutcomes(t, where, fastClock(clock))
		})
	}
}

// kill starts a worker and kills it at a random moment after it has begun to work.
func kill(t *testing.T, where, clock string) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), workerStore+"="+where, workerClock+"="+clock)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Error("the worker does not begin: ", err)
	}
	time.Sleep(rand.N(150 * time.Millisecond))
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
}

// checkOutcomes decides about what is due now, and finds times without an outcome, and runs without a time.
func checkOutcomes(t *testing.T, where string, clock func() time.Time) {
	store, err := openStore(where)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s, err := serviceOver(store, clock)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, every := range map[string]time.Duration{"skip": time.Minute, "once": 2 * time.Minute, "all": 5 * time.Minute} {
		history, err := s.History(t.Context(), name, 0)
		if err != nil || len(history) == 0 {
			t.Fatalf("%s: %d outcomes, %v", name, len(history), err)
		}
		slices.Reverse(history)
		var fired []string
		last := history[0].Due.Add(-every * time.Duration(max(1, history[0].Count)))
		for _, o := range history {
			if last = last.Add(every * time.Duration(max(1, o.Count))); !o.Due.Equal(last) {
				t.Fatalf("%s: after %v times are missing, the next is %v", name, last.Add(-every), o.Due)
			}
			if (o.Run == "") == (o.Reason == "") {
				t.Errorf("%s at %v: run %q, reason %q", name, o.Due, o.Run, o.Reason)
			}
			if o.Run != "" {
				fired = append(fired, o.Run)
			}
		}
		infos, err := store.Runs(t.Context(), run.Query{Origin: "schedule/" + name})
		if err != nil {
			t.Fatal(err)
		}
		var runs []string
		for _, info := range infos {
			runs = append(runs, info.ID)
		}
		slices.Sort(fired)
		slices.Sort(runs)
		if !slices.Equal(fired, runs) {
			t.Errorf("%s: %d times with a run, %d runs", name, len(fired), len(runs))
		}
		t.Logf("%s: %d outcomes, %d runs", name, len(history), len(runs))
	}
}
