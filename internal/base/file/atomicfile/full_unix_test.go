//go:build unix

package atomicfile_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loki/internal/base/file/atomicfile"
)

// TestFullDisk runs this test program again as a process that cannot write more than 4 KiB
// into a file, as on a disk that fills up meanwhile.
func TestFullDisk(t *testing.T) {
	const variable, limit = "ATOMICFILE_TEST_FULL", 4096
	if dir := os.Getenv(variable); dir != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			t.Fatal(err)
		}
		data := []byte(strings.Repeat("new", limit))
		if err := atomicfile.Write(filepath.Join(dir, "file"), data, atomicfile.Options{}); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("error of Write: %v", err)
		}
		if err := atomicfile.Append(filepath.Join(dir, "file"), data); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("error of Append: %v", err)
		}
		return
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$")
	cmd.Env = append(os.Environ(), variable+"="+filepath.Dir(path))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	content(t, path, "old")
}

func TestReadOnlyDirectory(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o700) })
	if err := atomicfile.Write(path, []byte("new"), atomicfile.Options{}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v", err)
	}
	content(t, path, "old")
}
