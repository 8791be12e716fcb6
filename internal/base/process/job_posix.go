//go:build linux || darwin

package process

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"unsafe"

	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"
)

// runForeground runs cmd as a shell runs a command at its terminal, which is the standard input of cmd: its
// process group has the terminal, with the keys that send signals. When it stops, this process stops with
// its own job, and both continue together; where no shell controls jobs the command continues at once. At the end the
// terminal has the modes that it had before. Without a terminal, or in the background, it is cmd.Run.
func runForeground(cmd *exec.Cmd) error {
	in, ok := cmd.Stdin.(*os.File)
	if !ok {
		return cmd.Run()
	}
	t := terminal{fd: int(in.Fd()), own: unix.Getpgrp()}
	modes, err := term.GetState(in.Fd())
	if err != nil || !t.mine() {
		return cmd.Run()
	}
	t.modes = modes
	cmd.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: t.fd}
	if err := cmd.Start(); err != nil {
		t.take()
		return err
	}
	signal.Ignore(unix.SIGTTOU) // what is done to the terminal is done from the background
	defer signal.Reset(unix.SIGTTOU)
	done := make(chan struct{})
	go func() { // ends with the process
		defer close(done)
		for awaitStop(cmd.Process.Pid) {
			t.stop(cmd.Process.Pid)
		}
	}()
	err = cmd.Wait()
	<-done
	if !t.background {
		t.take()
	}
	return err
}

// terminal is one that a command has.
type terminal struct {
	fd         int
	own        int // process group of this process
	modes      *term.State
	background bool // a shell has continued the job there, so the terminal belongs to another program
}

// mine reports whether the process group of this process has the terminal.
func (t *terminal) mine() bool {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == t.own
}

// take gives the terminal to this process, in the modes that it had. One that is gone stays so.
func (t *terminal) take() {
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.own)
	_ = term.Restore(uintptr(t.fd), t.modes)
}

// stop stops this process, since the command's process group was, and continues both.
func (t *terminal) stop(group int) {
	theirs, err := term.GetState(uintptr(t.fd))
	if !t.background {
		t.take()
	}
	stopJob()
	if t.background = !t.mine(); !t.background {
		if err == nil {
			_ = term.Restore(uintptr(t.fd), theirs)
		}
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
	}
	_ = unix.Kill(-group, unix.SIGCONT)
}

// stopJob stops the process group of this process, and returns when it continues. Where no shell controls jobs
// it returns at once: nothing would continue the process.
func stopJob() {
	if session, err := unix.Getsid(0); err != nil || session == unix.Getpgrp() {
		return
	}
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, unix.SIGTSTP, unix.SIGCONT) // SIGTSTP is for the rest of the group
	defer signal.Stop(caught)
	_ = unix.Kill(0, unix.SIGTSTP)
	if unix.Kill(os.Getpid(), unix.SIGSTOP) != nil {
		return
	}
	for s := range caught {
		if s == unix.SIGCONT {
			return
		}
	}
}

// awaitStop waits until a child process stops, or ends, and reports which.
func awaitStop(pid int) bool {
	const byID, codeStopped = 1, 5 // P_PID, CLD_STOPPED
	wait := func(options int) (code int32, ok bool) {
		var info [32]int32 // siginfo_t: a number, an error, a code
		for {
			_, _, err := syscall.Syscall6(syscall.SYS_WAITID, byID, uintptr(pid), uintptr(unsafe.Pointer(&info)), uintptr(options), 0, 0)
			if err != unix.EINTR {
				return info[2], err == 0
			}
		}
	}
	// The end is left to [exec.Cmd.Wait].
	if code, ok := wait(unix.WSTOPPED | unix.WEXITED | unix.WNOWAIT); !ok || code != codeStopped {
		return false
	}
	_, _ = wait(unix.WSTOPPED | unix.WNOHANG) // this stop was reported
	return true
}
