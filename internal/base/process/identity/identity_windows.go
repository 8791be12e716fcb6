package identity

import (
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/windows"
)

// machine returns nothing: the time at which a process was started tells processes of
// different starts of the system apart.
func machine() (boot, space string) { return "", "" }

// BootTime returns the zero time: it is not needed, because processes of different
// starts of the system can be told apart.
func BootTime() time.Time { return time.Time{} }

// LiveClock returns the time since the system was started.
func LiveClock() time.Duration { return windows.DurationSinceBoot() }

// Born returns when a process was started, in units of 100 ns since 1601, and
// whether it is there.
func Born(pid int) (born string, alive bool) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return "", !errors.Is(err, windows.ERROR_INVALID_PARAMETER)
	}
	defer func() { _ = windows.CloseHandle(h) }()
	const stillActive = 259
	var code uint32
	if windows.GetExitCodeProcess(h, &code) == nil && code != stillActive {
		return "", false
	}
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) != nil {
		return "", true
	}
	return strconv.FormatInt(int64(created.HighDateTime)<<32|int64(created.LowDateTime), 10), true
}
