package node

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestStateDir: a state is readable by its owner only, and the directory goes with the run.
func TestStateDir(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp)
	var d stateDir
	first, err := d.write([]byte("{}"))
	if err != nil {
		t.Fatal(err)
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
