//go:build linux || darwin

package line

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var prompt = Prompt{Left: "\x1b[31mm\x1b[0m)> ", Right: "12(1.5%)"}

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name, keys, want string
		err              error
	}{
		{"enter", "hello\r", "hello", nil},
		{"interrupt", "hello\x03", "", ErrInterrupt},
		{"end", "\x04", "", io.EOF},
		{"lines", "a\nb\r", "a\nb", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newConsole(t, 80, 10)
			before := c.modes()
			e := c.editor(Options{})
			done := c.read(t.Context(), e, prompt, "")
			c.types(tt.keys)
			c.gets(done, tt.want, tt.err)
			c.restored(before)
		})
	}
}

func TestScreens(t *testing.T) {
	complete := func(text string) (c Completion) {
		c.Candidates = []Candidate{{Value: ".model", Description: "use another model, which may take a while to explain in full"}, {Value: ".macro"}}
		return c
	}
	const long = "one two three four five six seven eight nine ten eleven twelve thirteen"
	for _, tt := range []struct {
		name, keys, wide, narrow string
	}{
		{"prompt", "", `
m)> |                                                                    12(1.5%)`, `
m)> |                            12(1.5%)`},
		{"text", "hello", `
m)> hello|                                                               12(1.5%)`, `
m)> hello|                       12(1.5%)`},
		{"long", long, `
m)> one two three four five six seven eight nine ten eleven twelve thirteen|`, `
m)> one two three four five six seven ei
ght nine ten eleven twelve thirteen|`},
		{"full_row", strings.Repeat("x", 36), `
m)> xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx|                                12(1.5%)`, `
m)> xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
|`},
		{"lines", "one\n\ntwo<up><up>", `
m)> one|                                                                 12(1.5%)
...
... two`, `
m)> one|                         12(1.5%)
...
... two`},
		{"rows_go_away", "one\ntwo\nthree<c-u><bs>", `
m)> one                                                                 12(1.5%)
... two|`, `
m)> one                         12(1.5%)
... two|`},
		{"menu", ".<tab>", `
m)> .m|                                                                  12(1.5%)
.model  use another model, which may take a while to explain in full
.macro`, `
m)> .m|                          12(1.5%)
.model  use another model, which may ta…
.macro`},
		{"menu_closed", ".<tab><esc>", `
m)> .m|                                                                  12(1.5%)`, `
m)> .m|                          12(1.5%)`},
		{"search", "<c-r>log", `
(reverse-search: log) git |log                                           12(1.5%)`, `
(reverse-search: log) git |log   12(1.5%)`},
		{"failing_search", "<c-r>xyz", `
(failing reverse-search: xyz) |                                          12(1.5%)`, `
(failing reverse-search: xyz) |  12(1.5%)`},
		{"no_editor", "x<c-o>", `
m)> x|                                                                   12(1.5%)
There is no editor: set ` + "`editor`" + ` in config.yaml, or VISUAL or EDITOR.`, `
m)> x|                           12(1.5%)
There is no editor: set ` + "`editor`" + ` in con…`},
		{"tab_character", "<paste>a\tb</paste>", `
m)> a   b|                                                               12(1.5%)`, `
m)> a   b|                       12(1.5%)`},
	} {
		for columns, want := range map[int]string{80: tt.wide, 40: tt.narrow} {
			t.Run(tt.name+"/"+strconv.Itoa(columns), func(t *testing.T) {
				c := newConsole(t, columns, 12)
				h := new(History)
				for _, entry := range earlier {
					h.Add(t.Context(), entry)
				}
				e := c.editor(Options{Complete: complete, History: h})
				done := c.read(t.Context(), e, prompt, "")
				c.types(tt.keys)
				c.becomes(want)
				c.types("\x03")
				c.gets(done, "", ErrInterrupt)
			})
		}
	}
}

// TestHighScreen edits a text that has more lines than the screen.
func TestHighScreen(t *testing.T) {
	c := newConsole(t, 20, 4)
	e := c.editor(Options{})
	done := c.read(t.Context(), e, Prompt{Left: "> "}, "1\n2\n3\n4\n5\n6")
	c.becomes("... 3\n... 4\n... 5\n... 6|")
	c.types("<up><up><up><up>")
	c.becomes("... 2|\n... 3\n... 4\n... 5")
	c.types("<up>x")
	c.becomes("> 1x|\n... 2\n... 3\n... 4")
	c.forget()
	c.types("\r")
	c.gets(done, "1x\n2\n3\n4\n5\n6", nil)
	c.becomes("... 4\n... 5\n... 6\n|")
	c.sees("> 1x") // all of it can be scrolled back to
}

