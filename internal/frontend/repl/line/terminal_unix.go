//go:build linux || darwin

package line

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// notify has the signals of a terminal that the editor answers sent to signals.
func notify(signals chan<- os.Signal) {
	signal.Notify(signals, unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH)
}

func isStop(s os.Signal) bool     { return s == unix.SIGTSTP }
func isContinue(s os.Signal) bool { return s == unix.SIGCONT }

// stopProcess stops the process, with group all of its job, and returns when it continues. Where no
// shell controls jobs it returns at once: nothing would continue the process. signals gets the signals
// that the editor answers.
func stopProcess(signals chan os.Signal, group bool) {
	session, err := unix.Getsid(0)
	if err != nil || session == unix.Getpgrp() {
		return
	}
	signal.Reset(unix.SIGTSTP)
	defer signal.Notify(signals, unix.SIGTSTP)
	if group {
		_ = unix.Kill(0, syscall.SIGTSTP) // this process does not stop at it: the runtime still has its handler
	}
	if unix.Kill(os.Getpid(), syscall.SIGSTOP) != nil {
		return
	}
	for !isContinue(<-signals) {
	}
}

// pendingBytes returns how many bytes were typed and not read.
func pendingBytes(fd uintptr) int {
	n, err := unix.IoctlGetInt(int(fd), ioctlPending)
	if err != nil {
		return 0
	}
	return n
}

// watchMode has the terminal pass on each key without showing it. The keys that send signals still
// do, but for the one that makes a program dump its memory, and lose nothing that was typed.
func watchMode(fd uintptr) error {
	t, err := unix.IoctlGetTermios(int(fd), ioctlGetTermios)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ICANON | unix.ECHO | unix.ECHONL | unix.IEXTEN
	t.Lflag |= unix.ISIG | unix.NOFLSH
	t.Iflag &^= unix.ICRNL | unix.INLCR | unix.IGNCR | unix.ISTRIP
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	t.Cc[unix.VQUIT] = disabledKey
	return unix.IoctlSetTermios(int(fd), ioctlSetTermios, t)
}
