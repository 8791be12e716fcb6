//go:build !linux && !darwin && !windows

package identity

import (
	"errors"
	"syscall"
	"time"
)

// machine returns nothing: the name of the host has to do.
func machine() (boot, space string) { return "", "" }

// BootTime returns the zero time: it is not known.
func BootTime() time.Time { return time.Time{} }

// LiveClock returns the time since 1970, for want of a better clock.
func LiveClock() time.Duration { return time.Duration(time.Now().UnixNano()) }

// Born returns whether a process is there. When it was started is not known.
func Born(pid int) (born string, alive bool) {
	return "", !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