func TestResize(t *testing.T) {
	c := newConsole(t, 40, 10)
	e := c.editor(Options{})
	done := c.read(t.Context(), e, Prompt{Left: "> ", Right: "r"}, "hello brave new world")
	c.becomes("> hello brave new world|                r")
	c.resize(60, 10)
	c.types("!")
	c.becomes("> hello brave new world!|                                   r")
	c.resize(12, 10)
	c.types("?")
	c.becomes("> hello brav\ne new world!\n?|")
	c.types("\x03")
	c.gets(done, "", ErrInterrupt)
}

// TestUnfinishedLine begins where another program has left the cursor in the middle of a row.
func TestUnfinishedLine(t *testing.T) {
	c := newConsole(t, 20, 5)
	if _, err := c.near.WriteString("partial"); err != nil {
		t.Fatal(err)
	}
	done := c.read(t.Context(), c.editor(Options{}), Prompt{Left: "> "}, "")
	c.becomes("partial\n> |")
	c.types("<c-l>")
	c.becomes("> |")
	c.types("\x04")
	c.gets(done, "", io.EOF)
}

func TestHighlight(t *testing.T) {
	c := newConsole(t, 40, 5)
	e := c.editor(Options{Highlight: func(s string) string {
		return strings.Replace(s, ".info", "\x1b[32m.info\x1b[0m", 1)
	}})
	done := c.read(t.Context(), e, Prompt{Left: "> "}, "")
	c.types(".info role")
	c.sees("> \x1b[32m.info\x1b[0m role\x1b[0m")
	c.types("<s-left>")
	c.sees("rol\x1b[7me\x1b[0m")
	c.types("\x03")
	c.gets(done, "", ErrInterrupt)
}

func TestCursorShapes(t *testing.T) {
	c := newConsole(t, 40, 5)
	done := c.read(t.Context(), c.editor(Options{Vi: true}), Prompt{Left: "> "}, "")
	c.sees(blinkingBar)
	c.types("<esc>")
	c.sees(steadyBlock)
	c.forget()
	c.types("i")
	c.sees(blinkingBar)
	c.types("\r")
	c.gets(done, "", nil)
	c.sees(usualShape)
	done = c.read(t.Context(), c.editor(Options{}), Prompt{Left: "> "}, "")
	c.types("x<esc>\r")
	c.gets(done, "x", nil)
	if s := c.written(); strings.Contains(s, " q") {
		t.Errorf("emacs changes the shape of the cursor: %q", s)
	}
}

func TestExternalEditor(t *testing.T) {
	c := newConsole(t, 40, 5)
	before := c.modes()
	fail := false
	e := c.editor(Options{Edit: func(_ context.Context, s string) (string, error) {
		c.restored(before)
		if fail {
			return "", errors.New("vi: not found")
		}
		return s + " world\n", nil
	}})
	done := c.read(t.Context(), e, Prompt{Left: "> "}, "")
	c.types("hello<c-o>")
	c.becomes("> hello world|")
	c.types("<c-z>!")
	c.becomes("> hello!|")
	fail = true
	c.types("<c-o>")
	c.becomes("> hello!|\nvi: not found")
	c.types("\r")
	c.gets(done, "hello!", nil)
	c.restored(before)
}

// TestTypingAhead types several texts before the first is read.
func TestTypingAhead(t *testing.T) {
	c := newConsole(t, 40, 5)
	e := c.editor(Options{})
	done := c.read(t.Context(), e, Prompt{Left: "> "}, "")
	c.sees("> ")
	c.types("one\rtwo\r<paste>a\rb</paste>\r")
	for _, want := range []string{"one", "two", "a\nb"} {
		c.gets(done, want, nil)
		done = c.read(t.Context(), e, Prompt{Left: "> "}, "")
	}
	c.types("\x04")
	c.gets(done, "", io.EOF)
}

