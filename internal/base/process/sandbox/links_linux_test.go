//go:build amd64 || arm64

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
)

// TestPlacesBehindLinks: a link that a command could have made leads to no place that settings name. Links elsewhere do.
func TestPlacesBehindLinks(t *testing.T) {
	t.Parallel()
	const workspace = "src/project/"
	for _, tt := range []struct {
		name  string
		links map[string]string // below the home directory, to paths below it
		read  []string
		write []string
		path  string // PATH, below the home directory
		home  bool   // the workspace is the home directory
		at    string // where the file outside is tried, as the command names it
		open  bool
	}{
		{name: "write", links: map[string]string{workspace + "results": "outside"}, write: []string{"results"}, at: "results"},
		{name: "read", links: map[string]string{workspace + "data": "outside"}, read: []string{"data"}, at: "data"},
		{name: "by_the_target", links: map[string]string{workspace + "data": "outside"}, read: []string{"data"}, at: "~/outside"},
		{name: "directory_above", links: map[string]string{workspace + "top": ".", workspace + "top2": "outside"}, write: []string{"top/outside"}, at: "top/outside"},
		{name: "chain", links: map[string]string{workspace + "a": "src/project/b", workspace + "b": "outside"}, write: []string{"a"}, at: "~/outside"},
		{name: "by_a_link_outside", links: map[string]string{"alias": "src/project/b", workspace + "b": "outside"}, write: []string{"~/alias"}, at: "~/outside"},
		{name: "in_a_place_that_is_written", links: map[string]string{"shared/in": "outside", "shared/x": "src"}, read: []string{"~/shared/in"}, write: []string{"~/shared"}, at: "~/outside"},
		{name: "of_programs", links: map[string]string{workspace + "bin": "outside"}, path: workspace + "bin", at: "~/outside"},
		{name: "link_outside", links: map[string]string{"alias": "outside"}, write: []string{"~/alias"}, at: "~/alias", open: true},
		{name: "no_link", write: []string{"~/outside"}, at: "~/outside", open: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, plain bool) {
				w := newWorld(t, plain)
				for link, target := range tt.links {
					link = filepath.Join(w.home, link)
					if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(filepath.Join(w.home, target), link); err != nil {
						t.Fatal(err)
					}
				}
				w.options.Read, w.options.Write = tt.read, tt.write
				if tt.path != "" {
					w.options.Getenv = func(string) string { return filepath.Join(w.home, tt.path) + ":" + os.Getenv("PATH") }
				}
				at := strings.Replace(tt.at, "~", w.home, 1)
				out, _ := w.run(t, write, "cat", at+"/file")
				if strings.Contains(out, "secret-outside") != tt.open {
					t.Errorf("read: %s", out)
				}
				out, _ = w.run(t, write, "touch", at+"/made")
				if _, err := os.Lstat(filepath.Join(w.home, "outside", "made")); (err == nil) != tt.open {
					t.Errorf("written: %v: %s", err == nil, out)
				}
			})
		})
	}
}

// TestReplacedWhileListed: what was in a directory with a dot before the children of a sandbox stays, also if an earlier child has
// had the directory listed, and whichever of two children at once replaces it.
func TestReplacedWhileListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.write(t, "src/project/.storybook/main.js", "old")
	w.write(t, "src/project/.storybook/preview.js", "old")
	made := time.Now()
	w.options.State = filepath.Join(w.home, "state", "loki")
	s := sandbox.New(w.options)
	run := func(text string, meanwhile func()) []sandbox.Refusal {
		b := s.Box(write, sandbox.Needs{})
		c := process.Command{Path: "bash", Args: []string{"-c", text}, Dir: w.workspace, Confinement: b, Env: os.Environ()}
		c.OnStdout = func(string) { meanwhile() }
		if r, err := process.Run(t.Context(), c); err != nil {
			t.Fatalf("%v: %s", err, r.Stderr)
		}
		return b.Refusals("", false)
	}
	for time.Since(made) < 300*time.Millisecond { // until the listing is relied on
		run(":", nil)
	}
	var inner []sandbox.Refusal
	outer := run(`cd .storybook; echo new >x; mv x main.js; echo; read -r _ <../sub/a.txt`, func() {
		inner = run(`cd .storybook; echo new >y; mv y preview.js; echo new >z.js`, nil)
	})
	for _, name := range []string{"main.js", "preview.js"} {
		if text, err := os.ReadFile(filepath.Join(w.workspace, ".storybook", name)); err != nil || string(text) != "new\n" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	var names []string
	for _, r := range append(inner, outer...) {
		names = append(names, r.What)
	}
	if got := strings.Join(names, " "); got != "changed .storybook/main.js, .storybook/preview.js .storybook/z.js" {
		t.Errorf("withheld are %q", got)
	}
}

