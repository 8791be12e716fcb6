//go:build !linux && !darwin

package line

import "os"

// notify does nothing: no signals are sent for terminals. The size is asked for before each frame.
func notify(chan<- os.Signal) {}

func isStop(os.Signal) bool     { return false }
func isContinue(os.Signal) bool { return false }

func stopProcess(chan os.Signal, bool) {}

// pendingBytes returns 0: what is typed before is the same.
func pendingBytes(uintptr) int { return 0 }
