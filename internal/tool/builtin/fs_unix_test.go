//go:build unix

package builtin_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestModeAndLinksAreKept(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"script": "one\n", "real/target": "one\n"})
	if err := os.Chmod(filepath.Join(dir, "script"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real/target", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	asks(t, at(dir), "fs_write", m{"path": "script", "contents": "two\n"})
	if info, err := os.Stat(filepath.Join(dir, "script")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	_, _, question := asks(t, at(dir), "fs_patch", m{"path": "link", "contents": "@@ @@\n-one\n+two\n"})
	if info, err := os.Lstat(filepath.Join(dir, "link")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is none any more")
	}
	if got := read(t, filepath.Join(dir, "real", "target")); got != "two\n" || !strings.HasPrefix(question, "Change "+filepath.Join(dir, "real", "target")) {
		t.Errorf("the target holds %q; asked %q", got, question)
	}
	if text, failed, _ := asks(t, at(dir), "fs_rm", m{"path": "link"}); failed || text != `{"output":"removed the symbolic link link"}` {
		t.Errorf("got %s", text)
	}
	if read(t, filepath.Join(dir, "real", "target")) != "two\n" {
		t.Error("the target is gone")
	}
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	outside := files(t, map[string]string{"secret": "x\n", "d/f": "y\n"})
	dir := files(t, map[string]string{"a": "a\n"})
	for name, target := range map[string]string{"link": filepath.Join(outside, "secret"), "dir": filepath.Join(outside, "d"), "dangling": filepath.Join(outside, "none"), "loop": "loop", "up": ".."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for tool, args := range map[string]m{
		"fs_write link":     {"path": "link", "contents": "evil"},
		"fs_write dir":      {"path": "dir/f", "contents": "evil"},
		"fs_write new":      {"path": "dir/new", "contents": "evil"},
		"fs_write dangling": {"path": "dangling", "contents": "evil"},
		"fs_write up":       {"path": "up/evil", "contents": "evil"},
		"fs_patch link":     {"path": "link", "contents": "@@ @@\n-x\n+evil\n"},
		"fs_mkdir dir":      {"path": "dir/new"},
		"fs_rm dir":         {"path": "dir/f"},
	} {
		name, _, _ := strings.Cut(tool, " ")
		text, failed, question := asks(t, at(dir), name, args)
		if !failed || question != "" || !strings.Contains(text, "leads through a symbolic link to ") {
			t.Errorf("%s: got %s, asked %q", tool, text, question)
		}
	}
	if text, failed, _ := asks(t, at(dir), "fs_write", m{"path": "loop", "contents": "x"}); !failed || !strings.Contains(text, "too many symbolic links") {
		t.Errorf("got %s", text)
	}
	if read(t, filepath.Join(outside, "secret")) != "x\n" || read(t, filepath.Join(outside, "d", "f")) != "y\n" {
		t.Error("something outside was changed")
	}
	// Reading is possible, and the model is told where it reads.
	text, failed, _ := asks(t, at(dir), "fs_cat", m{"path": "link"})
	if want := `{"output":"x\n","stderr":"link leads through a symbolic link to ` + filepath.Join(outside, "secret") + `"}`; failed || text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	// A directory that is a link is not searched on the way.
	if got := output(t, at(dir), "fs_grep", m{"pattern": "y"}); got != "[nothing matches in .]\n" {
		t.Errorf("got %s", got)
	}
	// Removing a directory does not touch what links in it lead to.
	if err := os.MkdirAll(filepath.Join(dir, "gone"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "gone", "out")); err != nil {
		t.Fatal(err)
	}
	if text, failed, _ := asks(t, at(dir), "fs_rm", m{"path": "gone"}); failed || read(t, filepath.Join(outside, "secret")) != "x\n" {
		t.Errorf("got %s", text)
	}
}

// A named pipe has no end: whatever reads it would wait for ever.
func TestPipesAreRefused(t *testing.T) {
	t.Parallel()
	dir := files(t, nil)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	for tool, args := range map[string]m{
		"fs_cat": {"path": "pipe"}, "fs_read": {"path": "pipe"}, "fs_grep": {"path": "pipe", "pattern": "x"},
		"fs_write": {"path": "pipe", "contents": "x"}, "fs_patch": {"path": "pipe", "contents": "@@ @@\n+x\n"},
	} {
		if text, failed, _ := asks(t, at(dir), tool, args); !failed || !strings.Contains(text, "neither a file nor a directory") {
			t.Errorf("%s: got %s", tool, text)
		}
	}
}
