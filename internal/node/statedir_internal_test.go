package node

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"loki/internal/atomicfile"
)

// TestStatesOfTheDeadAreRemoved: what killed processes left goes, and nothing else.
func TestStatesOfTheDeadAreRemoved(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp)
	dir := func(name string, locked bool) string {
		path := filepath.Join(tmp, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		lock, err := atomicfile.OpenLocked(t.Context(), filepath.Join(path, stateDirLock))
		if err != nil {
			t.Fatal(err)
		}
		if locked {
			t.Cleanup(func() { lock.Close() })
		} else {
			lock.Close()
		}
		return path
	}
	const absent = "2147483646"
	dead := dir("loki-state-"+absent+"-1", false)
	kept := map[string]string{
		"of a process in another container": dir("loki-state-"+absent+"-2", true),
		"of a process that lives":           dir("loki-state-"+strconv.Itoa(os.Getpid())+"-3", false),
		"of something else":                 dir("loki-state-of-mine", false),
	}
	bare := filepath.Join(tmp, "loki-state-"+absent+"-4")
	if err := os.Mkdir(bare, 0o700); err != nil {
		t.Fatal(err)
	}
	kept["that is just being made"] = bare

	var d stateDir
	first, err := d.write([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("what a dead process left is still there")
	}
	for what, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the directory %s is gone: %v", what, err)
		}
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{first: 0o600, filepath.Dir(first): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, %v, want %v", path, info.Mode().Perm(), err, want)
			}
		}
		// Something that tidies up does not stop the run.
		if err := os.RemoveAll(filepath.Dir(first)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.write([]byte("{}")); err != nil {
			t.Errorf("after the directory was removed: %v", err)
		}
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(first)); err == nil {
		t.Error("the directory is still there after the run")
	}
}
