package process_test

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"loki/internal/base/process"
)

func TestIsLimit(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.EMFILE: true, syscall.ENFILE: true, syscall.EAGAIN: true, syscall.ENOMEM: true, syscall.EBADF: true,
		syscall.ENOENT: false, syscall.EACCES: false, syscall.ENOEXEC: false,
	} {
		if got := process.IsLimit(fmt.Errorf("start bash: %w", &fs.PathError{Op: "fork/exec", Path: "/bin/bash", Err: err})); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}
