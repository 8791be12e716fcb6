//go:build unix

package worktree_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loki/internal/workflow/graph"
)

// workerDir is the variable with the directory of the process that is going to be killed.
const workerDir = "LOKI_TEST_WORKTREE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(workerDir); dir != "" {
		fmt.Fprintln(os.Stderr, worker(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// worker makes worktrees, commits in them, and ends them in all ways, until it is killed. It prints the commits that are there.
func worker(dir string) error {
	ctx := context.Background()
	store := storeIn(dir)
	for i := os.Getpid() * 1000; ; i++ {
		tree, err := store.Open(ctx, filepath.Join(dir, "shop"), []string{"", "fix"}[i%2], graph.Worktree{})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tree.Root, "f"+strconv.Itoa(i)), []byte("x"), 0o600); err != nil {
			return err
		}
		c, err := tree.Commit(ctx)
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "git", "rev-parse", "HEAD")
		cmd.Dir = tree.Root
		id, err := cmd.Output()
		if err != nil {
			return err
		}
		fmt.Printf("%s", id)
		switch i % 3 {
		case 0:
			err = tree.Keep(ctx, c)
		case 1:
			err = tree.Merge(ctx, c)
		case 2:
			_, err = tree.Renew(ctx)
			tree.Close()
		}
		if err != nil {
			return err
		}
	}
}

// TestKills kills a process that works in worktrees at random moments: no commit is lost, and the next process works on. LOKI_KILL_TEST=full
// kills 200 times.
func TestKills(t *testing.T) {
	times := 10
	if os.Getenv("LOKI_KILL_TEST") == "full" {
		times = 200
	}
	b := newBench(t)
	dir := filepath.Dir(b.dir)
	b.store = storeIn(dir)
	var commits []string
	within := time.Minute // the time of two commits, of which the first process may take its time
	for i := range times + 1 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), workerDir+"="+dir)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		b.ok(err)
		b.ok(cmd.Start())
		begun, after := time.Now(), within
		if i > 0 {
			after = rand.N(within)
		}
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if commits = append(commits, lines.Text()); i == 0 && len(commits) == 2 {
				within = time.Since(begun)
				_ = cmd.Process.Signal(syscall.SIGKILL)
			}
		}
		_ = cmd.Wait()
		timer.Stop()
		if said.Len() > 0 {
			t.Fatalf("it failed: %s", said.String())
		}
		if _, err := os.Stat(b.dir + "/.git/index.lock"); err == nil { // git itself was killed, as with any other program that runs it
			b.ok(os.Remove(b.dir + "/.git/index.lock"))
			b.git(b.dir, "reset", "-q", "--hard")
		}
		for _, lock := range []string{"refs/heads/main.lock", "HEAD.lock", "ORIG_HEAD.lock"} {
			_ = os.Remove(b.dir + "/.git/" + lock)
		}
	}
	entries, err := b.store.List()
	b.ok(err)
	for _, e := range entries {
		tree, err := b.store.Find(t.Context(), b.dir, e.Name)
		b.ok(err)
		b.ok(tree.Keep(t.Context(), b.work(tree)))
	}
	if len(commits) == 0 {
		t.Error("no commits were made")
	}
	for _, id := range commits {
		if got := b.git(b.dir, "for-each-ref", "--contains="+id, "--format=%(refname)", "refs/heads"); got == "" {
			t.Errorf("the commit %s is lost", id)
		}
	}
	b.git(b.dir, "fsck", "--strict")
	unfinished, _ := filepath.Glob(filepath.Join(dir, "worktrees", "*", "..*.json-*"))
	for _, file := range unfinished { // as if they were old: younger ones may have a writer
		b.ok(os.Chtimes(file, time.Time{}, time.Now().Add(-24*time.Hour)))
	}
	if tree := b.open("last", graph.Worktree{}); tree != nil {
		b.ok(tree.Discard(t.Context()))
		b.gone(tree)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "worktrees", "*", "*")); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	t.Logf("%d commits, %d worktrees were left", len(commits), len(entries))
}
