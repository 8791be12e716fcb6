package sqlite

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// machine returns the id of this start of the system, and of the space of process ids
// that the process sees: containers have their own.
func machine() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/pid")
	return "/" + strings.TrimSpace(string(boot)) + "/" + space
}

// processBorn returns when a process was started, in clock ticks since the system
// was, and whether it is there. A process that has ended and that nobody has waited for
// is not. See proc_pid_stat(5).
func processBorn(pid int) (born string, alive bool) {
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
