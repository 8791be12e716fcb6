package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

func TestFileIsMadeLate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b c?#%", "runs.db")
	s := open(t, path, Options{})
	if infos, err := s.Runs(t.Context(), run.Query{}); err != nil || len(infos) > 0 {
		t.Errorf("runs: %v, %v", infos, err)
	}
	for name, lookup := range map[string]func(id string) error{
		"open":       func(id string) error { _, _, err := s.Open(t.Context(), id); return err },
		"history":    func(id string) error { _, err := s.History(t.Context(), id); return err },
		"checkpoint": func(id string) error { _, err := s.Checkpoint(t.Context(), id, 0); return err },
		"answer":     func(id string) error { return s.Answer(t.Context(), id, "q", run.Reply{Text: "x"}) },
	} {
		if err := lookup("7q"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: %v", name, err)
		}
		if err := lookup(""); fault.CodeOf(err) != fault.Usage {
			t.Errorf("%s of no id: %v", name, err)
		}
	}
	if _, err := s.Delete(t.Context(), "7q000000"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(path))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking made the directory: %v", err)
	}
	j := create(t, s, graph.State{})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for p, want := range map[string]fs.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600} {
		info, err := os.Stat(p)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %o", p, info.Mode(), err, want)
		}
	}
}

func TestUnusableFiles(t *testing.T) {
	garbage := bytes.Repeat([]byte("not a database "), 1000)
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string) error
		code fault.Code
		says string
		hint string
	}{
		{"garbage", func(_ *testing.T, path string) error { return os.WriteFile(path, garbage, 0o600) }, fault.Failure, "is damaged", "mv "},
		{"newer", withPragma("user_version = 99"), fault.Config, "newer version", "update loki"},
		{"foreign", withPragma("application_id = 7"), fault.Config, "something else", "mv "},
		{"directory", func(_ *testing.T, path string) error { return os.Mkdir(path, 0o700) }, fault.Config, "", ""},
		{"parent_is_a_file", func(t *testing.T, path string) error {
			if err := os.Remove(filepath.Dir(path)); err != nil {
				return err
			}
			return os.WriteFile(filepath.Dir(path), nil, 0o600)
		}, fault.Config, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state", "runs.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := tt.make(t, path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			s := open(t, path, Options{})
			_, createErr := s.Create(t.Context(), run.Info{}, run.Checkpoint{})
			_, runsErr := s.Runs(t.Context(), run.Query{})
			_, _, openErr := s.Open(t.Context(), "7q")
			for what, err := range map[string]error{"create": createErr, "runs": runsErr, "open": openErr} {
				if _, ok := errors.AsType[*fault.Error](err); !ok || fault.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) ||
					!strings.Contains(err.Error(), filepath.Dir(path)) || !strings.Contains(fault.HintOf(err), tt.hint) {
					t.Errorf("%s: %v (code %s, hint %q)", what, err, fault.CodeOf(err), fault.HintOf(err))
				}
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// withPragma makes a good file and changes its header.
func withPragma(pragma string) func(t *testing.T, path string) error {
	return func(t *testing.T, path string) error {
		s, err := Open(path, Options{})
		if err != nil {
			return err
		}
		j := create(t, s, graph.State{})
		if err := j.Close(); err != nil {
			return err
		}
		if _, err := s.writer.c.ExecContext(t.Context(), "PRAGMA "+pragma); err != nil {
			return err
		}
		return s.Close()
	}
}

// TestDamagedFile changes bytes all over a file. Whatever is read then is right or a
// clear error.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "runs.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := react(t, s, 12, 3000)
	id := j.ID()
	if err := errors.Join(j.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	good := open(t, path, Options{})
	want, err := good.Checkpoint(t.Context(), id, -1)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(4, 0))
	found := 0
	for i := range 150 {
		data := bytes.Clone(whole)
		switch i % 3 {
		case 0: // a byte
			data[100+rnd.IntN(len(data)-100)] ^= byte(1 + rnd.IntN(255))
		case 1: // a page
			page := data[4096*rnd.IntN(len(data)/4096):][:4096]
			for i := range page {
				page[i] = byte(rnd.Uint32())
			}
		case 2: // the end is missing
			data = data[:4096*(1+rnd.IntN(len(data)/4096-1))]
		}
		broken := filepath.Join(dir, fmt.Sprintf("broken%d.db", i))
		if err := os.WriteFile(broken, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(broken, Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Checkpoint(t.Context(), id, -1)
		if err == nil && string(c.State.AppendJSON(nil)) != string(want.State.AppendJSON(nil)) {
			t.Errorf("damage %d: a wrong state was read: %.200s", i, c.State.AppendJSON(nil))
		}
		_, historyErr := s.History(t.Context(), id)
		k, _, openErr := s.Open(t.Context(), id)
		if openErr == nil {
			_ = recordStep(k, "x")
			_ = k.Close()
		}
		for _, err := range []error{err, historyErr, openErr} {
			if err == nil || fault.CodeOf(err) == fault.NotFound { // the damage may be to the id
				continue
			}
			found++
			if !strings.Contains(err.Error(), broken) || !strings.Contains(fault.HintOf(err), "mv ") {
				t.Errorf("damage %d: %v (hint %q)", i, err, fault.HintOf(err))
			}
		}
		_ = s.Close()
		if _, err := os.Stat(broken); err != nil {
			t.Errorf("damage %d: the file is gone: %v", i, err)
		}
	}
	if found < 50 {
		t.Errorf("only %d errors of 450 were seen", found)
	}
}

func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, Options{})
	j := create(t, s, graph.State{})
	if err := recordStep(j, "before"); err != nil {
		t.Fatal(err)
	}
	limit := func(pages int) {
		t.Helper()
		if _, err := s.writer.c.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // means: no more than there are
	r := j.Task(1, "a")
	large := []byte(value.Of(prose(1, 1<<20)).String())
	j.Event(event.Event{Time: time.Now(), Body: event.Warning{Text: "kept for later"}})
	err := r.Record(t.Context(), "large", steps.Step{Kind: steps.Tool}, large)
	if fault.CodeOf(err) != fault.Failure || !strings.Contains(err.Error(), path) || !strings.Contains(fault.HintOf(err), "free some space") {
		t.Errorf("record on a full disk: %v (hint %q)", err, fault.HintOf(err))
	}
	if got, err := r.Lookup(t.Context(), "large", steps.Step{}); err != nil || got.Done {
		t.Errorf("the step is on record after all: %v", err)
	}
	limit(1 << 30)
	if err := r.Record(t.Context(), "large", steps.Step{Kind: steps.Tool}, large); err != nil {
		t.Fatalf("after space was freed: %v", err)
	}
	if got, err := r.Lookup(t.Context(), "large", steps.Step{}); err != nil || !bytes.Equal(got.Result, large) {
		t.Errorf("the step came back as %.50q, %v", got.Result, err)
	}
	if h, err := s.History(t.Context(), j.ID()); err != nil || len(h.Events) != 1 || len(h.Steps) != 2 {
		t.Errorf("history %+v, %v", h, err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func size(t *testing.T, s *Store) int64 {
	t.Helper()
	if _, err := s.writer.c.ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestDeleteShrinksTheFile(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{})
	keep := react(t, s, 3, 20_000)
	before := size(t, s)
	var ids []string
	for range 3 {
		j := react(t, s, 30, 20_000) // three of the texts are shared
		ids = append(ids, j.ID())
		if err := errors.Join(j.End(t.Context(), run.Ending{Status: run.Done}), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if full := size(t, s); full < before+500_000 || full > before+900_000 {
		t.Errorf("three runs of the same 600 KB take %d bytes", full-before)
	}
	if deleted, err := s.Delete(t.Context(), ids...); err != nil || len(deleted) != len(ids) {
		t.Fatal(deleted, err)
	}
	if after := size(t, s); after > before+64<<10 {
		t.Errorf("%d bytes are left after the deletion, of %d before the runs", after, before)
	}
	c, err := s.Checkpoint(t.Context(), keep.ID(), -1)
	if v, _ := c.State.Get("messages"); err != nil || len(v.Text()) < 60_000 {
		t.Errorf("the run that is left has lost its texts: %v", err)
	}
}

// TestSizeIsLinear commits 1,000 super-steps to a graph of 100 nodes, with a list and a
// text that grow and a large value that does not change.
func TestSizeIsLinear(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{Durability: Off})
	c := run.Checkpoint{
		State: graph.NewState(value.ObjectOf(
			value.Member{Name: "fixed", Value: value.Of(prose(1, 100_000))},
			value.Member{Name: "list", Value: value.List{}.Value()},
			value.Member{Name: "text", Value: value.Of("")},
		)), Position: run.Position{Visits: map[string]int{}},
	}
	j := create(t, s, c.State)
	var sizes []int64
	const each = 300
	for i := range 1000 {
		before := c.State
		list, _ := c.State.Get("list")
		l, _ := list.AsList()
		text, _ := c.State.Get("text")
		c.Step++
		c.State = c.State.With(
			value.Member{Name: "list", Value: l.Append(value.Of(prose(uint64(i), each))).Value()},
			value.Member{Name: "text", Value: value.Of(text.Text() + prose(uint64(i), each))},
		)
		c.Visits[fmt.Sprintf("node%d", i%100)]++
		j.Event(event.Event{Time: time.Now(), Body: event.StateUpdated{Values: before.Changes(c.State)}})
		if err := j.Commit(t.Context(), c, []run.Visit{{Step: c.Step, Node: "a"}}); err != nil {
			t.Fatal(err)
		}
		if i%250 == 249 {
			sizes = append(sizes, size(t, s))
		}
	}
	first, last := sizes[1]-sizes[0], sizes[3]-sizes[2]
	if last > first+first/10 {
		t.Errorf("250 commits take %d bytes at the beginning and %d at the end", first, last)
	}
	if perCommit := last / 250; perCommit > 2*each+600 {
		t.Errorf("a commit of %d bytes takes %d", 2*each, perCommit)
	}
	got, err := s.Checkpoint(t.Context(), j.ID(), -1)
	if err != nil || string(got.State.AppendJSON(nil)) != string(c.State.AppendJSON(nil)) {
		t.Errorf("the state is not what was committed: %v", err)
	}
}

// TestFileIsCloseToWhatChanged is the run of an agent with 100 large tool results: a
// result is in a step, an event and the state, and stored once.
func TestFileIsCloseToWhatChanged(t *testing.T) {
	const rounds, each = 100, 36_180
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{Durability: Off})
	react(t, s, rounds, each)
	if n := size(t, s); n > rounds*each*12/10 {
		t.Errorf("%d bytes of results take %d", rounds*each, n)
	}
}

func TestOptions(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "runs.db"), Options{Durability: "paper"}); fault.CodeOf(err) != fault.Config {
		t.Errorf("unknown durability: %v", err)
	}
	for d, want := range map[Durability]int{"": 1, Process: 1, Power: 2, Off: 0} {
		s := open(t, filepath.Join(t.TempDir(), "runs.db"), Options{Durability: d})
		create(t, s, graph.State{})
		var got int
		if err := s.writer.c.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&got); err != nil || got != want {
			t.Errorf("%q: synchronous is %d, %v", d, got, err)
		}
	}
}
