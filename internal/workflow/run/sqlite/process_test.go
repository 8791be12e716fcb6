package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/base/text/sample"
	"loki/internal/base/value"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/runtest"
)

// childDrive drives a run and kills its own process at the n-th call of the hook.
func childDrive() error {
	dir := os.Getenv("DIR")
	at, err := strconv.Atoi(os.Getenv("AT"))
	if err != nil {
		return err
	}
	s, err := Open(filepath.Join(dir, "runs.db"), Options{Hook: func(op string, n int) {
		if n == at {
			_ = runtest.AppendLine(filepath.Join(dir, "killed"), op)
			p, _ := os.FindProcess(os.Getpid())
			_ = p.Kill()
			select {}
		}
	}})
	if err != nil {
		return err
	}
	if _, err := runtest.Drive(context.Background(), s, filepath.Join(dir, "log")); err != nil {
		return err
	}
	return s.Close()
}

// TestKill kills a process before and after every single write of a run, and resumes
// the run at once. Without LOKI_TEST=full it tries every fifth moment.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	whole := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{})
	want, err := runtest.Drive(t.Context(), whole, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	ops := make(map[string]int)
	for at := 1; ; at += sample.Step(5) {
		dir := t.TempDir()
		cmd := child(t, "drive", "DIR="+dir, "AT="+strconv.Itoa(at))
		err := cmd.Run()
		killed, _ := os.ReadFile(filepath.Join(dir, "killed"))
		op := strings.TrimSpace(string(killed))
		if op == "" {
			if err != nil {
				t.Fatalf("the process failed by itself: %v", err)
			}
			break
		}
		ops[op]++
		s := open(t, filepath.Join(dir, "runs.db"), Options{})
		got, err := runtest.Drive(t.Context(), s, filepath.Join(dir, "log"))
		if err != nil {
			t.Fatalf("resuming after a kill at %s (%d): %v", op, at, err)
		}
		if string(got.AppendJSON(nil)) != string(want.AppendJSON(nil)) {
			t.Errorf("killed at %s (%d): the final state differs", op, at)
		}
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Fields(string(log))
		wantLines := 12
		if op == "record" && at%2 == 1 {
			wantLines++ // it was made, and the record of it is missing
		}
		if len(lines) != wantLines || len(slices.Compact(slices.Sorted(slices.Values(lines)))) != 12 {
			t.Errorf("killed at %s (%d): the effects were %v", op, at, lines)
		}
		infos, err := s.Runs(t.Context(), run.Query{})
		if err != nil || len(infos) != 1 || infos[0].Status != run.Done || infos[0].Steps != 4 {
			t.Errorf("killed at %s (%d): runs %+v, %v", op, at, infos, err)
		}
	}
	for op, n := range map[string]int{"create": 2, "begin": 24, "record": 24, "finished": 8, "commit": 8, "end": 2, "close": 2} {
		if ops[op] != n && sample.Step(5) == 1 {
			t.Errorf("%d kills at %s, want %d (all: %v)", ops[op], op, n, ops)
		}
	}
}

const (
	writers      = 3
	runsEach     = 4
	recordsOfRun = 25
)

// childWrite writes runs of its own into a file that others write too.
func childWrite() error {
	ctx := context.Background()
	s, err := Open(filepath.Join(os.Getenv("DIR"), "runs.db"), Options{})
	if err != nil {
		return err
	}
	for range runsEach {
		j, err := s.Create(ctx, run.Info{Agent: os.Getenv("NAME")}, run.Checkpoint{})
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		for i := range recordsOfRun {
			text := []byte(value.Of(prose(uint64(i), 100*i)).String()) // the same in all processes
			if err := j.Task(1, "a").Record(ctx, strconv.Itoa(i), steps.Step{Kind: steps.Tool}, text); err != nil {
				return fmt.Errorf("record: %w", err)
			}
		}
		if err := errors.Join(j.Commit(ctx, run.Checkpoint{Step: 1}, nil), j.Close()); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	return s.Close()
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wait := make([]func() error, writers)
	for i := range writers {
		cmd := child(t, "write", "DIR="+dir, "NAME="+strconv.Itoa(i))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait[i] = cmd.Wait
	}
	s := open(t, filepath.Join(dir, "runs.db"), Options{})
	for i := range writers {
		if _, err := s.Runs(t.Context(), run.Query{}); err != nil { // reads meanwhile
			t.Error(err)
		}
		if err := wait[i](); err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	infos, err := s.Runs(t.Context(), run.Query{})
	if err != nil || len(infos) != writers*runsEach {
		t.Fatalf("%d runs, want %d; %v", len(infos), writers*runsEach, err)
	}
	for _, info := range infos {
		j, _, err := s.Open(t.Context(), info.ID)
		if err != nil {
			t.Fatal(err)
		}
		for i := range recordsOfRun {
			r, err := j.Task(1, "a").Lookup(t.Context(), strconv.Itoa(i), steps.Step{})
			if want := value.Of(prose(uint64(i), 100*i)).String(); err != nil || string(r.Result) != want {
				t.Errorf("run %s, step %d: %.50q, %v", info.ID, i, r.Result, err)
			}
		}
		if err := errors.Join(j.End(t.Context(), run.Ending{Status: run.Done}), j.Close()); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Delete(t.Context(), idsOf(infos)...); err != nil {
		t.Fatal(err)
	}
	isEmpty(t, s)
}

// isEmpty checks that nothing is left of runs that were deleted.
func isEmpty(t *testing.T, s *Store) {
	t.Helper()
	tables := []string{"runs", "blobs", "pieces", "uses"}
	for _, r := range rowsOf {
		tables = append(tables, r.table)
	}
	for _, table := range tables {
		if n := count(t, s, table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}

func idsOf(infos []run.Info) (ids []string) {
	for _, i := range infos {
		ids = append(ids, i.ID)
	}
	return ids
}

func count(t *testing.T, s *Store, table string) (n int) {
	t.Helper()
	err := s.view(t.Context(), func(c *conn) error {
		_, err := c.row("SELECT count(*) FROM "+table, nil, &n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// childHold creates a run, prints its id, and holds it until its input ends.
func childHold() error {
	s, err := Open(filepath.Join(os.Getenv("DIR"), "runs.db"), Options{LeaseTime: time.Hour})
	if err != nil {
		return err
	}
	j, err := s.Create(context.Background(), run.Info{}, run.Checkpoint{})
	if err != nil {
		return err
	}
	fmt.Println(j.ID())
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	return nil // without giving the lease back
}

// TestLeaseOfProcess checks that another process is respected as long as it lives,
// and not a moment longer.
func TestLeaseOfProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := child(t, "hold", "DIR="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(line)
	s := open(t, filepath.Join(dir, "runs.db"), Options{})
	_, _, err = s.Open(t.Context(), id)
	held, ok := errors.AsType[*run.LeaseError](err)
	if !ok || !strings.Contains(held.Owner, strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("open while process %d holds the run: %v", cmd.Process.Pid, err)
	}
	if deleted, err := s.Delete(t.Context(), id); err != nil || len(deleted) > 0 {
		t.Error(deleted, err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	j, found, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatalf("open after the process is gone: %v", err)
	}
	if found.Info.Status != run.Running || found.Info.Active {
		t.Errorf("found %+v", found.Info)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
