//go:build unix

package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"loki/internal/base/file/atomicfile"
)

// TestOwner replaces a file of another user.
func TestOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if got := atomicfile.Owner(path); got != "" {
		t.Errorf("the owner of a file that does not exist is %q", got)
	}
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 1234, 2345); err != nil {
		t.Skip("only root gives files away")
	}
	if err := atomicfile.Write(path, []byte("new"), atomicfile.Options{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || atomicfile.Owner(path) != "1234:2345" || info.Mode().Perm() != 0o640 {
		t.Errorf("it belongs to %s, with the mode %v, %v", atomicfile.Owner(path), info.Mode(), err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "new" {
		t.Errorf("it has %q, %v", text, err)
	}
}
