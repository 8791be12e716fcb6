//go:build unix

package rag_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loki/internal/knowledge/rag"
)

func TestReadOldOfAPipe(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.yaml")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Skipf("the file system of the test has no pipes: %v", err)
	}
	if _, err := rag.ReadOld(file); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("error %v", err)
	}
}
