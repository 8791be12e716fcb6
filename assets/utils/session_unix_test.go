//go:build unix

package utils_test

import (
	"os/exec"
	"syscall"
)

// controlling makes the standard input of a program its controlling terminal.
func controlling(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}

// detached takes the terminal away from a program.
func detached(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}
