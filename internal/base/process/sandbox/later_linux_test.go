//go:build amd64 || arm64

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
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

// TestEveryDirectory: the walk looks everywhere, at any depth and whatever the modes are, and the next call works.
func TestEveryDirectory(t *testing.T) {
	t.Parallel()
	const repository = "mkdir -p $d/objects $d/refs; echo ref: refs/heads/x >$d/HEAD; echo '[core] fsmonitor = x' >$d/config; "
	for name, tt := range map[string]struct {
		script string
		gone   []string
	}{
		"named_like_a_sandbox": {"d=loki-sandbox-x; " + repository + "echo x >$d/.envrc", []string{"loki-sandbox-x/config", "loki-sandbox-x/.envrc"}},
		"in_packages":          {"d=node_modules/p; " + repository + "echo x >$d/.envrc", []string{"node_modules/p/config", "node_modules/p/.envrc"}},
		"below_git":            {"for d in .git/objects/x .git/refs/y .git/logs; do " + repository + "done", []string{".git/objects/x/config", ".git/refs/y/config", ".git/logs/config"}},
		"in_what_is_withheld":  {"d=.vscode/r; " + repository, []string{".vscode", ".vscode.withheld/r/config"}},
		"cannot_be_listed":     {"d=sub/a; " + repository + "chmod 311 sub/a", []string{"sub/a/config"}},
		"cannot_be_searched":   {"d=sub/a; " + repository + "chmod 600 sub/a", []string{"sub/a/config"}},
		"cannot_be_written":    {"d=sub/a; " + repository + "chmod 555 sub/a sub", []string{"sub/a/config"}},
		"workspace_not_listed": {"d=sub/a; " + repository + "echo x >.envrc; chmod 311 sub .", []string{".envrc", "sub/a/config"}},
		"workspace_is_shut":    {"d=sub/a; " + repository + "echo x >.envrc; chmod 0 sub .", []string{".envrc", "sub/a/config"}},
		"no_rights_at_all":     {"d=sub/a/b; " + repository + "chmod 0 sub/a/b sub/a sub", []string{"sub/a/b/config"}},
		"long_names":           {"d=$(printf %0255d 0); " + repository, []string{strings.Repeat("0", 255) + "/config"}},
		"names_are_taken":      {"echo x >.exrc; for i in '' 2 3; do echo x >.exrc.withheld$i; done", []string{".exrc"}},
		"index_entry":          {"d=sub/m/.git; " + repository + "git -c safe.directory='*' update-index --add --cacheinfo 160000,4b825dc642cb6eb9a060e54bf8d69288fbee4904,sub/m || true", []string{"sub/m/.git/config"}},
		"strategy":             {"mkdir .git/rebase-merge .git/sequencer; echo a/x >.git/rebase-merge/strategy; printf '[options]\n\tstrategy = a/x\n' >.git/sequencer/opts", []string{".git/rebase-merge/strategy", ".git/sequencer/opts"}},
		"long_list":            {"mkdir .git/rebase-merge; { yes '# comment' | head -c 3000000; echo exec x; } >.git/rebase-merge/git-rebase-todo", []string{".git/rebase-merge/git-rebase-todo"}},
		"state_is_not_read":    {"d=.git/rebase-merge; " + repository + "echo x >$d/.envrc; chmod 311 $d", []string{".git/rebase-merge/config", ".git/rebase-merge/.envrc", ".git/rebase-merge.withheld/config", ".git/rebase-merge.withheld/.envrc"}},
		"state_is_shut":        {"d=.git/sequencer/a; " + repository + "chmod 0 $d .git/sequencer", []string{".git/sequencer/a/config", ".git/sequencer.withheld/a/config"}},
		"list_is_a_directory":  {"d=.git/rebase-merge/git-rebase-todo; mkdir -p $d; " + repository, []string{".git/rebase-merge/git-rebase-todo", ".git/rebase-merge/git-rebase-todo.withheld/config"}},
		"list_by_a_link":       {"mkdir .git/rebase-merge; echo exec x >sub/list; ln -s ../../sub/list .git/rebase-merge/git-rebase-todo", []string{".git/rebase-merge/git-rebase-todo"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, plain bool) {
				w := newWorld(t, plain)
				t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwX", w.workspace).Run() })
				out, err := w.run(t, write, "bash", "-c", tt.script)
				if err != nil {
					if plain { // no modes are changed without namespaces
						t.Skip(out, err)
					}
					t.Fatal(out, err)
				}
				if out, err := w.run(t, write, "true"); err != nil {
					t.Errorf("the next call: %v, %s", err, out)
				}
				_ = exec.Command("chmod", "-R", "u+rwX", w.workspace).Run()
				for _, path := range tt.gone {
					if _, err := os.Lstat(filepath.Join(w.workspace, path)); err == nil {
						t.Errorf("%s keeps its name", path)
					}
				}
			})
		})
	}
}

