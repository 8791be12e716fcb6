//go:build linux || darwin

package ask

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"loki/internal/base/ptytest"
)

// TestMain runs many tests at once, unless -parallel limits them: they wait for pauses of typing, not for processors.
func TestMain(m *testing.M) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", "16") // a number is valid
	}
	os.Exit(m.Run())
}

// console is the user's side of a terminal at which an asker asks.
type console struct {
	*ptytest.Terminal
	t *testing.T
}

func newConsole(t *testing.T) *console {
	t.Helper()
	return &console{ptytest.Open(t, 60), t}
}

func (c *console) sees(text string) {
	c.t.Helper()
	c.Shows(text)
}

// seesQuestion waits until keys count for q.
func (c *console) seesQuestion(q Question, env string) {
	c.t.Helper()
	c.sees(q.Text)
	switch {
	case !q.grants():
	case env == xterm && q.Consent:
		c.sees("press ")
	case env == xterm:
		c.sees("type or")
	default:
		c.Sees(q.Text, "Number", ": ")
	}
}

func (c *console) types(keys string) {
	c.t.Helper()
	c.Types(keys)
}

func (c *console) drawn() string { return c.Drawn() }
func (c *console) raw() string   { return c.Raw() }
func (c *console) forget()       { c.Forget() }

func (c *console) asker(env ...string) *Terminal {
	return NewTerminal(TerminalOptions{
		In: c.Program, Out: c.Program,
		TTY: func() (in, out *os.File, err error) { return nil, nil, errors.New("not needed") },
		Getenv: func(name string) string {
			for _, e := range env {
				if value, ok := strings.CutPrefix(e, name+"="); ok {
					return value
				}
			}
			return ""
		},
	})
}

type outcome struct {
	answer string
	err    error
}

// ask asks q in the background.
func (c *console) ask(ctx context.Context, a Asker, q Question) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		answer, err := a.Ask(ctx, q)
		done <- outcome{answer, err}
	}()
	return done
}

func (o outcome) check(t *testing.T, want string) {
	t.Helper()
	if o.err != nil || o.answer != want {
		t.Errorf("got %q, %v, want %q", o.answer, o.err, want)
	}
}

const (
	down  = "\x1b[B"
	enter = "\r"
	ctrlC = "\x03"
	ctrlD = "\x04"
	esc   = "\x1b"
)

const xterm = "TERM=xterm-256color"

func approval() Question {
	return Question{Kind: Choice, Node: "approve", Text: "Approve?", Options: []string{"yes", "no"}}
}

func TestTerminalChoice(t *testing.T) {
	withDefault := func(answer string) Question {
		q := approval()
		q.Default, q.HasDefault = answer, true
		return q
	}
	for _, tt := range []struct {
		name, keys string
		q          Question
		want       string
	}{
		{"first", down + enter, approval(), "yes"},
		{"second", down + down + enter, approval(), "no"},
		{"default", enter, withDefault("no"), "no"},
		{"default_is_no_option", enter, withDefault("later"), "later"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			done := c.ask(t.Context(), c.asker(xterm), tt.q)
			c.sees("to choose")
			c.types(tt.keys)
			(<-done).check(t, tt.want)
			c.sees("❯ " + tt.want)
			for _, want := range []string{"? approve", "Approve?", "Something else…"} {
				if !strings.Contains(c.drawn(), want) {
					t.Errorf("%q was not drawn, but\n%s", want, c.drawn())
				}
			}
		})
	}
}

func TestTerminalOwnAnswer(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	done := c.ask(t.Context(), c.asker(xterm), approval())
	c.sees("to choose")
	c.types(down + down + down + enter)
	c.sees("back")
	c.forget()
	c.types(esc) // changes their mind
	c.sees("Something else…")
	c.forget()
	c.types(enter)
	c.sees("back")
	c.types("perhaps" + enter)
	(<-done).check(t, "perhaps")
}

