//go:build unix

package render

import (
	"os"

	"golang.org/x/sys/unix"
)

// foreground reports whether the process may read from the terminal f: one in the background is
// stopped when it tries.
func foreground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
