package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/llm/event/redact"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// lockFile holds the write lock of a file until the returned function is called.
func lockFile(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConn(db)
	if err == nil {
		_, err = c.exec("BEGIN IMMEDIATE")
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_, err := c.exec("COMMIT")
		if err := errors.Join(err, c.close(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestGapWithoutSecrets notes a gap whose reason has a secret, beside the file and then in it.
func TestGapWithoutSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	secrets := new(redact.Secrets)
	secrets.Add("KEY", "sk-swordfish")
	o := Options{Seal: secrets.Seal, Unseal: func(text string) string { return redact.Unseal(text, nil) }}
	s := open(t, path, o)
	j := create(t, s, graph.State{})
	unlock := lockFile(t, path)
	if err := j.Gap(t.Context(), run.Gap{Reason: "sk-swordfish filled the disk", Status: run.Failed, Error: "sk-swordfish failed"}); err != nil {
		t.Fatal(err)
	}
	look := func() {
		t.Helper()
		files, err := filepath.Glob(path + "*")
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), "swordfish") {
				t.Errorf("%s has the secret, or %v", file, err)
			}
		}
		reader := open(t, path, o)
		infos, err := reader.Runs(t.Context(), run.Query{})
		if err != nil || len(infos) == 0 || infos[0].Gap == nil || infos[0].Gap.Reason != "***KEY*** filled the disk" {
			t.Errorf("listed are %+v, %v", infos, err)
		}
	}
	look()
	unlock()
	later := open(t, path, o)
	if _, _, err := later.Open(t.Context(), j.ID()); err == nil { // takes the note over
		t.Error("a run with a gap was opened")
	}
	if _, err := os.Stat(path + ".gap-" + j.ID()); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the note was not taken over: %v", err)
	}
	look()
}

// TestGapBesideTheFile notes a gap while the file cannot be written.
func TestGapBesideTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, Options{})
	other := create(t, s, graph.State{})
	j := create(t, s, graph.State{})
	unlock := lockFile(t, path)
	if err := j.Gap(t.Context(), run.Gap{Reason: "the disk is full", Nodes: map[string]int{"a": 2}}); err != nil {
		t.Fatal(err)
	}
	mark := path + ".gap-" + j.ID()
	if info, err := os.Stat(mark); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the note beside the file: %v, %v", info, err)
	}
	// Those who only look see it, and do not wait for the lock.
	reader := open(t, path, Options{})
	infos, err := reader.Runs(t.Context(), run.Query{})
	if err != nil || len(infos) != 2 || infos[0].Gap == nil || infos[0].Gap.Nodes["a"] != 2 || infos[1].Gap != nil {
		t.Errorf("listed are %+v, %v", infos, err)
	}
	if h, err := reader.History(t.Context(), j.ID()); err != nil || h.Info.Gap == nil {
		t.Errorf("history %+v, %v", h.Info, err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("the note is gone though it could not be taken over: %v", err)
	}
	unlock()

	later := open(t, path, Options{})
	if infos, err = later.Runs(t.Context(), run.Query{}); err != nil || infos[0].Gap == nil || infos[0].Gap.Reason != "the disk is full" {
		t.Errorf("listed are %+v, %v", infos, err)
	}
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the note was taken over and is still there: %v", err)
	}
	if err := errors.Join(j.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	_, _, err = later.Open(t.Context(), j.ID())
	if _, ok := errors.AsType[*run.GapError](err); !ok {
		t.Errorf("open: %v", err)
	}
	k, _, err := later.Open(t.Context(), other.ID())
	if err != nil {
		t.Fatalf("a run without a gap: %v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// TestPlaceOfTheNote notes a gap while the file can be written: beside it as long as the run
// goes on, in it once the run is over, and in it if there is no place beside it.
func TestPlaceOfTheNote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, Options{})
	for _, tt := range []struct {
		name   string
		status run.Status
		taken  bool // a directory is where the note would be
		beside bool
	}{
		{name: "goes_on", beside: true},
		{name: "over", status: run.Done},
		{name: "no_place", taken: true, beside: true}, // the directory stays
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := create(t, s, graph.State{})
			defer j.Close()
			mark := path + ".gap-" + j.ID()
			if tt.taken {
				if err := os.MkdirAll(filepath.Join(mark, "x"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.Gap(t.Context(), run.Gap{Reason: "full", Status: tt.status}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(mark); (err == nil) != tt.beside {
				t.Errorf("beside the file: %v", err)
			}
			var noted bool
			if err := s.writer.c.QueryRowContext(t.Context(), "SELECT gap IS NOT NULL FROM runs WHERE name = ?", j.ID()).Scan(&noted); err != nil || noted != (tt.name != "goes_on") {
				t.Errorf("in the file: %v, %v", noted, err)
			}
		})
	}
}

// TestAcceptGapOfNoteThatStays has a note that cannot be removed: the run still has its gap.
func TestAcceptGapOfNoteThatStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, Options{})
	j := create(t, s, graph.State{})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path+".gap-"+j.ID(), "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.AcceptGap(t.Context(), j.ID()); fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), j.ID()) {
		t.Errorf("%v", err)
	}
}

