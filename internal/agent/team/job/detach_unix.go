//go:build unix

package job

import (
	"os/exec"
	"syscall"
)

// canDetach says that a process can outlive the one that starts it, with its terminal.
const canDetach = true

// detach has a command lead a session of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// interrupt tells a keeper to end its job.
func interrupt(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) }