// TestLinkedWorkingTree: git reads the repository of which the workspace is a linked working tree, and does not write it. A
// workspace that only says so does not get at a repository.
func TestLinkedWorkingTree(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		other := filepath.Join(w.home, "other")
		for _, args := range [][]string{{"init", "-q", other}, {"-C", other, "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "first"}, {"-C", other, "worktree", "add", "-q", filepath.Join(w.home, "tree")}} {
			if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
				t.Skip(string(out), err)
			}
		}
		w.write(t, "claims/.git", "gitdir: "+filepath.Join(other, ".git", "worktrees", "tree")+"\n")
		const script = "git log --format=%s; git status --short; git branch x 2>/dev/null; git config a.b c 2>/dev/null; ls " + "../other/.git"
		for name, want := range map[string]bool{"tree": true, "claims": false} {
			w.workspace = filepath.Join(w.home, name)
			w.options.Workspace = w.workspace
			out, _ := w.run(t, write, "bash", "-c", script)
			if strings.HasPrefix(out, "first\n") != want || strings.Contains(out, "hooks") != want {
				t.Errorf("%s: %s", name, out)
			}
		}
		if text, err := os.ReadFile(filepath.Join(other, ".git", "config")); err != nil || strings.Contains(string(text), "[a]") {
			t.Errorf("settings are %s, %v", text, err)
		}
		if _, err := os.Lstat(filepath.Join(other, ".git", "refs", "heads", "x")); err == nil {
			t.Error("a branch was made")
		}
	})
}

// TestMovedWhileSetUp: what runs later is not written by a command in whose way another one moved the directory around it, after the
// workspace was looked at and before the place was covered. What was moved once is found again; what moves each time keeps the
// command from running.
func TestMovedWhileSetUp(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{false, true} {
		for moves := range 4 {
			w := newWorld(t, false)
			for _, name := range []string{"HEAD", "objects/x", "refs/x", "config"} {
				w.write(t, "src/project/0/"+name, "mine")
			}
			n := 0
			s := sandbox.New(w.options)
			if !strings.Contains(s.Support().How, "namespaces") {
				t.Skip("needs namespaces")
			}
			s.OnceLooked(func() {
				if n == moves {
					return
				}
				from := filepath.Join(w.workspace, strconv.Itoa(n))
				n++
				if err := os.Rename(from, filepath.Join(w.workspace, strconv.Itoa(n))); err != nil {
					t.Error(err)
				}
				if !replaced {
					return
				}
				for _, name := range []string{"HEAD", "objects/x", "refs/x", "config"} {
					w.write(t, fmt.Sprintf("src/project/%d/%s", n-1, name), "other")
				}
			})
			_, err := process.Run(t.Context(), process.Command{
				Path: "bash", Args: []string{"-c", `for d in ?; do echo evil >$d/config; done; true`}, Dir: w.workspace, Confinement: s.Box(write, sandbox.Needs{}), Env: os.Environ(),
			})
			if moves < 3 && err != nil || moves == 3 && (err == nil || !strings.Contains(err.Error(), "another program moved or replaced")) {
				t.Errorf("%d moves: %v", moves, err)
			}
			if text, err := os.ReadFile(filepath.Join(w.workspace, strconv.Itoa(n), "config")); err != nil || string(text) != "mine" {
				t.Errorf("%d moves: %q, %v", moves, text, err)
			}
		}
	}
}
