//go:build amd64 || arm64

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/process"
	"loki/internal/sandbox"
)

// withheld reports an error for each path of the workspace that does not have its other name, and only that.
func (w *world) withheld(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		path = filepath.Join(w.workspace, path)
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s keeps its name", path)
		}
		if _, err := os.Lstat(path + ".withheld"); err != nil {
			t.Error(err)
		}
	}
}

func TestSettingsOfManyProgramsAreWithheld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	places := []string{
		".gitea/workflows/x.yml", ".forgejo/workflows/x.yml", ".woodpecker.yml", ".drone.yml", ".buildkite/pipeline.yml", "bitbucket-pipelines.yml", ".cirrus.yml", "appveyor.yml",
		".devcontainer.json", ".cursorrules", ".windsurfrules", "GEMINI.md", "QWEN.md", ".codex/config.toml", ".opencode/x", "opencode.json", ".kiro/x", ".roo/x", ".continue/x",
		".zed/tasks.json", ".vs/x", ".fleet/run.json", ".run/x.xml", ".hg/hgrc", ".jj/repo/config.toml", ".bundle/config", ".gdbinit", ".lldbinit", ".pnp.cjs", "bunfig.toml", "mise/config.toml",
	}
	script := "for f in " + strings.Join(places, " ") + `; do mkdir -p "$(dirname $f)" && echo x >$f; done`
	if out, err := w.run(t, write, "bash", "-c", script); err != nil {
		t.Fatal(err, out)
	}
	for _, place := range places {
		if _, err := os.Stat(filepath.Join(w.workspace, place)); err == nil {
			t.Errorf("%s keeps its name", place)
		}
	}
}

// TestRepositoriesByOtherNames: git takes a directory for a repository by what is in it, also if its settings are in another one.
func TestRepositoriesByOtherNames(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		out, err := w.run(t, write, "bash", "-c", `cd sub
			mkdir -p settings/refs settings/objects && echo '[core] pager = x' >settings/config
			mkdir elsewhere && echo 'ref: refs/heads/main' >elsewhere/HEAD && echo ../settings >elsewhere/commondir
			mkdir -p bare/refs bare/objects bare/sub && echo 'ref: refs/heads/main' >bare/HEAD && echo '[core] pager = x' >bare/config && echo x >bare/sub/.envrc`)
		if err != nil {
			t.Fatal(err, out)
		}
		w.withheld(t, "sub/elsewhere/commondir", "sub/bare/config", "sub/bare/sub/.envrc")
	})
}

// TestNoRightsOfOthers: a command leaves no file by which whoever starts it has the rights of its owner.
func TestNoRightsOfOthers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		out, _ := w.run(t, write, "python3", "-c", `
import os, stat
def tried(f):
    try: f()
    except OSError as e: print(e.errno)
os.umask(0); os.chdir("sub")
open("a", "w").close(); open("kept", "w").close()
fd = os.open("a", os.O_RDWR)
os.mkdir("dir")
tried(lambda: os.chmod("a", 0o4755)); tried(lambda: os.chmod("a", 0o2755)); tried(lambda: os.fchmod(fd, 0o6755)); tried(lambda: os.chmod("a", 0o4755, dir_fd=os.open(".", os.O_RDONLY)))
tried(lambda: os.open("b", os.O_CREAT | os.O_WRONLY, 0o4755)); tried(lambda: os.mknod("c", stat.S_IFREG | 0o4755)); tried(lambda: os.mkdir("d", 0o6755))
os.open("a", os.O_RDONLY, 0o4755)
os.open("e", os.O_CREAT | os.O_WRONLY, 0o755)
`)
		if strings.Contains(out, "Traceback") || strings.Count(out, "1\n") < 6 {
			t.Errorf("got %q", out)
		}
		entries, err := os.ReadDir(filepath.Join(w.workspace, "sub"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
				t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
			}
		}
		if info, err := os.Stat(filepath.Join(w.workspace, "sub", "e")); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%v, %v", info, err)
		}
	})
}

// TestWhatGitNames: what settings of git name, and what links in directories of programs lead to, is protected like these.
func TestWhatGitNames(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		paths := []string{"hooked/h.sh", "gh/pre-commit", "more/inc.cfg", "deep/if.cfg", "tools/monitor", "attr/x", "node_modules/lint/l.js"}
		for _, path := range append(paths, "mine/own.js") {
			w.write(t, "src/project/"+path, "old")
		}
		w.write(t, "src/project/more/inc.cfg", "[includeIf \"gitdir:~/[x]\"]\n\tpath = ../deep/if.cfg\n")
		w.write(t, "src/project/.git/config", "[core]\n\thooksPath = gh ; mine\n\tfsmonitor = \"tools/monitor -x\"\n\tattributesFile=attr/x\n[include] path = ../more/inc.cfg\n")
		w.write(t, "src/project/node_modules/.bin/x", "")
		for link, target := range map[string]string{".git/hooks/post-commit": "../../hooked/h.sh", ".git/hooks/pre-push": "../../sub/new.sh", "node_modules/.bin/lint": "../lint/l.js", "node_modules/.bin/own": "../../mine/own.js"} {
			if err := os.Symlink(target, filepath.Join(w.workspace, link)); err != nil {
				t.Fatal(err)
			}
		}
		out, _ := w.run(t, write, "bash", "-c", "for f in "+strings.Join(paths, " ")+" mine/own.js sub/new.sh; do echo EVIL >>$f; done")
		for _, path := range paths {
			if text, err := os.ReadFile(filepath.Join(w.workspace, path)); err != nil || strings.Contains(string(text), "EVIL") {
				t.Errorf("%s: %q, %v", path, text, err)
			}
		}
		if text, _ := os.ReadFile(filepath.Join(w.workspace, "mine/own.js")); !strings.Contains(string(text), "EVIL") {
			t.Errorf("the package of the workspace is not written: %s", out)
		}
		w.withheld(t, "sub/new.sh")
	})
}

