package identity

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// machine returns the id of this start of the system. There is one space of process ids.
func machine() (boot, space string) {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id, ""
}

// BootTime returns when the system was started, by the clock on the wall. The zero time
// means that it is not known.
func BootTime() time.Time {
	t, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return time.Time{}
	}
	return time.Unix(t.Unix())
}

// LiveClock returns for how long the system has been at work since it was started. It
// stands still while the system sleeps, and is not set. See clock_gettime(3).
func LiveClock() time.Duration {
	const uptimeRaw = 8 // CLOCK_UPTIME_RAW of time.h
	var t unix.Timespec
	_ = unix.ClockGettime(uptimeRaw, &t) // cannot fail with this clock
	return time.Duration(t.Nano())
}

// Born returns when a process was started, and whether it is there. A process
// that has ended and that its parent has not waited for is not.
func Born(pid int) (born string, alive bool) {
	const zombie = 5 // SZOMB of sys/proc.h
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		// The answer about a process that is not there is empty.
		return "", !errors.Is(err, unix.EIO) && !errors.Is(err, unix.ESRCH)
	}
	if p.Proc.P_stat == zombie {
		return "", false
	}
	return fmt.Sprintf("%d.%06d", p.Proc.P_starttime.Sec, p.Proc.P_starttime.Usec), true
}
