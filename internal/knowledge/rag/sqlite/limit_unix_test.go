//go:build unix

package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag/sqlite"
)

// A process that may not write large files says so, and leaves the index in use as it is.
func TestLimitOfFiles(t *testing.T) {
	t.Parallel()
	path := built(t)
	before := dump(t, sqlite.New(path))
	for name, blocks := range map[string]int{"copying": 32, "writing": 512} { // of 512 bytes
		t.Run(name, func(t *testing.T) {
			c := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -f %d && exec "$0"`, blocks), os.Args[0])
			c.Env = append(os.Environ(), workerFile+"="+path)
			out, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "the system cannot write "+path) || !strings.Contains(string(out), "ulimit -f") {
				t.Errorf("%v: %s", err, out)
			}
			if dump(t, sqlite.New(path)) != before {
				t.Error("the index in use has changed")
			}
		})
	}
	if err := buildVersion(t.Context(), sqlite.New(path), 2); err != nil {
		t.Error(err)
	}
}

func TestDirectoryThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	err := buildVersion(t.Context(), sqlite.New(filepath.Join(dir, "base.db")), 1)
	if !errors.Is(err, os.ErrPermission) || fault.CodeOf(err) != fault.Config || fault.HintOf(err) == "" {
		t.Errorf("%v, code %s", err, fault.CodeOf(err))
	}
}
