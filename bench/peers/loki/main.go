// Command loki is Loki's side of the comparison of graph engines: the driver of package
// run with nodes that are Go functions.
//
// Like the other engines' sides it first prints a line of JSON that says what it is.
// Then it reads lines of a case's name, "/durable" after it for a checkpoint in each
// super-step, and a number of runs. It makes the runs one after the other and prints
// the nanoseconds they took together, or "-" if it has no such case.
//
// With the argument sqlite it is the side of SQLite alone: see replay.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"loki/internal/workflow/run"
	"loki/internal/workflow/run/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := side{name: "Loki", version: version(), withStore: withSQLite, durable: "its SQLite store on a file, durability \"process\""}
	if len(os.Args) > 1 && os.Args[1] == "sqlite" {
		s.name, s.version, s.durable = "SQLite alone", driverVersion(), "the rows of Loki's checkpoints, in as many transactions"
		s.replay = &replay{recordings: make(map[string]recording)}
	}
	if err := s.serve(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "loki:", err)
		os.Exit(1)
	}
}

func withSQLite(_ context.Context, dir string) (run.Store, error) {
	return sqlite.Open(filepath.Join(dir, "runs.db"), sqlite.Options{})
}

// side answers the requests of the comparison.
type side struct {
	name, version string
	// replay makes it the side of SQLite alone; nil for Loki's.
	replay *replay
	// withStore opens the store of a durable case in a new directory. Nil means that
	// there are no durable cases; durable says what kind of store it is.
	withStore func(ctx context.Context, dir string) (run.Store, error)
	durable   string
}

func (s side) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	without := "Loki's side was built without a store."
	if s.replay != nil {
		without = "SQLite has a part in the cases with checkpoints only."
	}
	hello, err := json.Marshal(map[string]string{
		"name": s.name, "version": s.version, "runtime": runtime.Version(), "durable": s.durable, "without": without,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", hello)
	made := make(map[string]bench)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var name string
		var runs int
		if _, err := fmt.Sscan(lines.Text(), &name, &runs); err != nil {
			return fmt.Errorf("request %q: %w", lines.Text(), err)
		}
		name, durable := strings.CutSuffix(name, "/durable")
		maker, ok := makers()[name]
		if !ok || durable && s.withStore == nil || !durable && s.replay != nil {
			fmt.Fprintln(out, "-")
			continue
		}
		b, ok := made[name]
		if !ok {
			if b, err = maker(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			made[name] = b
		}
		var took time.Duration
		if s.replay != nil {
			took, err = s.replay.measure(ctx, name, b, runs)
		} else {
			took, err = s.measure(ctx, b, durable, runs)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintln(out, took.Nanoseconds())
	}
	return lines.Err()
}

// version is the commit that the program was built from.
func version() string {
	var revision, changed string
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	return cmp.Or(revision, "of unknown commit") + changed
}

// driverVersion is the version of the SQLite driver that the program was built with.
func driverVersion() string {
	const path = "modernc.org/sqlite"
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == path {
			return path + " " + m.Version
		}
	}
	return path
}

// measure returns how long the runs take together. Opening and closing the store is
// not counted.
func (s side) measure(ctx context.Context, b bench, durable bool, runs int) (_ time.Duration, err error) {
	var r runner
	if durable {
		dir, err := os.MkdirTemp("", "loki-bench-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		if r.store, err = s.withStore(ctx, dir); err != nil {
			return 0, err
		}
		defer func() {
			if closeErr := r.store.Close(); err == nil {
				err = closeErr
			}
		}()
		// A store may put off making its files until its first run.
		first, err := counting(1)
		if err != nil {
			return 0, err
		}
		if err := first.run(ctx, r); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	for range runs {
		if err := b.run(ctx, r); err != nil {
			return 0, err
		}
	}
	took := time.Since(begin)
	if durable {
		return took, recorded(ctx, r.store)
	}
	return took, nil
}

// recorded returns an error unless the store has runs and all of them to the end: a run
// goes on when its record cannot be written, and would then be timed without.
func recorded(ctx context.Context, store run.Store) error {
	infos, err := store.Runs(ctx, run.Query{})
	if err != nil {
		return err
	}
	if len(infos) == 0 {
		return errors.New("no run was recorded")
	}
	for _, info := range infos {
		if info.Status != run.Done {
			return fmt.Errorf("run %s was recorded only to status %s", info.ID, info.Status)
		}
	}
	return nil
}