// TestRebase: commands that a command puts into the list of a rebase are withheld, and a rebase that stops goes on.
func TestRebase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.options.State = filepath.Join(w.home, "state", "loki")
	git := exec.Command("bash", "-ec", `rm -rf .git; git init -q --template= -b main .; git config user.name a; git config user.email a@b
		echo 1 >f; git add f; git commit -qm 1; git checkout -qb x; echo 2 >f; git commit -qam 2; git checkout -q main; echo 3 >f; git commit -qam 3; git checkout -q x`)
	git.Dir = w.workspace
	if out, err := git.CombinedOutput(); err != nil {
		t.Skip(string(out), err)
	}
	if out, err := w.run(t, write, "bash", "-c", "git rebase main"); err == nil {
		t.Fatal(out)
	}
	if out, err := w.run(t, write, "bash", "-c", "echo 4 >f; git add f; GIT_EDITOR=true git rebase --continue && git commit -q --allow-empty -m 5"); err != nil {
		t.Fatal(out, err)
	}
	if out, err := w.run(t, write, "bash", "-c", "mkdir .git/rebase-merge && printf 'pick x\n exec touch x\n' >.git/rebase-merge/git-rebase-todo"); err != nil {
		t.Fatal(out, err)
	}
	w.withheld(t, ".git/rebase-merge/git-rebase-todo")
}

// TestTwoAtWork: what a command makes while another one is at work is withheld at the end of both, also of two processes.
func TestTwoAtWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	if !strings.Contains(sandbox.New(w.options).Support().How, "namespaces") {
		t.Skip("needs namespaces")
	}
	w.options.State = filepath.Join(w.home, "state", "loki")
	run := func(script string, during func()) *sandbox.Box {
		b := w.box(write, sandbox.Needs{})
		r, err := process.Run(t.Context(), process.Command{
			Path: "bash", Args: []string{"-c", script}, Dir: filepath.Join(w.workspace, "sub"), Env: os.Environ(), Confinement: b, OnStdout: func(string) { during() },
		})
		if err != nil {
			t.Error(err, r.Stderr)
		}
		return b
	}
	second := make(chan *sandbox.Box)
	started := make(chan struct{})
	run("echo x >.envrc; echo made; until [ -e go ]; do sleep 0.05; done", func() {
		go func() {
			second <- run("echo ready; until [ -e .envrc.withheld ]; do sleep 0.05; done; rm .envrc.withheld; echo EVIL >.envrc", func() { close(started) })
		}()
		<-started
		w.write(t, "src/project/sub/go", "")
	})
	b := <-second
	w.withheld(t, "sub/.envrc")
	if found := b.Refused("", false); len(found) != 1 || !strings.Contains(found[0].Reason, "withheld") {
		t.Errorf("got %v", found)
	}
	if records, _ := filepath.Glob(filepath.Join(w.options.State, "sandbox", "work", "*")); len(records) != 0 {
		t.Errorf("left: %v", records)
	}
}

// TestReplacedFiles: the result says which of the files that the box held another program replaced.
func TestReplacedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.options.Denied = []string{w.workspace + "/**/.env"}
	b := w.box(read, sandbox.Needs{})
	_, err := process.Run(t.Context(), process.Command{
		Path: "bash", Args: []string{"-c", "echo ready; until [ -e sub/go ]; do sleep 0.05; done"}, Dir: w.workspace, Env: os.Environ(), Confinement: b,
		OnStdout: func(string) {
			w.write(t, "src/project/sub/new", "KEY=secret")
			if err := os.Rename(filepath.Join(w.workspace, "sub/new"), filepath.Join(w.workspace, ".env")); err != nil {
				t.Error(err)
			}
			w.write(t, "src/project/sub/go", "")
		},
	})
	if found := b.Refused("", false); err != nil || len(found) != 1 || found[0].Access != sandbox.Replaced || found[0].What != ".env" {
		t.Errorf("got %v, %v", found, err)
	}
}

// TestNoStateDirectory leaves the files of the working directory alone, which are no records of this program.
func TestNoStateDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"package.json", "x.record"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []string{"", filepath.Join(dir, "none")} {
		s := sandbox.New(sandbox.Options{Workspace: dir, Home: t.TempDir(), State: state, Getenv: os.Getenv})
		if !s.Support().Files {
			t.Skipf("no sandbox here: %s", s.Support().Missing)
		}
		for _, level := range []sandbox.Level{sandbox.Read, sandbox.Write} {
			c := process.Command{Path: "true", Dir: dir, Env: os.Environ(), Confinement: s.Box(sandbox.Declaration{Level: level}, sandbox.Needs{})}
			if _, err := process.Run(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"package.json", "x.record"} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}
