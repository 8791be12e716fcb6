//go:build amd64 || arm64

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
