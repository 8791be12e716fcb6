//go:build linux || darwin

package ptytest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// patience bounds each wait: for a program that hangs.
const patience = 20 * time.Second

// Terminal is a pseudo-terminal. Its methods end the test when what they wait for does not happen.
type Terminal struct {
	Program *os.File // the side of the program

	t     *testing.T
	user  *os.File
	modes *term.State
	cmd   *exec.Cmd
	ended chan struct{} // closed when the program has ended; nil without one

	mu      sync.Mutex
	changed *sync.Cond
	shown   []byte
	from    int // what was shown before does not count any more
	screen  vt10x.Terminal
	over    bool
}

// Open returns a terminal of 24 rows without a program. The test is skipped where there are no pseudo-terminals.
func Open(t *testing.T, columns int) *Terminal {
	t.Helper()
	user, program, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	x := &Terminal{Program: program, t: t, user: user}
	x.changed = sync.NewCond(&x.mu)
	x.Resize(columns, 24)
	x.screen = vt10x.New(vt10x.WithSize(columns, 24))
	if x.modes, err = term.GetState(program.Fd()); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends when the program's side is closed
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := user.Read(buf)
			x.mu.Lock()
			x.shown = append(x.shown, buf[:n]...)
			_, _ = x.screen.Write(buf[:n])
			x.over = err != nil
			x.changed.Broadcast()
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		if x.cmd != nil {
			_ = x.cmd.Process.Kill()
			<-x.ended
		}
		_ = program.Close()
		<-done
		_ = user.Close()
	})
	return x
}

// Start starts a program at a new terminal, which is its controlling one.
func Start(t *testing.T, columns int, cmd *exec.Cmd) *Terminal {
	t.Helper()
	x := Open(t, columns)
	x.Start(cmd)
	return x
}

// Start starts a program at the terminal, which is its controlling one. What was typed before is there when it starts. A terminal
// is for one program.
func (x *Terminal) Start(cmd *exec.Cmd) {
	x.t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.Program, x.Program, x.Program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	x.cmd, x.ended = cmd, make(chan struct{})
	go func() { // ends with the program
		defer close(x.ended)
		_ = cmd.Wait() // its state is looked at
	}()
}

// Resize sets the size of the terminal.
func (x *Terminal) Resize(columns, rows int) {
	x.t.Helper()
	if err := pty.Setsize(x.Program, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}); err != nil {
		x.t.Fatal(err)
	}
}

// Types types text: keys as a terminal sends them.
func (x *Terminal) Types(text string) {
	x.t.Helper()
	if _, err := x.user.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// Sees waits until each of the texts was written, in this order, after what was waited for before. Escape sequences are left out.
func (x *Terminal) Sees(texts ...string) {
	x.t.Helper()
	for _, text := range texts {
		x.wait(text, func() bool {
			rest := ansi.Strip(string(x.shown[x.from:]))
			_, after, found := strings.Cut(rest, text)
			if found {
				x.shown = append(x.shown[:x.from], after...)
			}
			return found
		})
	}
}

// Shows waits until text is on the screen, or was written since [Terminal.Forget].
func (x *Terminal) Shows(text string) {
	x.t.Helper()
	x.wait(text, func() bool { return strings.Contains(x.all(), text) })
}

func (x *Terminal) wait(what string, found func() bool) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), patience)
	defer cancel()
	defer context.AfterFunc(ctx, x.changed.Broadcast)()
	x.mu.Lock()
	defer x.mu.Unlock()
	for !found() {
		if x.over || ctx.Err() != nil {
			x.t.Fatalf("%q was never shown, but\n%s", what, x.all())
		}
		x.changed.Wait()
	}
}

func (x *Terminal) all() string {
	return ansi.Strip(string(x.shown[x.from:])) + "\n" + x.screen.String()
}

// Drawn returns what was written since [Terminal.Forget], without escape sequences, and then what is on the screen.
func (x *Terminal) Drawn() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all()
}

// Raw returns what was written since [Terminal.Forget], as it was.
func (x *Terminal) Raw() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(x.shown[x.from:])
}

// Forget has the methods above leave out what was written until now, but for what is on the screen.
func (x *Terminal) Forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.from = len(x.shown)
}

// Ends waits until the program ends, and returns its exit status. Then the terminal must be as it was found.
func (x *Terminal) Ends() (status int) {
	x.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-x.ended:
	case <-timer.C:
		x.t.Fatalf("the program does not end; the terminal shows\n%s", x.Drawn())
	}
	x.Restored()
	return x.cmd.ProcessState.ExitCode()
}

// Unread returns what was typed and not read by the program that has ended, as far as the terminal passes it on: whole lines, unless
// it was left in raw mode.
func (x *Terminal) Unread() string {
	x.t.Helper()
	fd := int(x.Program.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		x.t.Fatal(err)
	}
	var unread []byte
	for buf := make([]byte, 4096); ; {
		n, err := syscall.Read(fd, buf)
		if n <= 0 || err != nil { // there is nothing more
			return string(unread)
		}
		unread = append(unread, buf[:n]...)
	}
}

// Restored checks that the terminal is as it was found.
func (x *Terminal) Restored() {
	x.t.Helper()
	modes, err := term.GetState(x.Program.Fd())
	if err != nil {
		x.t.Fatal(err)
	}
	if *modes != *x.modes {
		x.t.Errorf("the modes of the terminal are %+v, and were %+v", *modes, *x.modes)
	}
}
