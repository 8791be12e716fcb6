package identity

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machine returns the id of this start of the system, and that of the space of process
// ids that the process sees: containers have their own.
func machine() (boot, space string) {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ = os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(id)), space
}

// BootTime returns when the system was started, by the clock on the wall. The zero time
// means that it is not known.
func BootTime() time.Time {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(info.Uptime) * time.Second)
}

// LiveClock returns for how long the system has been at work since it was started. It
// stands still while the system sleeps, and is not set. See clock_gettime(2).
func LiveClock() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail with this clock
	return time.Duration(t.Nano())
}

// Born returns when a process was started, in clock ticks since the system
// was, and whether it is there. A process that has ended and that its parent has not waited for
// is not. See proc_pid_stat(5).
func Born(pid int) (born string, alive bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", !errors.Is(err, fs.ErrNotExist)
	}
	// The second field is a name in parentheses, which may hold any character.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", true
	}
	if state := string(fields[0]); state == "Z" || state == "X" {
		return "", false
	}
	return string(fields[19]), true
}
