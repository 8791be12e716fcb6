//go:build unix

package source_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestAPipeIsNotRead(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{"d/a.md": "a"})
	if err := syscall.Mkfifo(filepath.Join(dir, "d/pipe.md"), 0o600); err != nil {
		t.Skipf("the file system of the test has no pipes: %v", err)
	}
	sameList(t, texts(t, loaderAt(dir), dir, "d/pipe.md", "d", "/dev/zero"),
		"d/pipe.md error: /d/pipe.md is a named pipe, not a file", "d/a.md (md with lines): a", "dev/zero error: /dev/zero is a device, not a file")
}
