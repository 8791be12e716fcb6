package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"loki/internal/base/text"
)

// TerminalOptions configures a [Terminal]. The zero value asks the user at the
// controlling terminal of the process.
type TerminalOptions struct {
	In  *os.File // read for answers if it is a terminal; nil means standard input
	Out *os.File // drawn on if it is a terminal; nil means standard error

	// TTY opens the controlling terminal, which replaces an In or Out that is not a
	// terminal. Nil means /dev/tty, or CONIN$ and CONOUT$ on Windows.
	TTY func() (in, out *os.File, err error)

	// Getenv is where NO_COLOR, TERM and other variables about the terminal are read. Nil means os.Getenv.
	Getenv func(string) string

	// Keep is passed what was typed before a question was shown, after its answer, and when its keys did not count yet, as it
	// came from the terminal. Late means that the question was there, so that Enter in it, and in what is typed on without a
	// pause, is not meant for who reads next. Nil drops it. It is called during Ask and Key only.
	Keep func(typed []byte, late bool)

	// Render lays a question's text out for width columns, for example as Markdown. Nil
	// wraps it at words. It is not used in plain mode.
	Render func(text string, width int) string
}

// Terminal asks a person at a terminal. The text of a question is printed, so that
// even a long one can be scrolled back to. Below it a list or a text field is drawn,
// which the answer replaces. Nothing is written to standard output.
//
// What was typed before a question was on the screen never answers it. A question is shown when no key was pressed for a
// moment, so that the second half of a double press does not answer the next one. One that grants something is answered by
// a key only when none was pressed for a while after it was shown, and none that types a text follows it.
//
// With NO_COLOR, TERM=dumb or no TERM, for a screen reader or a log, it is plain lines
// instead: options have numbers, and the answer is typed.
type Terminal struct {
	turn turns
	opts TerminalOptions
	last time.Time // when a question was answered; belongs to the caller whose turn it is
}

// NewTerminal returns an asker for a terminal. Each question checks whether a
// terminal exists.
func NewTerminal(opts TerminalOptions) *Terminal {
	if opts.In == nil {
		opts.In = os.Stdin
	}
	if opts.Out == nil {
		opts.Out = os.Stderr
	}
	if opts.TTY == nil {
		opts.TTY = openTTY
	}
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	return &Terminal{turn: newTurns(), opts: opts}
}

// Ask implements [Asker]. The human's Ctrl-C is [context.Canceled]; closing the input
// of a plain prompt (Ctrl-D) is [ErrUnavailable].
func (t *Terminal) Ask(ctx context.Context, q Question) (string, error) {
	if err := t.turn.take(ctx); err != nil {
		return "", q.wrap(err)
	}
	defer t.turn.give()
	in, out, done, err := t.open()
	if err != nil {
		return "", q.wrap(fmt.Errorf("%w: %w", ErrUnavailable, err))
	}
	defer done()
	answer, err := t.ask(ctx, &q, in, out)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", q.wrap(err)
	}
	return answer, nil
}

func (t *Terminal) ask(ctx context.Context, q *Question, in, out *os.File) (string, error) {
	width, rows := 80, 0
	if w, h, err := term.GetSize(out.Fd()); err == nil && w > 0 {
		width, rows = w, h
	}
	// An Enter that is pressed as soon as the question appears must already be read as a key.
	k, err := openKeyboard(in, t.opts.Keep)
	if err != nil {
		return "", err
	}
	defer t.releaseKeyboard(k)
	if err := k.settle(ctx, t.quiet()); err != nil {
		return "", err
	}
	if q.grants() {
		k.wary = reading
	}
	if t.plain() {
		return askPlain(ctx, q, k, out, width, rows)
	}
	enableANSI(out)
	text := foldEmptyLines(safe(q.Text))
	if t.opts.Render != nil {
		text = t.opts.Render(text, width)
	} else {
		text = strings.TrimPrefix(paintText("? "+text, width), "? ") // the heading ends with that mark
	}
	lines := strings.Split(heading(q)+strings.Trim(text, "\n"), "\n")
	text = strings.Join(lines, "\n") + "\n"
	// What a terminal takes at once appears together with the list or field. The question is there when all of it is.
	if start := len(text) - atOnce; start > 0 {
		start += strings.IndexByte(text[start:], '\n') + 1
		if _, err := io.WriteString(out, strings.ReplaceAll(text[:start], "\n", "\r\n")); err != nil {
			return "", err
		}
		text = text[start:]
	}
	answer, single, err := askWidget(ctx, q, k, out, t.environ(), text, screen{width, rows, lines, q.begins(width, lines)})
	if err == nil {
		err = k.finish(ctx, single)
	}
	return answer, err
}

