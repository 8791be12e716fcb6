//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// standardError returns standard error under another number, closed in children. Writing
// to number 2 itself ends a Go program when its reader is gone, as in
// "loki 2>&1 | head"; messages that no one reads must not end a run.
func standardError() *os.File {
	fd, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.Stderr
	}
	return os.NewFile(uintptr(fd), os.Stderr.Name())
}