// TestTypingEarly types before the editor has the terminal, which then makes line feeds of Enter.
func TestTypingEarly(t *testing.T) {
	c := newConsole(t, 40, 5)
	c.types("early\r")
	c.sees("early\r\n") // the echo
	c.gets(c.read(t.Context(), c.editor(Options{}), Prompt{Left: "> "}, ""), "early", nil)
}

func TestWatch(t *testing.T) {
	c := newConsole(t, 40, 5)
	before := c.modes()
	e := c.editor(Options{})
	ended := make(chan rune, 8)
	w, err := e.Watch(Ahead{End: func() bool { ended <- endOfInput; return true }})
	if err != nil {
		t.Fatal(err)
	}
	c.types("next <paste>a\rb</paste>\x1b[D\x04")
	if key := <-ended; key != 4 {
		t.Errorf("got key %q", key)
	}
	if m := c.modes(); m.Lflag&unix.ISIG == 0 || m.Lflag&unix.ECHO != 0 {
		t.Error("while watching, Ctrl-C has to be a signal and keys are not shown")
	}
	resume := w.Pause()
	c.restored(before)
	c.forget()
	c.types("answer\n")
	answer := make([]byte, 64)
	if n, err := c.near.Read(answer); err != nil || string(answer[:n]) != "answer\n" {
		t.Errorf("in a pause: got %q, %v", answer[:n], err)
	}
	resume()
	resume()
	c.sees(pasteOn)
	c.types("X\r\x04")
	<-ended
	w.Stop()
	w.Stop()
	w.Pause()()
	c.restored(before)
	done := c.read(t.Context(), e, Prompt{Left: "> "}, "")
	c.gets(done, "next a\nXb", nil)
}

func TestWatchKeepsWhatIsNotTaken(t *testing.T) {
	c := newConsole(t, 40, 5)
	e := c.editor(Options{})
	ended := make(chan rune, 8)
	w, err := e.Watch(Ahead{End: func() bool { ended <- endOfInput; return false }})
	if err != nil {
		t.Fatal(err)
	}
	c.types("\x04")
	<-ended
	w.Stop()
	c.gets(c.read(t.Context(), e, Prompt{Left: "> "}, ""), "", io.EOF)
}

func TestCancel(t *testing.T) {
	c := newConsole(t, 40, 5)
	before := c.modes()
	ctx, cancel := context.WithCancel(t.Context())
	done := c.read(ctx, c.editor(Options{}), Prompt{Left: "> "}, "")
	c.sees("> ")
	cancel()
	c.gets(done, "", context.Canceled)
	c.restored(before)
}

func TestClose(t *testing.T) {
	c := newConsole(t, 40, 5)
	before := c.modes()
	e := c.editor(Options{})
	done := c.read(t.Context(), e, Prompt{Left: "> "}, "")
	c.sees("> ")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	c.restored(before)
	c.gets(done, "", ErrClosed)
	c.restored(before)
	if _, err := e.Read(t.Context(), prompt, ""); !errors.Is(err, ErrClosed) {
		t.Errorf("reading: %v", err)
	}
	if _, err := e.Watch(Ahead{}); !errors.Is(err, ErrClosed) {
		t.Errorf("watching: %v", err)
	}
}

