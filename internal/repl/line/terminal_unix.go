//go:build linux || darwin

package line

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// notify has the signals of a terminal that the editor answers sent to signals.
func notify(signals chan<- os.Signal) {
	signal.Notify(signals, unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH)
}

func isStop(s os.Signal) bool     { return s == unix.SIGTSTP }
func isContinue(s os.Signal) bool { return s == unix.SIGCONT }

// stopGrace is how long a stop may take to come into effect. A process whose parents do not control
// jobs is not stopped at all.
const stopGrace = 100 * time.Millisecond

// stopProcess stops the process, or its whole job, and returns when it goes on. signals gets the
// signals that the editor answers.
func stopProcess(signals chan os.Signal, group bool) {
	pid := os.Getpid()
	if group {
		pid = 0
	}
	signal.Reset(unix.SIGTSTP)
	defer signal.Notify(signals, unix.SIGTSTP)
	if unix.Kill(pid, syscall.SIGTSTP) != nil {
		return
	}
	deadline := time.After(stopGrace)
	for {
		select {
		case s := <-signals:
			if isContinue(s) {
				return
			}
		case <-deadline:
			return
		}
	}
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
