//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// memoryOf returns the largest memory that a process had, in bytes.
func memoryOf(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	switch {
	case !ok:
		return 0
	case runtime.GOOS == "darwin":
		return int64(usage.Maxrss)
	default:
		return int64(usage.Maxrss) << 10
	}
}