func TestTerminalText(t *testing.T) {
	q := Question{Kind: Text, Node: "term", Text: "Search for?", Default: "last", HasDefault: true, Validate: atLeast(3)}
	t.Run("default", func(t *testing.T) {
		t.Parallel()
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.sees("submit")
		if !strings.Contains(c.drawn(), "last (default)") {
			t.Errorf("the default is not shown:\n%s", c.drawn())
		}
		c.types(enter)
		(<-done).check(t, "last")
	})
	t.Run("asked_again", func(t *testing.T) {
		t.Parallel()
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.sees("submit")
		c.types("ab" + enter)
		c.sees("len(input) >= 3 does not hold")
		c.types("c" + enter)
		(<-done).check(t, "abc")
	})
	t.Run("several_lines", func(t *testing.T) {
		t.Parallel()
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker(xterm), q)
		c.sees("submit")
		c.types("one\ntwo" + enter) // a line feed is Ctrl-J
		(<-done).check(t, "one\ntwo")
	})
}

// TestTerminalIsReadyWithItsQuestion answers while the question's text is being printed, which does not count, and as soon as
// its last line is there, which does.
func TestTerminalIsReadyWithItsQuestion(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	far, near, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	a := c.asker(xterm)
	a.opts.Out = near
	q := Question{Kind: Line, Text: strings.Repeat("more than a terminal holds\n", 10_000) + "Name?"}
	done := c.ask(t.Context(), a, q)
	if _, err := far.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	c.types("early" + enter) // the rest of the text waits to be read
	for shown, buf := "", make([]byte, 1000); !strings.Contains(shown, "Name?"); {
		n, err := far.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		shown = shown[max(len(shown)-100, 0):] + string(buf[:n])
	}
	c.types("melissa" + enter)
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, far) // ends when near is closed
	}()
	(<-done).check(t, "melissa")
	_ = near.Close()
	<-read
	_ = far.Close()
}

func TestTerminalChoiceWithoutOptions(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	done := c.ask(t.Context(), c.asker(xterm), Question{Kind: Choice, Text: "What now?"})
	c.sees("new line • enter submit")
	c.types("own" + enter)
	(<-done).check(t, "own")
}

func TestTerminalShowsLongQuestionsWhole(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	q := approval()
	var lines []string
	for i := range 100 {
		lines = append(lines, strings.Repeat("x", i%40)+" end of line")
	}
	q.Text = strings.Join(lines, "\n")
	done := c.ask(t.Context(), c.asker(xterm), q)
	c.sees("to choose")
	c.types("1" + enter)
	(<-done).check(t, "yes")
	if n := strings.Count(ansi.Strip(c.raw()), "end of line"); n < 100 { // the first ones are shown again
		t.Errorf("%d of 100 lines were drawn", n)
	}
}

func TestTerminalCtrlC(t *testing.T) {
	for name, keys := range map[string]string{"in_list": ctrlC, "in_text": down + down + down + enter + ctrlC} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			done := c.ask(t.Context(), c.asker(xterm), approval())
			c.sees("to choose")
			c.types(keys)
			if o := <-done; !errors.Is(o.err, context.Canceled) || o.answer != "" {
				t.Errorf("got %q, %v, want cancelled", o.answer, o.err)
			}
			c.sees("not answered")
			c.Restored()
		})
	}
}

func TestTerminalContextEnds(t *testing.T) {
	for name, env := range map[string][]string{"drawn": {xterm}, "plain": {"TERM=dumb"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			done := c.ask(ctx, c.asker(env...), approval())
			c.sees("no")
			cancel(ErrElsewhere)
			if o := <-done; !errors.Is(o.err, context.Canceled) {
				t.Errorf("got %q, %v, want cancelled", o.answer, o.err)
			}
			c.sees("answered elsewhere")
		})
	}
}

func TestTerminalAsksOneAfterTheOther(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	a := c.asker(xterm)
	first, second := approval(), Question{Kind: Text, Node: "term", Agent: "child", Depth: 1, Text: "Search for?"}
	firstDone := c.ask(t.Context(), a, first)
	c.sees("to choose")
	secondDone := c.ask(t.Context(), a, second)
	c.types("y" + enter)
	(<-firstDone).check(t, "yes")
	c.sees("? term (child)")
	c.sees("new line • enter submit")
	c.types("it" + enter)
	(<-secondDone).check(t, "it")
}

