//go:build unix

package governor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOddFiles: what is no regular file in place of a state is neither waited for nor written to.
func TestOddFiles(t *testing.T) {
	for _, kind := range []string{"fifo", "link"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			call := func() {
				t.Helper()
				if _, err := ask(t.Context(), sharing(t, dir).Chat(&server{most: 2}, sharedOptions()), "m"); err != nil {
					t.Error(err)
				}
			}
			call()
			states, err := filepath.Glob(filepath.Join(dir, "*.json"))
			if err != nil || len(states) == 0 {
				t.Fatalf("states %v, %v", states, err)
			}
			target := filepath.Join(t.TempDir(), "mine")
			if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, path := range states {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if kind == "fifo" {
					err = syscall.Mkfifo(path, 0o600)
				} else {
					err = os.Symlink(target, path)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			call()
			for _, s := range listed(t, sharing(t, dir)) {
				if strings.Contains(s.Client, "mine") {
					t.Errorf("%+v", s)
				}
			}
			if text, err := os.ReadFile(target); err != nil || string(text) != "mine" {
				t.Errorf("the file of the user is %q, %v", text, err)
			}
		})
	}
}
