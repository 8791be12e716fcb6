//go:build linux || darwin

package line

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/hinshun/vt10x"
	"golang.org/x/sys/unix"

	"loki/internal/base/ptytest"
)

// patience is how long a test waits for what has to come.
const patience = 60 * time.Second

// console is the far side of a terminal: a screen and a keyboard.
type console struct {
	t         *testing.T
	near, far *os.File

	mu     sync.Mutex
	seen   bytes.Buffer
	screen vt10x.Terminal
	muted  bool // nothing more is shown on screen
	grown  *sync.Cond
}

// unknown is what the emulator of the tests takes for something else.
var unknown = strings.NewReplacer(keysOn, "", keysOff, "")

func newConsole(t *testing.T, columns, rows int) *console {
	t.Helper()
	far, near, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	c := &console{t: t, near: near, far: far, screen: vt10x.New(vt10x.WithSize(columns, rows))}
	c.grown = sync.NewCond(&c.mu)
	c.resize(columns, rows)
	done := make(chan struct{})
	go func() { // ends when the near side is closed
		defer close(done)
		buf := make([]byte, 1<<16)
		for {
			n, err := far.Read(buf)
			c.mu.Lock()
			c.seen.Write(buf[:n])
			if !c.muted {
				_, _ = c.screen.Write([]byte(unknown.Replace(string(buf[:n]))))
			}
			c.grown.Broadcast()
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = near.Close()
		<-done
		_ = far.Close()
	})
	return c
}

func (c *console) resize(columns, rows int) {
	c.t.Helper()
	if err := pty.Setsize(c.near, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}); err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.screen.Resize(columns, rows)
}

// shown returns what is on the screen, without blanks at the ends of lines, with "|" at the cursor.
func (c *console) shown() string {
	lines := strings.Split(c.screen.String(), "\n")
	at := c.screen.Cursor()
	for y, line := range lines {
		if y == at.Y {
			line = string([]rune(line)[:at.X]) + "|" + string([]rune(line)[at.X:])
		}
		lines[y] = strings.TrimRight(line, " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// waits blocks until ok, which is called with the lock.
func (c *console) waits(ok func() bool) bool {
	over := false
	timer := time.AfterFunc(patience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		over = true
		c.grown.Broadcast()
	})
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !ok() {
		if over {
			return false
		}
		c.grown.Wait()
	}
	return true
}

// becomes waits until the screen is want.
func (c *console) becomes(want string) {
	c.t.Helper()
	want = strings.Trim(want, "\n")
	if !c.waits(func() bool { return c.shown() == want }) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.t.Fatalf("screen (-want +got):\n%s", cmp.Diff(want, c.shown()))
	}
}

// sees waits until text was written to the terminal.
func (c *console) sees(text string) {
	c.t.Helper()
	if !c.waits(func() bool { return strings.Contains(c.seen.String(), text) }) {
		c.t.Fatalf("%q was never written, but %q", text, c.written())
	}
}

// written returns what was written to the terminal.
func (c *console) written() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen.String()
}

func (c *console) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.muted = true
}

func (c *console) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.Reset()
}

func (c *console) types(keys string) {
	c.t.Helper()
	for i, part := range strings.Split(names.Replace(keys), "<esc>") {
		if i > 0 {
			part = "\x1b[27u" + part // as terminals with kitty's protocol send it
		}
		if _, err := c.far.WriteString(part); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *console) modes() unix.Termios {
	c.t.Helper()
	t, err := unix.IoctlGetTermios(int(c.near.Fd()), ioctlGetTermios)
	if err != nil {
		c.t.Fatal(err)
	}
	return *t
}

// restored fails the test unless the terminal is as it was.
func (c *console) restored(before unix.Termios) {
	c.t.Helper()
	if diff := cmp.Diff(before, c.modes()); diff != "" {
		c.t.Errorf("modes of the terminal (-before +after):\n%s", diff)
	}
	c.sees(pasteOff)
}

func (c *console) editor(o Options) *Editor {
	o.In, o.Out = c.near, c.near
	e := New(o)
	c.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return e
}

type read struct {
	text string
	err  error
}

// read reads in the background, and returns when the editor has the terminal.
func (c *console) read(ctx context.Context, e *Editor, p Prompt, initial string) <-chan read {
	c.t.Helper()
	c.forget()
	done := make(chan read, 1)
	go func() { // ends with the text, or when the editor is closed
		text, err := e.Read(ctx, p, initial)
		done <- read{text, err}
	}()
	c.sees(keysOn)
	return done
}

func (c *console) gets(done <-chan read, want string, wantErr error) {
	c.t.Helper()
	select {
	case got := <-done:
		if got.text != want || !errors.Is(got.err, wantErr) || wantErr == nil && got.err != nil {
			c.t.Errorf("got %q, %v, want %q, %v", got.text, got.err, want, wantErr)
		}
	case <-time.After(patience):
		c.t.Fatalf("no text was read, but %q was written", c.written())
	}
}

// TestMain is also the program that tests kill, stop and torment.
func TestMain(m *testing.M) {
	switch os.Getenv("LINE_TEST_PROGRAM") {
	case "":
		ptytest.ObeySignals()
		os.Exit(m.Run())
	case "shell":
		shell()
	default:
		os.Exit(program(os.Getenv("LINE_TEST_PROGRAM")))
	}
}

// program reads until the text "quit".
func program(kind string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Ignore(syscall.SIGQUIT, syscall.SIGINT) // between two texts
	e := New(Options{In: os.Stdin, Out: os.Stdout, Vi: kind == "vi", Complete: func(text string) Completion {
		if text == "panic" {
			panic("as requested")
		}
		return dotCommands(text)
	}})
	defer func() { _ = e.Close() }()
	for {
		text, err := e.Read(ctx, Prompt{Left: "m)> ", Right: "12%"}, "")
		switch {
		case ctx.Err() != nil:
			return 3
		case text == "quit":
			return 0
		case text == "work":
			w, err := e.Watch(Ahead{})
			if err != nil {
				return 4
			}
			_, _ = io.WriteString(os.Stdout, "working\r\n")
			<-ctx.Done()
			w.Stop()
			return 3
		case errors.Is(err, ErrInterrupt), errors.Is(err, io.EOF), err == nil:
		default:
			return 5
		}
	}
}

// shell runs the program as a job, and reports each change of its state on file 3.
func shell() {
	reports := os.NewFile(3, "reports")
	self, _ := os.Executable()
	signal.Ignore(syscall.SIGTTOU, syscall.SIGTTIN)
	p, err := os.StartProcess(self, []string{self}, &os.ProcAttr{
		Env: []string{"LINE_TEST_PROGRAM=" + os.Getenv("LINE_TEST_JOB")}, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0},
	})
	if err != nil {
		_, _ = io.WriteString(reports, err.Error()+"\n")
		return
	}
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(p.Pid, &status, unix.WUNTRACED, nil); err != nil {
			return
		}
		if !status.Stopped() {
			return
		}
		_, _ = io.WriteString(reports, "stopped\n")
	}
}

// start runs this test program in the terminal. A shell runs job.
func (c *console) start(kind, job string, extra ...*os.File) *exec.Cmd {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "LINE_TEST_PROGRAM="+kind, "LINE_TEST_JOB="+job)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = c.near, c.near, c.near, extra
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}
