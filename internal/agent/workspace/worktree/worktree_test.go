package worktree_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"loki/internal/agent/workspace/worktree"
	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/workflow/graph"
)

// bench is a repository with a store of worktrees.
type bench struct {
	*testing.T
	dir   string // of the checkout
	store *worktree.Store
}

func newBench(t *testing.T, init ...string) bench {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, "gitconfig"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	b := bench{T: t, dir: filepath.Join(t.TempDir(), "shop")}
	b.write(filepath.Join(home, "gitconfig"), "[user]\nname = Ann\nemail = ann@example.com\n[init]\ndefaultBranch = main\n")
	b.git("", append(append([]string{"init", "-q"}, init...), b.dir)...)
	b.write(b.dir+"/a.txt", "one\ntwo\nthree\n")
	b.write(b.dir+"/web/b.txt", "b\n")
	b.write(b.dir+"/.gitignore", "deps/\n")
	b.commit(b.dir, "first")
	b.store = storeIn(t.TempDir())
	return b
}

// storeIn returns a store of worktrees in a directory.
func storeIn(dir string) *worktree.Store {
	return &worktree.Store{
		Dir: filepath.Join(dir, "worktrees"), Environ: os.Environ(),
		Sandbox: func(t *worktree.Tree) (*sandbox.Sandbox, error) {
			return sandbox.New(sandbox.Options{
				Settings: sandbox.Settings{Read: t.Read}, Workspace: t.Root, Home: os.Getenv("HOME"), Own: []string{dir}, State: dir, Getenv: os.Getenv,
			}), nil
		},
	}
}

func (b bench) write(path, content string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
}