// TestPackages: at level network, packages bring files of names that run later, and only what git runs in them is withheld.
func TestPackages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	if !strings.Contains(sandbox.New(w.options).Support().How, "namespaces") {
		t.Skip("needs namespaces")
	}
	script := "mkdir -p node_modules/.bin node_modules/p/.github/workflows node_modules/p/.git venv/x; for f in .bin/t p/.envrc p/.github/workflows/ci.yml p/.git/config; do echo x >node_modules/$f; done; echo x >venv/x/AGENTS.md; echo x >sub/AGENTS.md"
	if out, err := w.run(t, sandbox.Declaration{Level: sandbox.Network}, "bash", "-c", script); err != nil {
		t.Fatal(out, err)
	}
	w.withheld(t, "node_modules/p/.git/config", "sub/AGENTS.md")
	for _, path := range []string{"node_modules/.bin/t", "node_modules/p/.envrc", "node_modules/p/.github/workflows/ci.yml", "venv/x/AGENTS.md"} {
		if _, err := os.Stat(filepath.Join(w.workspace, path)); err != nil {
			t.Error(err)
		}
	}
}

// TestModesAreGivenBack: what had to be readable for the walk has its mode afterwards.
func TestModesAreGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwX", w.workspace).Run() })
	if out, err := w.run(t, write, "bash", "-c", "mkdir sub/a; echo x >sub/a/.envrc; chmod 311 sub/a"); err != nil {
		t.Skip(out, err) // without namespaces
	}
	if info, err := os.Stat(filepath.Join(w.workspace, "sub/a")); err != nil || info.Mode().Perm() != 0o311 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestVeryDeep: no depth keeps the walk from what is there, nor the next call from its work.
func TestVeryDeep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	t.Cleanup(func() { _ = exec.Command("rm", "-rf", filepath.Join(w.workspace, "deep")).Run() })
	script := `import os
open(".exrc", "w").close()
os.mkdir("deep"); os.chdir("deep")
for i in range(600):
    os.mkdir("d" * 200); os.chdir("d" * 200)
    if i in (100, 599): open(".envrc", "w").close(); open("kept", "w").close()
`
	for range 2 {
		if out, err := w.run(t, write, "python3", "-c", script); err != nil && !strings.Contains(out, "FileExistsError") {
			t.Fatal(out, err)
		}
	}
	w.withheld(t, ".exrc")
	found, err := exec.Command("find", filepath.Join(w.workspace, "deep"), "-name", ".env*", "-printf", "%f\n").Output()
	if err != nil || string(found) != ".envrc.withheld\n.envrc.withheld\n" {
		t.Errorf("got %q, %v", found, err)
	}
	if out, err := w.run(t, write, "rm", "-rf", "deep"); err != nil {
		t.Errorf("it cannot be removed: %v, %s", err, out)
	}
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
		for link, target := range map[string]string{".git/hooks/post-commit": "../../hooked/h.sh", ".git/hooks/pre-push": "../../sub/new.sh", ".git/hooks/pre-rebase": "../../sub/shut/new.sh", "node_modules/.bin/lint": "../lint/l.js", "node_modules/.bin/own": "../../mine/own.js"} {
			if err := os.Symlink(target, filepath.Join(w.workspace, link)); err != nil {
				t.Fatal(err)
			}
		}
		out, _ := w.run(t, write, "bash", "-c", "for f in "+strings.Join(paths, " ")+" mine/own.js sub/new.sh sub/shut/new.sh; do mkdir -p sub/shut; echo EVIL >>$f; done; chmod 311 sub/shut")
		for _, path := range paths {
			if text, err := os.ReadFile(filepath.Join(w.workspace, path)); err != nil || strings.Contains(string(text), "EVIL") {
				t.Errorf("%s: %q, %v", path, text, err)
			}
		}
		if text, _ := os.ReadFile(filepath.Join(w.workspace, "mine/own.js")); !strings.Contains(string(text), "EVIL") {
			t.Errorf("the package of the workspace is not written: %s", out)
		}
		w.withheld(t, "sub/new.sh", "sub/shut/new.sh")
		if err := os.Chmod(filepath.Join(w.workspace, "sub/shut"), 0o700); err != nil {
			t.Error(err)
		}
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

// TestTwoAtWork: what a command makes while another one is at work is withheld when the last of them ends, also of two processes.
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
	first := run("echo x >.envrc; echo made; until [ -e go ]; do sleep 0.05; done", func() {
		go func() {
			second <- run("echo ready; until [ -e ended ]; do sleep 0.05; done; echo x >.exrc", func() { close(started) })
		}()
		<-started
		w.write(t, "src/project/sub/go", "")
	})
	if found := first.Refusals("", false); len(found) != 0 {
		t.Errorf("looked for while another command is at work: %v", found)
	}
	w.write(t, "src/project/sub/ended", "")
	b := <-second
	w.withheld(t, "sub/.envrc", "sub/.exrc")
	if found := b.Refusals("", false); len(found) != 2 || !strings.Contains(found[0].Reason, "withheld") {
		t.Errorf("got %v", found)
	}
	if records, _ := filepath.Glob(filepath.Join(w.options.State, "sandbox", "work", "*")); len(records) != 0 {
		t.Errorf("left: %v", records)
	}
}

