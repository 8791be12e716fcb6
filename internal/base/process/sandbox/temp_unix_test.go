//go:build linux || darwin

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSweep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	used, left := filepath.Join(root, "used"), filepath.Join(root, "left")
	for _, dir := range []string{used, filepath.Join(left, "a")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(left, "a", "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(left, "a"), 0o500); err != nil {
		t.Fatal(err)
	}
	lock, err := lockDirectory(used)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	sweep(root)
	if !exists(used) || exists(left) {
		t.Errorf("used %v, left %v", exists(used), exists(left))
	}
}