func (b bench) read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (b bench) git(dir string, args ...string) string {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (b bench) commit(dir, message string) {
	b.Helper()
	b.git(dir, "add", "-A")
	b.git(dir, "commit", "-q", "-m", message)
}

func (b bench) open(name string, o graph.Worktree) *worktree.Tree {
	b.Helper()
	tree, err := b.store.Open(b.Context(), b.dir, name, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(tree.Close)
	return tree
}

func (b bench) work(tree *worktree.Tree) worktree.Change {
	b.Helper()
	c, err := tree.Commit(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (b bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// state is everything in a directory: names with modes and contents.
func (b bench) state(dir string) map[string]string {
	all := make(map[string]string)
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		all[rel] = info.Mode().String()
		if info.Mode().IsRegular() {
			all[rel] += b.read(path)
		}
		return nil
	})
	b.ok(err)
	return all
}

func TestMerge(t *testing.T) {
	b := newBench(t)
	tree := b.open("fix", graph.Worktree{})
	b.write(tree.Root+"/a.txt", "one\nTWO\nthree\n")
	b.commit(tree.Root, "shout")
	b.write(tree.Root+"/new.txt", "new\n")
	b.write(b.dir+"/web/b.txt", "mine, not committed\n")
	c := b.work(tree)
	if c.Commits != 2 || !slices.Equal(c.Files, []string{"a.txt", "new.txt"}) || !strings.Contains(c.Stat, "2 files changed") {
		t.Errorf("change %+v", c)
	}
	b.ok(tree.Merge(t.Context(), c))
	if got := b.read(b.dir + "/a.txt"); got != "one\nTWO\nthree\n" {
		t.Errorf("a.txt is %q", got)
	}
	if got := b.git(b.dir, "status", "--porcelain"); got != "M web/b.txt" {
		t.Errorf("status %q", got)
	}
	if got := b.git(b.dir, "log", "--format=%s %an"); got != "Open work in the worktree fix Ann\nshout Ann\nfirst Ann" {
		t.Errorf("log %q", got)
	}
	b.gone(tree)
}

// TestKilledGit checks that a lock which a git that was killed has left in the checkout is named, and that nothing is merged.
func TestKilledGit(t *testing.T) {
	for _, name := range []string{"index.lock", "refs/heads/main.lock"} {
		b := newBench(t)
		tree := b.open("fix", graph.Worktree{})
		b.write(tree.Root+"/a.txt", "one\nTWO\nthree\n")
		c := b.work(tree)
		lock := b.dir + "/.git/" + name
		b.write(lock, "")
		offer, done, err := tree.Try(t.Context(), c)
		b.ok(err)
		if got := offer.LockNote(); !strings.Contains(got, lock) {
			t.Errorf("%s: the offer says %q", name, got)
		}
		done()
		if err, ok := errors.AsType[*fault.Error](tree.Merge(t.Context(), c)); !ok || !strings.Contains(err.Hint, lock) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if got := b.git(b.dir, "log", "--format=%s"); got != "first" {
			t.Errorf("%s: log %q", name, got)
		}
		b.ok(os.Remove(lock))
		b.git(b.dir, "checkout", "-q", "HEAD", "--", ".")
		b.ok(tree.Merge(t.Context(), c))
	}
}

// TestKeepBesideBranches keeps work although the user has branches that leave no room for its name.
func TestKeepBesideBranches(t *testing.T) {
	for _, taken := range []string{"loki", "loki/fix/more"} {
		b := newBench(t)
		b.git(b.dir, "branch", taken)
		tree := b.open("fix", graph.Worktree{})
		b.write(tree.Root+"/a.txt", "one\nTWO\nthree\n")
		c := b.work(tree)
		b.ok(tree.Keep(t.Context(), c))
		if got := b.git(b.dir, "show", tree.KeptBranch()+":a.txt"); !strings.HasPrefix(tree.KeptBranch(), "loki-fix-") || got != "one\nTWO\nthree" {
			t.Errorf("%s: kept is %s with %q", taken, tree.KeptBranch(), got)
		}
		b.gone(tree)
	}
}

// gone checks that nothing is left of a worktree.
func (b bench) gone(tree *worktree.Tree) {
	b.Helper()
	if _, err := os.Stat(filepath.Dir(tree.Root)); err == nil {
		left := slices.DeleteFunc(slices.Sorted(maps.Keys(b.state(filepath.Dir(tree.Root)))), func(name string) bool {
			return name == "." || strings.HasPrefix(name, "..") // records that were being written
		})
		if len(left) > 0 {
			b.Errorf("left: %v", left)
		}
	}
	if got := b.git(b.dir, "for-each-ref", "refs/loki"); got != "" {
		b.Errorf("pins %q", got)
	}
}

func TestMergeOfDivergedBranches(t *testing.T) {
	b := newBench(t)
	tree := b.open("fix", graph.Worktree{})
	b.write(tree.Root+"/a.txt", "ONE\ntwo\nthree\n")
	b.write(b.dir+"/a.txt", "one\ntwo\nTHREE\n")
	b.commit(b.dir, "mine")
	b.ok(tree.Merge(t.Context(), b.work(tree)))
	if got := b.read(b.dir + "/a.txt"); got != "ONE\ntwo\nTHREE\n" {
		t.Errorf("a.txt is %q", got)
	}
	if got := b.git(b.dir, "status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
	b.gone(tree)
}

func TestConflict(t *testing.T) {
	b := newBench(t)
	tree := b.open("fix", graph.Worktree{})
	b.write(tree.Root+"/a.txt", "theirs\n")
	b.write(b.dir+"/a.txt", "mine\n")
	b.commit(b.dir, "mine")
	b.write(b.dir+"/web/b.txt", "open\n")
	b.write(b.dir+"/untracked", "u\n")
	before := b.state(b.dir)
	c := b.work(tree)
	o, done, err := tree.Try(t.Context(), c)
	b.ok(err)
	done()
	if !slices.Equal(o.Merge, []string{"a.txt"}) || !slices.Equal(o.Apply, []string{"a.txt"}) {
		t.Errorf("offer %v %v", o.Merge, o.Apply)
	}
	if err := tree.Merge(t.Context(), c); err == nil || !strings.Contains(err.Error(), "a.txt") {
		t.Errorf("merge: %v", err)
	}
	if err := tree.Apply(t.Context(), c); err == nil {
		t.Error("applied")
	}
	if !maps.Equal(before, b.state(b.dir)) {
		t.Error("the checkout has changed")
	}

	files, err := tree.Renew(t.Context())
	b.ok(err)
	if !slices.Equal(files, []string{"a.txt"}) || !strings.Contains(b.read(tree.Root+"/a.txt"), "<<<<<<<") {
		t.Errorf("conflict in %v", files)
	}
	b.write(tree.Root+"/a.txt", "both\n")
	c = b.work(tree)
	b.ok(tree.Merge(t.Context(), c))
	if got := b.read(b.dir + "/a.txt"); got != "both\n" {
		t.Errorf("a.txt is %q", got)
	}
}

// TestUnresolved names the files with marks of conflicts that the work added, and no others.
func TestUnresolved(t *testing.T) {
	b := newBench(t)
	tree := b.open("fix", graph.Worktree{})
	b.write(tree.Root+"/a.txt", "ONE\ntwo\nthree\n")
	b.write(tree.Root+"/space.txt", "a blank at the end \n")
	b.write(b.dir+"/a.txt", "one, mine\ntwo\nthree\n")
	b.commit(b.dir, "mine")
	if c := b.work(tree); len(c.Unresolved) > 0 {
		t.Errorf("before: %v", c.Unresolved)
	}
	if files, err := tree.Renew(t.Context()); err != nil || !slices.Equal(files, []string{"a.txt"}) {
		t.Fatalf("conflicts %v, %v", files, err)
	}
	if c := b.work(tree); !slices.Equal(c.Unresolved, []string{"a.txt"}) {
		t.Errorf("with marks: %v", c.Unresolved)
	}
	b.write(tree.Root+"/a.txt", "ONE, mine\ntwo\nthree\n")
	c := b.work(tree)
	if len(c.Unresolved) > 0 {
		t.Errorf("resolved: %v", c.Unresolved)
	}
	b.ok(tree.Merge(t.Context(), c))
}

// TestResolvedForOwnSide concludes a merge whose conflicts were resolved so that the worktree has the files that it had.
func TestResolvedForOwnSide(t *testing.T) {
	b := newBench(t)
	for _, side := range []string{"at the end", "on entering"} {
		tree := b.open("fix", graph.Worktree{})
		b.write(tree.Root+"/a.txt", "theirs, "+side+"\n")
		b.write(b.dir+"/a.txt", "mine, "+side+"\n")
		b.commit(b.dir, "mine")
		b.work(tree)
		if _, err := tree.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if operation, marked, err := tree.Conclude(t.Context()); err != nil || operation != "merge" || !slices.Equal(marked, []string{"a.txt"}) {
			t.Errorf("with marks: %q %v %v", operation, marked, err)
		}
		b.write(tree.Root+"/a.txt", "theirs, "+side+"\n")
		if side == "on entering" {
			tree.Close()
			tree = b.open("fix", graph.Worktree{})
			if operation, marked, err := tree.Conclude(t.Context()); err != nil || operation != "merge" || len(marked) > 0 {
				t.Errorf("without marks: %q %v %v", operation, marked, err)
			}
			if operation, _, err := tree.Conclude(t.Context()); operation != "" || err != nil {
				t.Errorf("once more: %q %v", operation, err)
			}
		}
		c := b.work(tree)
		if c.Unfinished != "" || len(c.Unresolved) > 0 {
			t.Errorf("%s: %+v", side, c)
		}
		if files, err := tree.Renew(t.Context()); err != nil || len(files) > 0 {
			t.Errorf("%s: a second merge returned %v %v", side, files, err)
		}
		b.ok(tree.Merge(t.Context(), c))
		if got := b.read(b.dir + "/a.txt"); got != "theirs, "+side+"\n" {
			t.Errorf("%s: a.txt is %q", side, got)
		}
	}
}

// TestUnfinished names the operation of git that was begun in a worktree and not ended.
func TestUnfinished(t *testing.T) {
	for want, args := range map[string][]string{"cherry-pick": {"cherry-pick", "other"}, "revert": {"revert", "HEAD~1"}, "rebase": {"rebase", "other"}} {
		t.Run(want, func(t *testing.T) {
			b := newBench(t)
			tree := b.open("fix", graph.Worktree{})
			for _, text := range []string{"first", "second"} {
				b.write(tree.Root+"/a.txt", text+"\n")
				b.commit(tree.Root, text)
			}
			b.git(tree.Root, "checkout", "-q", "-b", "other", "HEAD~2")
			b.write(tree.Root+"/a.txt", "other\n")
			b.commit(tree.Root, "other")
			b.git(tree.Root, "checkout", "-q", tree.Branch())
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Env = tree.Root, append(b.store.Environ, "GIT_EDITOR=true")
			if out, err := cmd.CombinedOutput(); err == nil {
				t.Fatalf("git %v has no conflict: %s", args, out)
			}
			operation, _, err := tree.Conclude(t.Context())
			if operation != want || err == nil || !strings.Contains(err.Error(), want+" in the worktree fix is unfinished") {
				t.Errorf("on entering: %q %v", operation, err)
			}
			if _, err := tree.Renew(t.Context()); err == nil || !strings.Contains(err.Error(), "is unfinished") {
				t.Errorf("a merge on top of it: %v", err)
			}
			b.git(tree.Root, "checkout", "-q", "--ours", "a.txt") // a cherry-pick is empty then
			if c := b.work(tree); want == "cherry-pick" && c.Unfinished != want {
				t.Errorf("at the end: %q", c.Unfinished)
			}
		})
	}
}

func TestUncommittedFilesAreInTheWay(t *testing.T) {
	b := newBench(t)
	tree := b.open("fix", graph.Worktree{})
	b.write(tree.Root+"/a.txt", "theirs\n")
	b.write(tree.Root+"/new.txt", "theirs\n")
	c := b.work(tree)
	b.write(b.dir+"/a.txt", "mine\n")
	b.write(b.dir+"/new.txt", "mine\n")
	before := b.state(b.dir)
	o, done, err := tree.Try(t.Context(), c)
	b.ok(err)
	done()
	if !slices.Contains(o.Merge, "a.txt") || !slices.Contains(o.Merge, "new.txt") || !slices.Contains(o.Apply, "a.txt") {
		t.Errorf("offer %v %v", o.Merge, o.Apply)
	}
	if tree.Merge(t.Context(), c) == nil || tree.Apply(t.Context(), c) == nil {
		t.Error("done all the same")
	}
	if !maps.Equal(before, b.state(b.dir)) {
		t.Error("the checkout has changed")
	}
}

func TestApply(t *testing.T) {
	b := newBench(t)
	tree := b.open("fix", graph.Worktree{})
	b.write(tree.Root+"/a.txt", "theirs\n")
	b.write(tree.Root+"/new.txt", "new\n")
	b.ok(os.Remove(tree.Root + "/web/b.txt"))
	b.ok(tree.Apply(t.Context(), b.work(tree)))
	if got := b.git(b.dir, "status", "--porcelain"); got != "M a.txt\n D web/b.txt\n?? new.txt" {
		t.Errorf("status %q", got)
	}
	b.gone(tree)
}

func TestDirtyInclude(t *testing.T) {
	b := newBench(t)
	b.write(b.dir+"/a.txt", "one\ntwo\nthree\nmine\n")
	before := b.state(b.dir)
	tree := b.open("fix", graph.Worktree{Dirty: graph.Include})
	if got := b.read(tree.Root + "/a.txt"); got != "one\ntwo\nthree\nmine\n" {
		t.Errorf("a.txt is %q", got)
	}
	delete(before, ".git/refs/loki") // the pin
	after := b.state(b.dir)
	delete(after, ".git/refs/loki")
	delete(after, ".git/refs/loki/pins")
	delete(after, ".git/refs/loki/pins/fix")
	if !maps.Equal(before, after) {
		t.Error("the checkout has changed")
	}
	if c := b.work(tree); c.Commits != 0 {
		t.Errorf("change without work: %+v", c)
	}
	b.write(tree.Root+"/a.txt", "ONE\ntwo\nthree\nmine\n")
	c := b.work(tree)
	if tree.Merge(t.Context(), c) == nil {
		t.Error("merged over uncommitted changes")
	}
	b.ok(tree.Apply(t.Context(), c))
	if got := b.read(b.dir + "/a.txt"); got != "ONE\ntwo\nthree\nmine\n" {
		t.Errorf("a.txt is %q", got)
	}
	if got := b.git(b.dir, "status", "--porcelain"); got != "M a.txt" {
		t.Errorf("status %q", got)
	}
}

// TestDirtyIncludeCommits: no commit is made of a checkout without changes, and one with changes is counted with the work that it is merged with.
func TestDirtyIncludeCommits(t *testing.T) {
	b := newBench(t)
	tree := b.open("fix", graph.Worktree{Dirty: graph.Include})
	if tree.Dirty != "" || b.git(tree.Root, "rev-parse", "HEAD") != tree.Base {
		t.Errorf("a commit without changes: %s", b.git(tree.Root, "log", "--oneline"))
	}
	b.write(tree.Root+"/new.txt", "new\n")
	c := b.work(tree)
	b.ok(tree.Merge(t.Context(), c))
	if got := b.git(b.dir, "rev-list", "--count", tree.Base+"..HEAD"); c.Commits != 1 || got != "1" {
		t.Errorf("%d commits, merged %s", c.Commits, got)
	}
	b.write(b.dir+"/a.txt", "one\ntwo\nthree\nmine\n")
	tree = b.open("fix", graph.Worktree{Dirty: graph.Include})
	base := tree.Base
	b.write(tree.Root+"/more.txt", "more\n")
	c = b.work(tree)
	b.git(b.dir, "checkout", "-q", "a.txt")
	b.ok(tree.Merge(t.Context(), c))
	if got := b.git(b.dir, "rev-list", "--count", base+"..HEAD"); c.Commits != 2 || got != "2" {
		t.Errorf("%d commits, merged %s", c.Commits, got)
	}
}

// TestDirtyIncludeRenewed: what the checkout has committed meanwhile is not shown as work.
func TestDirtyIncludeRenewed(t *testing.T) {
	for _, committed := range []bool{false, true} {
		t.Run(strconv.FormatBool(committed), func(t *testing.T) {
			b := newBench(t)
			b.write(b.dir+"/a.txt", "one\ntwo\nthree\nmine\n")
			tree := b.open("fix", graph.Worktree{Dirty: graph.Include})
			b.write(tree.Root+"/work.txt", "work\n")
			b.work(tree)
			b.write(b.dir+"/later.txt", "later\n")
			if committed {
				b.commit(b.dir, "mine")
			} else {
				b.git(b.dir, "add", "later.txt")
				b.git(b.dir, "commit", "-q", "-m", "later", "later.txt")
			}
			if files, err := tree.Renew(t.Context()); err != nil || len(files) > 0 {
				t.Fatal(files, err)
			}
			c := b.work(tree)
			if !slices.Equal(c.Files, []string{"work.txt"}) {
				t.Errorf("the work is %v", c.Files)
			}
			patch, err := tree.Diff(t.Context(), c)
			if b.ok(err); strings.Contains(patch, "later") || strings.Contains(patch, "mine") {
				t.Error(patch)
			}
			if b.ok(tree.Apply(t.Context(), c)); !strings.HasSuffix(b.read(b.dir+"/a.txt"), "mine\n") || b.read(b.dir+"/work.txt") != "work\n" {
				t.Error("not applied")
			}
		})
	}
}

func TestKeep(t *testing.T) {
	b := newBench(t)
	tree := b.open("fix", graph.Worktree{})
	b.git(tree.Root, "switch", "-q", "-c", "other/idea")
	b.write(tree.Root+"/idea.txt", "idea\n")
	b.commit(tree.Root, "idea")
	b.git(tree.Root, "switch", "-q", "loki/fix")
	b.write(tree.Root+"/a.txt", "fixed\n")
	b.ok(tree.Keep(t.Context(), b.work(tree)))
	if got := b.git(b.dir, "show", "loki/fix:a.txt"); got != "fixed" {
		t.Errorf("a.txt is %q", got)
	}
	if got := b.git(b.dir, "show", "loki/fix-other-idea:idea.txt"); got != "idea" {
		t.Errorf("idea.txt is %q", got)
	}
	b.gone(tree)

	again := b.open("fix", graph.Worktree{})
	if got := b.read(again.Root + "/a.txt"); got != "fixed\n" {
		t.Errorf("the work does not continue: %q", got)
	}
	b.write(again.Root+"/a.txt", "fixed again\n")
	b.git(b.dir, "switch", "-q", "loki/fix")
	b.ok(again.Keep(t.Context(), b.work(again)))
	if got := b.git(b.dir, "status", "--porcelain"); got != "" {
		t.Errorf("the branch that is checked out was moved: %q", got)
	}
	if got := b.git(b.dir, "log", "--all", "--format=%s", "--grep=Open work"); strings.Count(got, "\n") != 1 {
		t.Errorf("log %q", got)
	}
}

// TestKeepBeside keeps work beside a branch of the user with the same name, and says so. What was withheld is not committed.
func TestKeepBeside(t *testing.T) {
	b := newBench(t)
	b.git(b.dir, "switch", "-q", "-c", "loki/fix")
	b.write(b.dir+"/mine.txt", "mine\n")
	b.commit(b.dir, "mine")
	b.git(b.dir, "switch", "-q", "-")
	tree := b.open("fix", graph.Worktree{Base: "HEAD~0"})
	b.write(tree.Root+"/a.txt", "fixed\n")
	b.write(tree.Root+"/web/.envrc.withheld", "x\n")
	b.ok(tree.Keep(t.Context(), b.work(tree)))
	kept := tree.KeptBranch()
	if kept == "loki/fix" || !strings.HasPrefix(kept, "loki/fix-") {
		t.Errorf("kept as %s", kept)
	}
	if got := b.git(b.dir, "show", kept+":a.txt"); got != "fixed" {
		t.Errorf("a.txt is %q", got)
	}
	if got := b.git(b.dir, "ls-tree", "-r", "--name-only", kept); strings.Contains(got, "withheld") {
		t.Errorf("committed: %s", got)
	}
}

func TestNames(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"..", ".", ".x", "a..b", "a.lock", "a.", "A", "a/b", "a b", "ä", "-x\n", strings.Repeat("a", 65)} {
		if _, err := b.store.Open(t.Context(), b.dir, name, graph.Worktree{}); fault.CodeOf(err) != fault.Usage {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"-x", "_", "0.1", strings.Repeat("a", 64), "head"} {
		tree := b.open(name, graph.Worktree{})
		b.write(tree.Root+"/a.txt", name)
		b.ok(tree.Keep(t.Context(), b.work(tree)))
		if got := b.git(b.dir, "show", "refs/heads/loki/"+name+":a.txt"); got != name {
			t.Errorf("%q has %q", name, got)
		}
	}
}

func TestOddPaths(t *testing.T) {
	b := newBench(t)
	odd := filepath.Join(filepath.Dir(b.dir), "-a \"b\": c;$(touch x)\n#ä")
	b.ok(os.Rename(b.dir, odd))
	b.dir = odd
	b.write(odd+"/ \"q\" \n-f", "odd\n")
	b.commit(odd, "odd")
	tree := b.open("fix", graph.Worktree{})
	b.write(tree.Root+"/ \"q\" \n-f", "odder\n")
	b.write(tree.Root+"/-rf", "x\n")
	b.ok(tree.Merge(t.Context(), b.work(tree)))
	if got := b.read(odd + "/ \"q\" \n-f"); got != "odder\n" {
		t.Errorf("it has %q", got)
	}
}

func TestLock(t *testing.T) {
	b := newBench(t)
	tree := b.open("fix", graph.Worktree{})
	if _, err := b.store.Open(t.Context(), b.dir, "fix", graph.Worktree{}); fault.ExitCode(err) != 1 {
		t.Errorf("a second one: %v", err)
	}
	if list, err := b.store.List(); err != nil || len(list) != 1 || !list[0].InUse || list[0].Source != b.dir {
		t.Errorf("list %+v, %v", list, err)
	}
	b.write(tree.Root+"/a.txt", "open\n")
	tree.Close()
	again := b.open("fix", graph.Worktree{})
	if got := b.read(again.Root + "/a.txt"); got != "open\n" {
		t.Errorf("a.txt is %q", got)
	}
	again.Close()
	found, err := b.store.Find(t.Context(), t.TempDir(), "fix")
	b.ok(err)
	b.ok(found.Keep(t.Context(), b.work(found)))
	if got := b.git(b.dir, "show", "loki/fix:a.txt"); got != "open" {
		t.Errorf("kept %q", got)
	}
}

func TestRepositories(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		b := newBench(t)
		if _, err := b.store.Open(t.Context(), t.TempDir(), "", graph.Worktree{}); fault.ExitCode(err) != 2 {
			t.Errorf("error %v", err)
		}
	})
	t.Run("without commits", func(t *testing.T) {
		b := newBench(t)
		dir := t.TempDir()
		b.git(dir, "init", "-q")
		if _, err := b.store.Open(t.Context(), dir, "x", graph.Worktree{}); fault.ExitCode(err) != 2 || !strings.Contains(err.Error(), "HEAD") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("sha256", func(t *testing.T) {
		b := newBench(t, "--object-format=sha256")
		tree := b.open("fix", graph.Worktree{})
		b.write(tree.Root+"/a.txt", "fixed\n")
		b.ok(tree.Merge(t.Context(), b.work(tree)))
		if got := b.read(b.dir + "/a.txt"); got != "fixed\n" {
			t.Errorf("a.txt is %q", got)
		}
	})
	for _, kind := range []string{"shallow", "bare", "linked"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			b.write(b.dir+"/a.txt", "second\n")
			b.commit(b.dir, "second")
			other := filepath.Join(t.TempDir(), kind)
			switch kind {
			case "shallow":
				b.git("", "clone", "-q", "--depth=1", "file://"+b.dir, other)
			case "bare":
				b.git("", "clone", "-q", "--bare", b.dir, other)
			case "linked":
				b.git(b.dir, "worktree", "add", "-q", other)
			}
			b.dir = other
			tree := b.open("fix", graph.Worktree{})
			b.write(tree.Root+"/a.txt", "fixed\n")
			c := b.work(tree)
			if kind == "bare" {
				if tree.Merge(t.Context(), c) == nil {
					t.Error("merged without a checkout")
				}
				b.ok(tree.Keep(t.Context(), c))
				if got := b.git(b.dir, "show", "loki/fix:a.txt"); got != "fixed" {
					t.Errorf("a.txt is %q", got)
				}
				return
			}
			b.ok(tree.Merge(t.Context(), c))
			if got := b.git(b.dir, "show", "HEAD:a.txt"); got != "fixed" {
				t.Errorf("a.txt is %q", got)
			}
			if got := b.git(b.dir, "status", "--porcelain"); got != "" {
				t.Errorf("status %q", got)
			}
			b.git(b.dir, "fsck")
		})
	}
}

func TestSubdirectory(t *testing.T) {
	b := newBench(t)
	b.dir += "/web"
	tree := b.open("fix", graph.Worktree{})
	if tree.Dir() != tree.Root+"/web" || b.read(tree.Dir()+"/b.txt") != "b\n" {
		t.Errorf("directory %s", tree.Dir())
	}
	if got := b.store.Of(tree.Dir()); got != b.dir {
		t.Errorf("source %s", got)
	}
}

func TestShare(t *testing.T) {
	b := newBench(t)
	b.write(b.dir+"/deps/x/lib", "lib\n")
	tree := b.open("copy", graph.Worktree{Share: []graph.SharedPath{{Path: "deps"}}})
	if got := b.read(tree.Root + "/deps/x/lib"); got != "lib\n" {
		t.Errorf("copy %q", got)
	}
	tree = b.open("link", graph.Worktree{Share: []graph.SharedPath{{Path: "deps", Link: true}}})
	if got := b.read(tree.Root + "/deps/x/lib"); got != "lib\n" {
		t.Errorf("link %q", got)
	}
	if c := b.work(tree); c.Commits != 0 {
		t.Errorf("the link is committed: %+v", c)
	}
	if out, err := b.confined(tree, "cat deps/x/lib && ! echo changed >deps/x/lib"); err != nil || b.read(b.dir+"/deps/x/lib") != "lib\n" {
		t.Errorf("%v %s", err, out)
	}
	if _, err := b.store.Open(t.Context(), b.dir, "tracked", graph.Worktree{Share: []graph.SharedPath{{Path: "a.txt"}}}); err == nil {
		t.Error("shared a tracked file")
	}
}

// confined runs a command in a worktree as that of a model.
func (b bench) confined(tree *worktree.Tree, command string) (string, error) {
	b.Helper()
	box, err := b.store.Sandbox(tree)
	b.ok(err)
	if !box.Support().Files {
		b.Skip("there is no sandbox")
	}
	r, err := process.Run(b.Context(), process.Command{
		Path: "sh", Args: []string{"-c", command}, Dir: tree.Root, Env: os.Environ(), Confinement: box.Box(sandbox.Declaration{Level: sandbox.Write}, sandbox.Needs{}),
	})
	return string(r.Stdout) + r.Stderr, err
}

func TestCommitsInTheSandbox(t *testing.T) {
	b := newBench(t)
	tree := b.open("fix", graph.Worktree{})
	if out, err := b.confined(tree, "echo x >a.txt && git add -A && git commit -q -m model && git log --oneline"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := b.confined(tree, "echo x >"+b.dir+"/.git/evil || git --git-dir="+b.dir+"/.git branch -D main"); err == nil {
		t.Errorf("the source can be written: %s", out)
	}
	c := b.work(tree)
	b.ok(tree.Merge(t.Context(), c))
	if got := b.git(b.dir, "log", "-1", "--format=%s"); got != "model" {
		t.Errorf("log %q", got)
	}
}

func TestEightAtOnce(t *testing.T) {
	b := newBench(t)
	b.write(b.dir+"/a.txt", "open\n")
	b.git(b.dir, "status")
	before := b.state(b.dir)
	trees := make([]*worktree.Tree, 8)
	var group sync.WaitGroup
	for i := range trees {
		group.Go(func() {
			tree, err := b.store.Open(context.WithoutCancel(t.Context()), b.dir, "", graph.Worktree{})
			if err != nil {
				t.Error(err)
				return
			}
			trees[i] = tree
			b.write(filepath.Join(tree.Root, tree.Name), "x\n")
			if _, err := tree.Commit(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	after := b.state(b.dir)
	maps.DeleteFunc(after, func(path, _ string) bool {
		return path == ".git/refs/loki" || strings.HasPrefix(path, ".git/refs/loki/")
	})
	if !maps.Equal(before, after) {
		for k := range after {
			if before[k] != after[k] {
				t.Errorf("changed: %s", k)
			}
		}
	}
	for _, tree := range trees {
		c := b.work(tree)
		b.ok(tree.Merge(t.Context(), c))
	}
	for _, tree := range trees {
		if got := b.read(filepath.Join(b.dir, tree.Name)); got != "x\n" {
			t.Errorf("%s has %q", tree.Name, got)
		}
	}
	b.gone(trees[0])
}

func TestWorktreeOfAWorktree(t *testing.T) {
	b := newBench(t)
	parent := b.open("parent", graph.Worktree{})
	b.write(parent.Root+"/a.txt", "parent\n")
	b.commit(parent.Root, "parent")
	child, err := b.store.Open(t.Context(), parent.Dir(), "child", graph.Worktree{})
	b.ok(err)
	if got := b.read(child.Root + "/a.txt"); got != "parent\n" {
		t.Errorf("the child begins with %q", got)
	}
	b.write(child.Root+"/c.txt", "child\n")
	b.ok(child.Merge(t.Context(), b.work(child)))
	if got := b.read(parent.Root + "/c.txt"); got != "child\n" {
		t.Errorf("the parent has %q", got)
	}
	if _, err := os.Stat(b.dir + "/c.txt"); err == nil {
		t.Error("the checkout has it")
	}
	other, err := b.store.Open(t.Context(), parent.Dir(), "other", graph.Worktree{})
	b.ok(err)
	b.write(other.Root+"/o.txt", "other\n")
	c := b.work(other)
	b.ok(parent.Merge(t.Context(), b.work(parent)))
	b.ok(other.Keep(t.Context(), c))
	if got := b.git(b.dir, "show", "loki/other:o.txt"); got != "other" {
		t.Errorf("kept %q", got)
	}
	if got := b.read(b.dir + "/c.txt"); got != "child\n" {
		t.Errorf("the checkout has %q", got)
	}
}

func TestSetupThatFailsLeavesNothing(t *testing.T) {
	b := newBench(t)
	b.store.Setup = func(context.Context, *worktree.Tree, graph.Setup) error { return os.ErrPermission }
	before := b.state(b.dir)
	_, err := b.store.Open(t.Context(), b.dir, "fix", graph.Worktree{Setup: graph.Setup{Command: "make"}})
	if fault.ExitCode(err) != 6 {
		t.Errorf("error %v", err)
	}
	if list, _ := b.store.List(); len(list) > 0 {
		t.Errorf("list %v", list)
	}
	after := b.state(b.dir)
	delete(after, ".git/refs/loki")
	if !maps.Equal(before, after) {
		t.Error("the source has changed")
	}
}

// TestHostileRepository has a worktree and a source whose settings name a program for everything.
func TestHostileRepository(t *testing.T) {
	for _, where := range []string{"source", "worktree"} {
		t.Run(where, func(t *testing.T) {
			b := newBench(t)
			b.write(b.dir+"/.gitattributes", "*.txt filter=evil merge=evil diff=evil\n")
			b.commit(b.dir, "attributes")
			ran := filepath.Join(t.TempDir(), "ran")
			evil := filepath.Join(t.TempDir(), "evil")
			b.write(evil, "#!/bin/sh\necho \"$0 $*\" >>"+ran+"\ncat\n")
			b.ok(os.Chmod(evil, 0o700)) //nolint:gosec // a program
			poison := func(dir string) {
				for _, hook := range []string{"post-checkout", "pre-commit", "commit-msg", "post-commit", "post-merge", "reference-transaction", "post-index-change", "pre-auto-gc", "post-rewrite", "pre-merge-commit"} {
					b.write(dir+"/.git/hooks/"+hook, "#!/bin/sh\n"+evil+" "+hook+"\n")
					b.ok(os.Chmod(dir+"/.git/hooks/"+hook, 0o700)) //nolint:gosec // a program
				}
				f, err := os.OpenFile(dir+"/.git/config", os.O_APPEND|os.O_WRONLY, 0)
				b.ok(err)
				_, err = f.WriteString("[core]\nfsmonitor = " + evil + "\nsshCommand = " + evil + "\nhooksPath = .git/hooks\neditor = " + evil + "\npager = " + evil + "\nalternateRefsCommand = " + evil +
					"\n[filter \"evil\"]\nclean = " + evil + "\nsmudge = " + evil + "\nrequired = true\n[merge \"evil\"]\ndriver = " + evil + "\n[diff \"evil\"]\ncommand = " + evil + "\ntextconv = " + evil +
					"\n[diff]\nexternal = " + evil + "\n[commit]\ngpgSign = true\n[gpg]\nprogram = " + evil + "\n[uploadpack]\npackObjectsHook = " + evil + "\n[credential]\nhelper = " + evil + "\n[gc]\nauto = 1\n")
				b.ok(err)
				b.ok(f.Close())
			}
			if where == "source" {
				poison(b.dir)
			}
			tree := b.open("fix", graph.Worktree{Dirty: graph.Include})
			if where == "worktree" {
				poison(tree.Root)
			}
			t.Setenv("GIT_DIR", "/nowhere")
			b.store.Environ = append(os.Environ(), "GIT_INDEX_FILE=/nowhere", "GIT_SSH_COMMAND="+evil, "GIT_EXTERNAL_DIFF="+evil)
			b.write(tree.Root+"/a.txt", "ONE\ntwo\nthree\n")
			c := b.work(tree)
			if c.Commits != 1 {
				t.Errorf("change %+v", c)
			}
			_, err := tree.Diff(t.Context(), c)
			b.ok(err)
			child, err := b.store.Open(t.Context(), tree.Dir(), "child", graph.Worktree{})
			b.ok(err)
			b.write(child.Root+"/c.md", "c\n")
			b.ok(child.Merge(t.Context(), b.work(child)))
			c = b.work(tree)
			if where == "source" {
				if err := tree.Merge(t.Context(), c); err == nil || !strings.Contains(err.Error(), "a.txt") {
					t.Errorf("a file with a filter is merged: %v", err)
				}
				b.ok(tree.Keep(t.Context(), c))
				plain := b.open("plain", graph.Worktree{})
				b.write(plain.Root+"/c.md", "c\n")
				b.ok(plain.Merge(t.Context(), b.work(plain)))
			} else {
				_, err := tree.Renew(t.Context())
				b.ok(err)
				b.ok(tree.Merge(t.Context(), b.work(tree)))
			}
			if said, err := os.ReadFile(ran); err == nil {
				t.Errorf("ran:\n%s", said)
			}
		})
	}
}

// TestLinksInTheGitDirectory has links by which git in the worktree would write elsewhere.
func TestLinksInTheGitDirectory(t *testing.T) {
	b := newBench(t)
	tree := b.open("fix", graph.Worktree{})
	if box, err := b.store.Sandbox(tree); err != nil || !box.Support().Files {
		t.Skip("there is no sandbox")
	}
	target := filepath.Join(t.TempDir(), "profile")
	b.write(target, "mine\n")
	own := tree.Root + "/.git/"
	for _, name := range []string{"index", "COMMIT_EDITMSG", "logs/HEAD", "logs/refs/heads/loki/fix"} {
		_ = os.Remove(own + name)
		b.ok(os.MkdirAll(filepath.Dir(own+name), 0o700))
		b.ok(os.Symlink(target, own+name))
	}
	b.write(tree.Root+"/a.txt", "x\n")
	_, _ = tree.Commit(t.Context())
	if got := b.read(target); got != "mine\n" {
		t.Errorf("a file outside has %q", got)
	}
}