// atOnce is how many bytes of a question are written together with what is below it.
const atOnce = 2 << 10

// quiet returns how long no key may be pressed before the next question.
func (t *Terminal) quiet() time.Duration { return pause - time.Since(t.last) }

// releaseKeyboard gives the keyboard of a question back.
func (t *Terminal) releaseKeyboard(k *keyboard) {
	k.close()
	t.last = time.Now()
}

// environ returns the variables that describe the terminal.
func (t *Terminal) environ() (environ []string) {
	for _, name := range []string{"TERM", "TERM_PROGRAM", "COLORTERM", "CLICOLOR", "CLICOLOR_FORCE", "NO_COLOR", "SSH_TTY", "TMUX", "WT_SESSION"} {
		if value := t.opts.Getenv(name); value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}

// heading returns the text before a question: a line with its source, or only a mark.
func heading(q *Question) string {
	const cyan, bold, faint, reset = "\x1b[36m", "\x1b[1m", "\x1b[2m", "\x1b[0m"
	mark := cyan + bold + "?" + reset + " "
	if s := q.source(); s != "" {
		return mark + faint + safeLine(s) + reset + "\n"
	}
	return mark
}

// plain reports whether output is plain lines.
func (t *Terminal) plain() bool {
	switch t.opts.Getenv("TERM") {
	case "dumb":
		return true
	case "":
		if !ansiWithoutTerm {
			return true
		}
	}
	switch t.opts.Getenv("NO_COLOR") {
	case "", "0", "false":
		return false
	}
	return true
}

// open returns the files to read from and write to; done closes those it opened.
func (t *Terminal) open() (in, out *os.File, done func(), err error) {
	in, out, done = t.opts.In, t.opts.Out, func() {}
	inOK, outOK := term.IsTerminal(in.Fd()), term.IsTerminal(out.Fd())
	if inOK && outOK {
		return in, out, done, nil
	}
	ttyIn, ttyOut, err := t.opts.TTY()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("there is no terminal: %w", err)
	}
	done = func() { _ = errors.Join(ttyIn.Close(), ttyOut.Close()) }
	if !inOK {
		in = ttyIn
	}
	if !outOK {
		out = ttyOut
	}
	return in, out, done, nil
}

// begins returns the first lines of what decides, or of all lines of the question.
func (q *Question) begins(width int, lines []string) []string {
	if q.Matter != "" {
		lines = strings.Split(paintText(foldEmptyLines(safe(q.Matter)), width), "\n")
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
	}
	return lines[:min(beginning, len(lines))]
}

var (
	indentation = text.Regexp(`^ {1,8}(\d+  )?`)
	manyBlanks  = text.Regexp(`[ \t]{21,}`)
)

// wrapText returns a text in lines of a width. What is indented, with or without a number, stays so when it is wrapped: it could look like
// a line of another origin. Many blanks are counted.
func wrapText(s string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		n := min(len(indentation().FindString(line)), width/2)
		rest := manyBlanks().ReplaceAllStringFunc(line[n:], func(blanks string) string { return fmt.Sprintf(" (%d blanks) ", len(blanks)) })
		rest = ansi.Wrap(strings.ReplaceAll(rest, "\t", "    "), max(width-n, 1), "")
		lines = append(lines, line[:n]+strings.ReplaceAll(rest, "\n", "\n"+strings.Repeat(" ", n)))
	}
	return strings.Join(lines, "\n")
}

// paintText is wrapped, with the lines of diffs in color.
func paintText(s string, width int) string {
	var diff text.DiffLines
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		kind := diff.Kind(line)
		for part := range strings.SplitSeq(wrapText(line, width), "\n") {
			lines = append(lines, text.PaintDiffLine(kind, part))
		}
	}
	return strings.Join(lines, "\n")
}

// foldEmptyLines returns a text with one line in place of several empty ones: these could push what is before them off the screen.
func foldEmptyLines(s string) string {
	const most = 2
	var lines []string
	empty := 0
	for line := range strings.SplitSeq(s+"\n.", "\n") { // the last one ends the empty ones before it
		if strings.TrimSpace(line) == "" {
			empty++
			continue
		}
		if empty <= most {
			lines = append(lines, slices.Repeat([]string{""}, empty)...)
		} else {
			lines = append(lines, fmt.Sprintf("(%d empty lines)", empty))
		}
		lines, empty = append(lines, line), 0
	}
	return strings.Join(lines[:len(lines)-1], "\n")
}

// safe returns s, which may come from a model, without characters that control
// the terminal or change the order of the text.
func safe(s string) string { return text.Printable(ansi.Strip(s)) }

// safeLine is [safe] for a text that has to stay on one line.
func safeLine(s string) string {
	return strings.Join(strings.Fields(safe(s)), " ")
}