func TestCloseWhileWatching(t *testing.T) {
	c := newConsole(t, 40, 5)
	before := c.modes()
	e := c.editor(Options{})
	w, err := e.Watch(Ahead{End: func() bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	c.restored(before)
	w.Stop()
	c.restored(before)
}

func TestNotATerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	e := New(Options{In: r, Out: w})
	if _, err := e.Read(t.Context(), prompt, ""); err == nil {
		t.Error("a pipe was taken for a terminal")
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestEnds ends the program in several ways and compares the modes of the terminal.
func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		name, keys, until string
		signal            syscall.Signal
		exit              int
	}{
		{"exit", "quit\r", "", 0, 0},
		{"panic", "panic\t", "", 0, 2},
		{"terminated", "abc", "abc", syscall.SIGTERM, 3},
		{"hung_up", "abc", "abc", syscall.SIGHUP, 3},
		{"terminated_at_work", "work\r", "working", syscall.SIGTERM, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newConsole(t, 80, 24)
			before := c.modes()
			cmd := c.start("emacs", "")
			c.sees("m)> ")
			c.types(tt.keys)
			if tt.signal != 0 {
				c.sees(tt.until)
				if err := cmd.Process.Signal(tt.signal); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != tt.exit {
				t.Errorf("got exit status %d, want %d; written was %q", got, tt.exit, c.written())
			}
			c.restored(before)
		})
	}
}

// TestStopAndContinue stops the program as a job of a shell, while it reads and while it works.
func TestStopAndContinue(t *testing.T) {
	for _, tt := range []struct {
		name, job, keys, until, key string
		signal                      syscall.Signal
	}{
		{"reading", "emacs", "half a li", "half a li", "", syscall.SIGTSTP},
		{"key_in_vi", "vi", "half a li", "half a li", "\x1a", 0},
		{"stopped_without_notice", "emacs", "half a li", "half a li", "", syscall.SIGSTOP},
		{"working", "emacs", "work\r", "working", "", syscall.SIGTSTP},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newConsole(t, 80, 24)
			before := c.modes()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd := c.start("shell", tt.job, w)
			_ = w.Close()
			c.sees("m)> ")
			c.types(tt.keys)
			c.sees(tt.until)
			group, err := unix.IoctlGetInt(int(c.far.Fd()), unix.TIOCGPGRP)
			if err != nil {
				t.Fatal(err)
			}
			c.types(tt.key)
			if tt.signal != 0 {
				if err := syscall.Kill(group, tt.signal); err != nil {
					t.Fatal(err)
				}
			}
			if report, _ := bufio.NewReader(r).ReadString('\n'); report != "stopped\n" {
				t.Fatalf("got %q", report)
			}
			if tt.signal != syscall.SIGSTOP {
				c.restored(before)
			}
			c.forget()
			if err := syscall.Kill(group, syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if tt.name == "working" {
				c.sees(pasteOn)
				_ = syscall.Kill(group, syscall.SIGTERM)
			} else {
				c.sees(tt.until)
				c.types("\x03quit\r")
			}
			_ = cmd.Wait()
			c.restored(before)
		})
	}
}

// TestRandomBytes types random bytes, with all that they do, and then ends the program.
// LOKI_RANDOM_BYTES says how many.
func TestRandomBytes(t *testing.T) {
	total := 64 << 10
	if s := os.Getenv("LOKI_RANDOM_BYTES"); s != "" {
		var err error
		if total, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	for seed, kind := range []string{"emacs", "vi"} {
		t.Run(kind, func(t *testing.T) {
			c := newConsole(t, 80, 24)
			c.mute()
			before := c.modes()
			cmd := c.start(kind, "")
			c.sees("m)> ")
			random := rand.NewChaCha8([32]byte{byte(seed)})
			chunk := make([]byte, 4096)
			for sent := 0; sent < total; sent += len(chunk) {
				_, _ = random.Read(chunk)
				if _, err := c.far.Write(chunk); err != nil {
					t.Fatal(err)
				}
				c.forget()
			}
			exited := make(chan error, 1)
			go func() { exited <- cmd.Wait() }()
			// A sequence that has no end yet takes what follows.
			for ticker := time.NewTicker(100 * time.Millisecond); ; {
				_, _ = c.far.WriteString("\x1b[201~\x03quit\r")
				select {
				case err := <-exited:
					ticker.Stop()
					if err != nil {
						t.Errorf("%v\n%s", err, c.written())
					}
					c.restored(before)
					return
				case <-ticker.C:
				}
			}
		})
	}
}

// TestAbove checks that lines which come while a text is typed appear above it.
func TestAbove(t *testing.T) {
	c := newConsole(t, 40, 10)
	before := c.modes()
	news := make(chan struct{}, 1)
	e := c.editor(Options{News: news, Above: func() {
		c.restored(before)
		_, _ = c.near.WriteString("one\ntwo\n")
	}})
	done := c.read(t.Context(), e, Prompt{Left: "a\n> ", Right: "r"}, "hello brave new world that is long enough")
	c.becomes("a                                      r\n> hello brave new world that is long eno\nugh|")
	news <- struct{}{}
	c.becomes("one\ntwo\na                                      r\n> hello brave new world that is long eno\nugh|")
	c.types("!\r")
	c.gets(done, "hello brave new world that is long enough!", nil)
	c.restored(before)
}
