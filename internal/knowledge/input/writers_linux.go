package input

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// HasWriter reports whether a program that is not an ancestor of this one can write into the pipe f, as the program in front of
// a pipeline does. An ancestor that has made the pipe and keeps it open, such as the server that has started this program, does not count.
func HasWriter(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	pipe := fmt.Sprintf("pipe:[%d]", stat.Ino)
	above := ancestors()
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*") // those of other users cannot be read
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err != nil || target != pipe {
			continue
		}
		process, number, _ := strings.Cut(strings.TrimPrefix(fd, "/proc/"), "/fd/")
		if above[process] {
			continue
		}
		text, err := os.ReadFile("/proc/" + process + "/fdinfo/" + number)
		if _, flags, ok := strings.Cut(string(text), "flags:"); err == nil && ok {
			flags, _, _ = strings.Cut(strings.TrimSpace(flags), "\n")
			if n, err := strconv.ParseUint(flags, 8, 64); err == nil && n&syscall.O_ACCMODE != syscall.O_RDONLY {
				return true
			}
		}
	}
	return false
}

// ancestors returns the ids of this process and those above it.
func ancestors() map[string]bool {
	all := make(map[string]bool)
	for id := strconv.Itoa(os.Getpid()); id != "0" && !all[id]; {
		all[id] = true
		text, err := os.ReadFile("/proc/" + id + "/stat")
		_, rest, ok := strings.Cut(string(text), ") ") // the name before it may have blanks
		fields := strings.Fields(rest)
		if err != nil || !ok || len(fields) < 2 {
			break
		}
		id = fields[1]
	}
	return all
}