// TestEmptyMark has a note that found no space on the disk, one of a run that was
// deleted, and files that are no notes.
func TestEmptyMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, Options{})
	j := create(t, s, graph.State{})
	if err := errors.Join(j.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".gap-" + j.ID(): "", ".gap-00000000": "{", ".gaps": "mine", "-gap-" + j.ID(): "mine"} {
		if err := os.WriteFile(path+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, path, Options{})
	_, _, err := s.Open(t.Context(), j.ID())
	gap, ok := errors.AsType[*run.GapError](err)
	if !ok || !strings.Contains(gap.Error(), "not on record from super-step 1 on") || !strings.Contains(gap.Gap.Repeats(), "everything the run did after super-step 0") {
		t.Errorf("open: %v", err)
	}
	for name, want := range map[string]bool{".gap-" + j.ID(): false, ".gap-00000000": false, ".gaps": true, "-gap-" + j.ID(): true} {
		if _, err := os.Stat(path + name); (err == nil) != want {
			t.Errorf("%s: %v, want it to be there: %v", name, err, want)
		}
	}
}

// TestGapOnFullDisk lets the file be full, ends the run and frees the space.
func TestGapOnFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, Options{})
	j := create(t, s, graph.State{})
	limit := func(pages int) {
		t.Helper()
		if _, err := s.writer.c.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(1)
	err := j.End(t.Context(), run.Ending{Status: run.Done, Output: prose(1, 1<<20)})
	if err == nil || errors.Is(err, run.ErrPassing) || strings.Contains(fault.HintOf(err), "resume") {
		t.Fatalf("the end on a full disk: %v (hint %q)", err, fault.HintOf(err))
	}
	if err := j.Gap(t.Context(), run.Gap{Reason: err.Error(), Status: run.Failed, Error: prose(2, 1<<20)}); err != nil {
		t.Fatal(err)
	}
	limit(1 << 30)
	_ = j.Close()
	s = open(t, path, Options{})
	h, err := s.History(t.Context(), j.ID())
	if err != nil || h.Info.Gap == nil || h.Info.Status != run.Failed || h.Info.Error != prose(2, 1<<20) {
		t.Errorf("history: gap %+v, status %s, error %.50q, %v", h.Info.Gap, h.Info.Status, h.Info.Error, err)
	}
}

func TestPassingFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, Options{})
	j := create(t, s, graph.State{})
	if _, err := s.writer.c.ExecContext(t.Context(), "PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	unlock := lockFile(t, path)
	if err := recordStep(j, "k"); !errors.Is(err, run.ErrPassing) || !strings.Contains(err.Error(), path+" is locked by another process") {
		t.Errorf("write to a locked file: %v", err)
	}
	unlock()
	if err := recordStep(j, "k"); err != nil {
		t.Errorf("after the lock is gone: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if err := recordStep(j, "k"); errors.Is(err, run.ErrPassing) {
		t.Errorf("a closed journal is closed for good: %v", err)
	}
}
