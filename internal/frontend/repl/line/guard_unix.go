//go:build linux || darwin

package line

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

// guardArgument begins the arguments of the process that guards a terminal.
const guardArgument = "--guard-terminal"

// StartGuard starts a process that gives the terminal back as it is now when this process ends without
// doing so: when a goroutine panics, or it is killed. The program's main function passes its arguments to
// [ServeGuard]. stop ends the guard, after [Editor.Close].
func StartGuard(in *os.File) (stop func(), err error) {
	modes, err := unix.IoctlGetTermios(int(in.Fd()), ioctlGetTermios)
	if err != nil {
		return nil, fmt.Errorf("guarding the terminal: %w", err)
	}
	argument, err := json.Marshal(modes)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path: self, Args: []string{os.Args[0], guardArgument, string(argument)}, Env: []string{}, Dir: "/",
		Stdin: in, ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // no key of the terminal is meant for it
	}
	if err = cmd.Start(); err == nil {
		// The runtime writes there before the process ends, so the guard is done before a shell asks for a command.
		err = debug.SetCrashOutput(ours, debug.CrashOptions{})
	}
	stop = func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill() // before the pipe ends, which it waits for
			_ = cmd.Wait()
		}
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
		ours.Close()
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("guarding the terminal: %w", err)
	}
	return stop, nil
}

// ServeGuard is the process that [StartGuard] starts. It reports whether args, without the name of the
// program, are those of one, and then returns when that has done its work.
func ServeGuard(args []string) bool {
	if len(args) != 2 || args[0] != guardArgument {
		return false
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTTOU)
	var modes unix.Termios
	if json.Unmarshal([]byte(args[1]), &modes) != nil {
		return true
	}
	pipe := os.NewFile(3, "pipe")
	_, _ = pipe.Read(make([]byte, 1)) // returns when the process ends, or says why it is about to
	giveBack(&modes)
	_, _ = io.Copy(io.Discard, pipe)
	giveBack(&modes)
	return true
}

// giveBack sets the modes of the terminal at standard input, if those of this package or of a question
// are set. Another program that has taken the terminal keeps its own.
func giveBack(modes *unix.Termios) {
	now, err := unix.IoctlGetTermios(unix.Stdin, ioctlGetTermios)
	if err != nil || now.Lflag&(unix.ICANON|unix.ECHO) != 0 || now.Lflag&unix.ISIG != 0 && now.Cc[unix.VQUIT] != disabledKey {
		return
	}
	if unix.IoctlSetTermios(unix.Stdin, ioctlSetTermios, modes) == nil {
		_, _ = os.Stdin.WriteString(keysOff + showCursor + focusOff + pasteOff + "\r\n")
	}
}