// TestBesideAServer: a call does not wait for a program that runs until it is stopped, and what each call makes is withheld at its end.
func TestBesideAServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.options.State = filepath.Join(w.home, "state", "loki")
	s, err := process.Start(process.Command{Path: "cat", Dir: w.workspace, Env: os.Environ(), Confinement: w.box(write, sandbox.Needs{Lasting: true})})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".exrc", ".exrc", ".vimrc"} {
		if out, err := w.run(t, write, "bash", "-c", "rm -f sub/"+name+".withheld; echo x >sub/"+name); err != nil {
			t.Fatal(out, err)
		}
		w.withheld(t, "sub/"+name)
	}
	// What the user, or the server, makes between two calls keeps its name. The next call says so.
	w.write(t, "src/project/sub/.envrc", "mine")
	b := w.box(write, sandbox.Needs{})
	if _, err := process.Run(t.Context(), process.Command{Path: "true", Dir: w.workspace, Env: os.Environ(), Confinement: b}); err != nil {
		t.Error(err)
	}
	found := b.Refusals("", false)
	if len(found) != 1 || found[0].Access != sandbox.Noticed || !strings.HasPrefix(found[0].What, "found sub/.envrc, new since") {
		t.Errorf("got %v", found)
	}
	// A call of the server is one like others.
	end, err := sandbox.New(w.options).Watch(write)
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "src/project/sub/.nvimrc", "x")
	if found := end(); len(found) != 1 || found[0].Access != sandbox.Noticed || found[0].What != "wrote sub/.nvimrc" {
		t.Errorf("got %v", found)
	}
	w.withheld(t, "sub/.nvimrc")
	w.write(t, "src/project/sub/.vimrc", "mine")
	s.Kill()
	for _, name := range []string{".envrc", ".vimrc"} {
		if _, err := os.Stat(filepath.Join(w.workspace, "sub", name)); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(w.options.State, "sandbox", "work", "*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestReplacedFiles: the result says which of the files that the box held another program replaced.
func TestReplacedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.options.Denied = patterns(w.workspace + "/**/.env")
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
	if found := b.Refusals("", false); err != nil || len(found) != 1 || found[0].Access != sandbox.Noticed || !strings.HasSuffix(found[0].What, " .env was replaced") {
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

// TestFilesOfOthers: what another program makes in the home directory while a command is at work keeps its name, and so do the
// directories of this program, which the command cannot make. What runs at the next login does not.
func TestFilesOfOthers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		w.workspace, w.options.Workspace = w.home, w.home
		w.options.State = filepath.Join(w.home, ".local", "state", "loki")
		w.options.Own = []string{w.options.State, filepath.Join(w.home, ".config", "loki")}
		w.options.Scripts = []string{filepath.Join(w.home, "scripts")}
		w.write(t, "scripts/tool.sh", "mine")
		b := w.box(write, sandbox.Needs{})
		r, err := process.Run(t.Context(), process.Command{
			Path: "bash", Dir: w.workspace, Env: os.Environ(), Confinement: b,
			Args: []string{"-c", "echo x >.zshenv; mkdir -p .config/loki/functions .local/bin; echo x >scripts/tool.sh; echo x >scripts/new.sh; echo ready; until [ -e src/go ]; do sleep 0.05; done"},
			OnStdout: func(string) {
				for _, path := range []string{".newapp/settings", ".lockfile", ".local/state/loki/runs.db", ".config/loki/config.yaml"} {
					w.write(t, path, "theirs")
				}
				w.write(t, "src/go", "")
			},
		})
		if err != nil {
			t.Fatal(err, r.Stderr)
		}
		for _, path := range []string{".newapp/settings", ".lockfile", ".local/state/loki/runs.db", ".config/loki/config.yaml"} {
			if text, err := os.ReadFile(filepath.Join(w.home, path)); string(text) != "theirs" {
				t.Errorf("%s: %q, %v", path, text, err)
			}
		}
		for _, path := range []string{".zshenv", ".config/loki/functions", ".local/bin", "scripts/new.sh"} {
			if _, err := os.Stat(filepath.Join(w.home, path)); err == nil {
				t.Errorf("%s was made", path)
			}
		}
		if text, _ := os.ReadFile(filepath.Join(w.home, "scripts/tool.sh")); string(text) != "mine" {
			t.Errorf("a script was changed: %q", text)
		}
	})
}
