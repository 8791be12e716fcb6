//go:build !linux && !darwin && !windows

package sqlite

import (
	"errors"
	"syscall"
	"time"
)

// machine returns nothing: the name of the host has to do.
func machine() (boot, space string) { return "", "" }

// bootTime returns the zero time: it is not known.
func bootTime() time.Time { return time.Time{} }

// liveClock returns the time since 1970, for want of a better clock.
func liveClock() time.Duration { return time.Duration(time.Now().UnixNano()) }

// processBorn returns whether a process is there. When it was started is not known.
func processBorn(pid int) (born string, alive bool) {
	return "", !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
