//go:build unix

package server

import "syscall"

// mostConnections returns how many connections a server may have at once: half of the files that the process may have open. 0 means any
// number.
func mostConnections() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(uint64(limit.Cur)/2, 1<<20))
}
