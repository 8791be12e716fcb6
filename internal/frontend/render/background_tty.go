//go:build linux || darwin

package render

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"github.com/muesli/cancelreader"
	"golang.org/x/sys/unix"
)

// BackgroundPatience is the time that a terminal has for its answer. Links around the
// world need a third of a second.
const BackgroundPatience = 1500 * time.Millisecond

// Background is a question for the color of a terminal's background that is under way.
// Until it is settled the terminal belongs to it: nothing else may read from it. Its
// methods may be called from several goroutines.
type Background struct {
	tty   *os.File
	saved *unix.Termios
	once  sync.Once // restores the terminal
	read  chan []byte
	r     cancelreader.CancelReader
	timer *time.Timer

	dark, known bool
	lost        []byte
}

// AskBackground asks the controlling terminal for the color of its background. It returns
// nil if the question cannot be asked without harm: there is not a terminal, the process is
// in the background, or something was typed ahead.
//
// Until [Background.Settle] the terminal neither echoes nor edits lines, so that the answer
// is not shown; Ctrl-C keeps its effect.
//
// Source: XTerm Control Sequences (OSC 11, DA1).
func AskBackground() *Background {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	b := &Background{tty: tty, read: make(chan []byte, 1)}
	if !foreground(tty) || !b.hold() {
		_ = tty.Close()
		return nil
	}
	if !b.ask() {
		b.release()
		return nil
	}
	b.timer = time.AfterFunc(BackgroundPatience, func() { b.r.Cancel() })
	go func() { // ends with the answer, or when the timer cancels r; Settle waits for it
		var got []byte
		buf := make([]byte, 256)
		for len(got) < maxAnswer {
			n, err := b.r.Read(buf)
			got = append(got, buf[:n]...)
			if _, _, complete := splitAnswer(got); complete || err != nil {
				break
			}
		}
		b.read <- got
	}()
	return b
}

// maxAnswer is how many bytes are read at most: an answer has about forty.
const maxAnswer = 1 << 12

func (b *Background) fd() int { return int(b.tty.Fd()) }

// ask sends the question, unless there is input that could be mistaken for the answer.
func (b *Background) ask() bool {
	if pending, err := unix.IoctlGetInt(b.fd(), ioctlPending); err != nil || pending > 0 {
		return false
	}
	var err error
	if b.r, err = cancelreader.NewReader(b.tty); err != nil {
		return false
	}
	_, err = b.tty.WriteString(backgroundQuery)
	return err == nil
}

// hold switches echo and line editing off.
func (b *Background) hold() bool {
	saved, err := unix.IoctlGetTermios(b.fd(), ioctlGetTermios)
	if err != nil {
		return false
	}
	b.saved = saved
	quiet := *saved
	quiet.Lflag &^= unix.ICANON | unix.ECHO
	quiet.Cc[unix.VMIN], quiet.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(b.fd(), ioctlSetTermios, &quiet) == nil
}

// release gives the terminal back as it was.
func (b *Background) release() {
	if b.r != nil {
		_ = b.r.Close()
	}
	_ = unix.IoctlSetTermios(b.fd(), ioctlSetTermios, b.saved)
	_ = b.tty.Close()
}

// Settle waits for the answer, at most until [BackgroundPatience] after the question, and
// gives the terminal back. Calling it again returns the same. known is false if the
// terminal did not say its color.
func (b *Background) Settle() (dark, known bool) {
	b.once.Do(func() {
		answer, typed, _ := splitAnswer(<-b.read)
		b.timer.Stop()
		b.dark, b.known = darkAnswer(answer)
		b.lost = b.unread(typed)
		b.release()
	})
	return b.dark, b.known
}

// LostInput returns what the user typed between the question and the answer and what the system
// did not take back: Linux since 6.2 does not, unless dev.tty.legacy_tiocsti is set. It is empty as a rule.
func (b *Background) LostInput() string {
	b.Settle()
	return string(b.lost)
}

// unread puts what was typed back into the terminal's input and returns what it did not take.
func (b *Background) unread(typed []byte) []byte {
	for i := range typed {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(b.fd()), unix.TIOCSTI, uintptr(unsafe.Pointer(&typed[i])))
		if errno != 0 {
			return typed[i:]
		}
	}
	return nil
}

// foreground reports whether the process may read from the terminal f: one in the background is
// stopped when it tries.
func foreground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// TerminalSession names the terminal f and the login or window that uses it, so that the color of
// its background can be remembered. It returns "" if f is not a terminal.
func TerminalSession(f *os.File, getenv func(string) string) string {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return ""
	}
	leader, err := unix.Getsid(0)
	if err != nil {
		return ""
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, stat.Rdev, leader)
	for _, name := range []string{"TERM", "TERM_PROGRAM", "SSH_CONNECTION", "TMUX", "WINDOWID"} {
		fmt.Fprintln(&b, getenv(name))
	}
	return b.String()
}