func TestTerminalPlain(t *testing.T) {
	for _, tt := range []struct {
		name, env, keys, want string
	}{
		{"dumb", "TERM=dumb", "2\n", "no"},
		{"no_term", "TERM=", "yes\n", "yes"},
		{"no_color", "NO_COLOR=1", "perhaps\n", "perhaps"},
		{"asked_again", "TERM=dumb", "\nYES\n", "yes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			env := []string{tt.env, xterm}
			done := c.ask(t.Context(), c.asker(env...), approval())
			c.sees("Number, or an answer of your own: ")
			raw := c.raw()
			c.types(tt.keys)
			(<-done).check(t, tt.want)
			want := "? approve\r\nApprove?\r\n  1) yes\r\n  2) no\r\nNumber, or an answer of your own: "
			if raw != want {
				t.Errorf("drawn\n%q\nwant\n%q", raw, want)
			}
		})
	}
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		c := newConsole(t)
		q := Question{Kind: Text, Text: "Search for?", Default: "last", HasDefault: true, Validate: atLeast(3)}
		done := c.ask(t.Context(), c.asker("TERM=dumb"), q)
		c.sees("Answer [last]: ")
		c.types("ab\n")
		c.sees("len(input) >= 3 does not hold\r\nAnswer [last]: ")
		c.types("\n")
		(<-done).check(t, "last")
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		c := newConsole(t)
		done := c.ask(t.Context(), c.asker("TERM=dumb"), approval())
		c.sees("own: ")
		c.types(ctrlD)
		if o := <-done; !errors.Is(o.err, ErrUnavailable) {
			t.Errorf("got %q, %v, want unavailable", o.answer, o.err)
		}
	})
}

func TestTerminalUsesTheControllingTerminal(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	opened := 0
	a := NewTerminal(TerminalOptions{
		In: r, Out: w,
		Getenv: func(string) string { return "dumb" },
		TTY: func() (in, out *os.File, err error) {
			opened++
			name := c.Program.Name()
			if in, err = os.OpenFile(name, os.O_RDONLY, 0); err != nil {
				return nil, nil, err
			}
			out, err = os.OpenFile(name, os.O_WRONLY, 0)
			return in, out, err
		},
	})
	done := c.ask(t.Context(), a, approval())
	c.sees("own: ")
	c.types("1\n")
	(<-done).check(t, "yes")
	if opened != 1 {
		t.Errorf("the terminal was opened %d times", opened)
	}
}

func TestTerminalWithoutOne(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	a := NewTerminal(TerminalOptions{In: r, Out: w, TTY: func() (in, out *os.File, err error) {
		return nil, nil, errors.New("no such device")
	}})
	if _, err := a.Ask(t.Context(), approval()); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no such device") {
		t.Errorf("error %v", err)
	}
}

func TestTerminalDisarmsEscapeSequences(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	q := approval()
	q.Node = "app\x1b]0;node\arove"
	q.Text = "Approve\x1b[2J\x1b]0;title\a this\x07?\r\nIt is\x9b31m safe.\x08 \u202ereversed"
	q.Options = []string{"y\x1b[31mes\nplease\u2066"}
	done := c.ask(t.Context(), c.asker("TERM=dumb"), q)
	c.sees("own: ")
	raw := c.raw()
	c.types("1\n")
	(<-done).check(t, q.Options[0]) // the answer itself is what the caller knows it as
	want := "? approve\r\nApprove this␇?\r\nIt is safe.␈ \ufffdreversed\r\n  1) yes please\ufffd\r\nNumber, or an answer of your own: "
	if raw != want {
		t.Errorf("drawn\n%q\nwant\n%q", raw, want)
	}
}

func TestTerminalRenders(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	a := c.asker(xterm)
	a.opts.Render = func(text string, width int) string {
		if width != 60 {
			t.Errorf("width %d", width)
		}
		return strings.ToUpper(text)
	}
	done := c.ask(t.Context(), a, approval())
	c.sees("to choose")
	c.types("y" + enter)
	(<-done).check(t, "yes")
	if !strings.Contains(c.drawn(), "APPROVE?") {
		t.Errorf("the text was not rendered:\n%s", c.drawn())
	}
}
