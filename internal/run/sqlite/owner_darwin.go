package sqlite

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// machine returns the id of this start of the system.
func machine() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return "/" + id
}

// processBorn returns when a process was started, and whether it is there. A process
// that has ended and that nobody has waited for is not.
func processBorn(pid int) (born string, alive bool) {
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
