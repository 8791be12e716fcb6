//go:build !linux && !darwin && !windows

package sqlite

import (
	"errors"
	"syscall"
)

// machine returns nothing: the name of the host has to do.
func machine() string { return "" }

// processBorn returns whether a process is there. When it was started is not known.
func processBorn(pid int) (born string, alive bool) {
	return "", !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
