//go:build unix

package manager_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loki/internal/llm/event"
	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
	runsdb "loki/internal/workflow/run/postgres"
	"loki/internal/workflow/run/sqlite"
)

// Environment of a server process.
const (
	serverStore = "LOKI_TEST_GATES" // path of a file, or address of a database
	serverLock  = "LOKI_TEST_LOCK"  // path of a file that is locked while a run works
)

func TestMain(m *testing.M) {
	if os.Getenv(serverStore) != "" {
		if err := server(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// alone is work during which nobody else may work.
type alone struct{ path string }

func (alone) Started() event.Started { return event.Started{} }

func (w alone) Do(context.Context, *run.Frame) (run.Outcome, error) {
	f, err := os.OpenFile(w.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return run.Outcome{}, err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return run.Outcome{}, errors.Join(err, os.WriteFile(w.path+".two", nil, 0o600))
	}
	time.Sleep(rand.N(4 * time.Millisecond))
	return run.Outcome{}, nil
}

// openGated opens a store of runs, and returns verbs for runs that work alone.
func openGated(where, lock string) (store run.Store, runs *run.Service, job run.Job, err error) {
	if strings.Contains(where, "://") {
		var db *postgres.DB
		if db, err = postgres.Open(where, postgres.Options{Setting: "store"}); err == nil {
			store = runsdb.New(db, runsdb.Options{})
		}
	} else {
		store, err = sqlite.Open(where, sqlite.Options{})
	}
	if err != nil {
		return nil, nil, job, err
	}
	g, _, err := gate.Rules{Key: "one"}.Gate("", "", nil)
	job = run.Job{
		Info: run.Info{Kind: run.ChatRun, Admission: run.Admission{Gates: []gate.Gate{g}}}, Durability: graph.DurabilityProcess,
		Make: func(context.Context, run.Point) (run.Work, func() error, error) { return alone{lock}, nil, nil },
	}
	runs = &run.Service{
		Open: func(graph.Durability) (run.Store, error) { return shared{store}, nil },
		Recall: func(_ context.Context, info run.Info, _ run.Checkpoint, c run.Continuation) (run.Job, error) {
			again := job
			again.Info, again.Events = info, c.Events
			return again, nil
		},
	}
	return store, runs, job, err
}

// server starts a run for each line of its input, until it is killed. It prints a line once it works, and one for each run on record.
func server() error {
	store, runs, job, err := openGated(os.Getenv(serverStore), os.Getenv(serverLock))
	if err != nil {
		return err
	}
	m := manager.New(manager.Options{
		Runs: func() *run.Service { return runs }, Store: store, Events: func(e event.Emitter) event.Scope { return event.NewScope(e, event.Source{}, nil) },
	})
	job.Events = m.Events()
	ctx := context.Background()
	if err := m.ResumeOnStart(ctx); err != nil {
		return err
	}
	go m.Wake(ctx) // ends with the process
	fmt.Println("works")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		id, err := m.Start(ctx, job)
		if err != nil {
			return err
		}
		fmt.Println(id)
	}
	select {} // until it is killed
}

// TestGateKill starts 200 runs with one key at servers that are killed again and again: never do two of them work at the same time, and
// none is lost.
func TestGateKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	const all = 200
	for name, of := range map[string]struct {
		servers int
		store   func(t *testing.T) string
	}{
		"files":    {1, func(t *testing.T) string { return filepath.Join(t.TempDir(), "runs.db") }},
		"database": {2, func(t *testing.T) string { return postgrestest.Database(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where, lock := of.store(t), filepath.Join(t.TempDir(), "lock")
			store, runs, job, err := openGated(where, lock)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			kills := make([]func(), of.servers)
			var each sync.WaitGroup
			for n := range of.servers {
				each.Go(func() {
					const times = 5
					for k := range times {
						kills[n] = serve(t, where, lock, all/of.servers/times)
						if k < times-1 {
							time.Sleep(rand.N(300 * time.Millisecond))
							kills[n]()
						}
					}
				})
			}
			each.Go(func() { // a command
				if _, err := runs.Start(t.Context(), job); err != nil {
					t.Error(err)
				}
			})
			each.Wait()
			defer func() {
				for _, kill := range kills {
					kill()
				}
			}()
			statuses := make(map[run.Status]int)
			for until := time.Now().Add(3 * time.Minute); time.Now().Before(until) && statuses[run.Done] <= all; time.Sleep(100 * time.Millisecond) {
				infos, err := store.Runs(t.Context(), run.Query{})
				if err != nil {
					t.Fatal(err)
				}
				clear(statuses)
				for _, info := range infos {
					statuses[info.Status]++
				}
			}
			if len(statuses) != 1 || statuses[run.Done] != all+1 {
				t.Errorf("runs by status: %v", statuses)
			}
			if _, err := os.Stat(lock + ".two"); err == nil {
				t.Error("two runs have worked at the same time")
			}
		})
	}
}

// serve starts a server, and so many runs at it, and returns what kills it.
func serve(t *testing.T, where, lock string, starts int) (kill func()) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverStore+"="+where, serverLock+"="+lock)
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, err := cmd.StdoutPipe()
	if err = errors.Join(inErr, err, cmd.Start()); err != nil {
		t.Error(err)
		return func() {}
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
	_, err = io.WriteString(in, strings.Repeat("start\n", starts))
	lines := bufio.NewScanner(out)
	for range 1 + starts {
		if err == nil && !lines.Scan() {
			err = errors.Join(io.ErrUnexpectedEOF, lines.Err())
		}
	}
	if err != nil {
		t.Error("the server does not work: ", err)
	}
	return kill
}
