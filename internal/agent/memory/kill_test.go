package memory_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loki/internal/agent/memory"
)

// churnDir is the variable with the directory of the process that is going to be killed.
const churnDir = "LOKI_TEST_CHURN"

// churn saves, proposes, accepts, changes and forgets facts until it is killed. It prints what it is about to do, and what is done.
func churn(dir string) error {
	ctx, s, p := context.Background(), memory.NewStore(dir), memory.Place{Workspace: "w"}
	writer := fmt.Sprint(os.Getpid())
	fmt.Println("begun")
	for i := 0; ; i++ {
		fact := func(n int, proposed bool) memory.Fact {
			return memory.Fact{Scope: memory.Workspace, Text: strings.TrimSpace(words(writer+"x", 10*i+n)), By: memory.ByModel, Proposed: proposed}
		}
		kept, err := s.Save(ctx, p, fact(0, false))
		if err != nil {
			return err
		}
		fmt.Println("has", kept.ID, kept.Text)
		fresh, err := s.Save(ctx, p, fact(1, true))
		if err != nil {
			return err
		}
		fmt.Println("proposed", fresh.ID)
		if _, err := s.Accept(ctx, p, fresh.ID); err != nil {
			return err
		}
		fmt.Println("has", fresh.ID, fresh.Text)
		change := fact(2, true)
		change.Changes, change.Base = kept.ID, kept.Sum
		if change, err = s.Save(ctx, p, change); err != nil {
			return err
		}
		fmt.Println("may", kept.ID, change.Text)
		if _, err := s.Accept(ctx, p, change.ID); err != nil {
			return err
		}
		fmt.Println("has", kept.ID, change.Text)
		if i%2 == 0 {
			fmt.Println("may", kept.ID)
			if _, err := s.Forget(ctx, p, kept.ID); err != nil {
				return err
			}
			fmt.Println("gone", kept.ID)
		}
		wrong := fact(3, true)
		wrong.Changes, wrong.Base, wrong.Forgets = fresh.ID, fresh.Sum, true
		if wrong, err = s.Save(ctx, p, wrong); err != nil {
			return err
		}
		fmt.Println("may", fresh.ID)
		if _, err := s.Accept(ctx, p, wrong.ID); err != nil {
			return err
		}
		fmt.Println("gone", fresh.ID)
	}
}

// TestKills kills a process that writes facts and decides about proposals: what it has said is done, nothing is there twice, and what was interrupted can be done
// again. LOKI_KILL_TEST=full kills 200 times.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := 20
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		kills = 200
	}
	dir, p := t.TempDir(), memory.Place{Workspace: "w"}
	want := make(map[string]string) // texts by id, of all processes
	lines, decided := 0, 0
	for range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), churnDir+"="+dir)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		may := make(map[string]string) // what the last line says that may be done, "" for a fact that may be gone
		var timer *time.Timer
		for scan := bufio.NewScanner(out); scan.Scan(); lines++ {
			verb, rest, _ := strings.Cut(scan.Text(), " ")
			id, text, _ := strings.Cut(rest, " ")
			clear(may)
			switch verb {
			case "begun":
				timer = time.AfterFunc(rand.N(150*time.Millisecond), func() { _ = cmd.Process.Kill() })
			case "has":
				want[id] = text
			case "gone":
				delete(want, id)
			case "may":
				may[id] = text
			}
		}
		_ = cmd.Wait()
		if timer == nil || said.Len() > 0 {
			t.Fatalf("it failed: %s", said.String())
		}
		timer.Stop()

		s := memory.NewStore(dir)
		s.Warn = func(_ context.Context, text string) { t.Error(text) }
		for _, f := range s.List(t.Context(), p, true) { // the user decides
			decided++
			if _, err := s.Accept(t.Context(), p, f.ID); err != nil {
				t.Errorf("proposal %s (changes %q, forgets %v): %v", f.ID, f.Changes, f.Forgets, err)
			}
			if f.Forgets {
				delete(want, f.Changes)
			} else if f.Changes != "" {
				want[f.Changes] = f.Text
			} else {
				want[f.ID] = f.Text
			}
		}
		facts, texts := make(map[string]string), make(map[string]bool)
		for _, f := range s.List(t.Context(), p, false) {
			if facts[f.ID] != "" || texts[f.Text] {
				t.Errorf("fact %s is there twice", f.ID)
			}
			facts[f.ID], texts[f.Text] = f.Text, true
		}
		for id, text := range want {
			later, uncertain := may[id]
			if facts[id] != text && !(uncertain && facts[id] == later) {
				t.Errorf("fact %s is %q instead of %q", id, facts[id], text)
			}
		}
		for id, text := range facts {
			if want[id] = text; len(facts) > len(want)+1 { // that of the last save was not told
				t.Errorf("fact %s should not be there", id)
			}
		}
		for id := range want {
			if facts[id] == "" {
				delete(want, id)
			}
		}
		if left := s.List(t.Context(), p, true); len(left) > 0 {
			t.Errorf("left are the proposals %+v", left)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	open := 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) != ".md" && d.Name() != ".lock" {
			open++
		}
		return err
	})
	t.Logf("%d kills, %d things done, %d proposals decided afterwards, %d facts, %d files of interrupted writes", kills, lines, decided, len(want), open)
	if open > kills || len(want) == 0 {
		t.Error("there are files that no writer leaves, or no facts")
	}
}
