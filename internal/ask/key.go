package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"
	"github.com/muesli/cancelreader"
)

// Keys that terminals send.
const (
	keyInterrupt = 0x03
	keyEnd       = 0x04
	keyBackspace = 0x08
	keyErase     = 0x15
	keyEscape    = 0x1b
	keyDelete    = 0x7f
)

// Key prints prompt, waits until one of the keys is pressed and returns it. It does not
// wait for Enter, which stands for the first of the keys. Other keys do nothing. The
// chosen key is shown and the line ended. Letters' case does not matter. The errors are
// those of [Terminal.Ask].
func (t *Terminal) Key(ctx context.Context, prompt, keys string) (rune, error) {
	if err := t.turn.take(ctx); err != nil {
		return 0, err
	}
	defer t.turn.give()
	in, out, done, err := t.open()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer done()
	chosen := rune(0)
	err = readKeys(ctx, in, out, prompt, func(r rune) bool {
		if r == '\r' || r == '\n' {
			r, _ = utf8.DecodeRuneInString(keys)
		}
		if i := strings.Index(strings.ToLower(keys), strings.ToLower(string(r))); i >= 0 {
			chosen, _ = utf8.DecodeRuneInString(keys[i:])
		}
		return chosen == 0
	})
	shown := "\n"
	if chosen != 0 {
		shown = string(chosen) + shown
	}
	if _, werr := io.WriteString(out, shown); err == nil {
		err = werr
	}
	return chosen, err
}

// readSecret prints prompt and reads a line that is not shown.
func readSecret(ctx context.Context, tty *os.File, out io.Writer, prompt string) (string, error) {
	var line []rune
	err := readKeys(ctx, tty, out, prompt, func(r rune) bool {
		switch r {
		case '\r', '\n':
			return false
		case keyBackspace, keyDelete:
			line = line[:max(len(line)-1, 0)]
		case keyErase:
			line = nil
		default:
			if r >= ' ' && len(line) < maxLine {
				line = append(line, r)
			}
		}
		return true
	})
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(out, "\n")
	return string(line), err
}

// readKeys prints prompt and passes typed keys to press, until that returns false.
// Ctrl-C is [context.Canceled], Ctrl-D io.EOF. Keys that send several characters, such
// as the arrows, are left out.
func readKeys(ctx context.Context, tty *os.File, out io.Writer, prompt string, press func(rune) bool) error {
	// Input that is typed as soon as the prompt appears has to be read as keys
	// already.
	state, err := term.MakeRaw(tty.Fd())
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(tty.Fd(), state) }()
	if _, err := io.WriteString(out, strings.ReplaceAll(prompt, "\n", "\r\n")); err != nil {
		return err
	}
	r, err := cancelreader.NewReader(tty)
	if err != nil {
		return err
	}
	defer r.Close()
	notified := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(notified)
		r.Cancel()
	})
	defer func() {
		if !stop() {
			<-notified
		}
	}()
	buf, n := make([]byte, 256), 0
	for {
		got, err := r.Read(buf[n:])
		switch {
		case errors.Is(err, cancelreader.ErrCanceled):
			return ctx.Err()
		case err != nil:
			return err
		}
		typed := buf[:n+got]
		for len(typed) > 0 && utf8.FullRune(typed) {
			key, size := utf8.DecodeRune(typed)
			typed = typed[size:]
			switch key {
			case keyInterrupt:
				return context.Canceled
			case keyEnd:
				return io.EOF
			case keyEscape:
				typed = afterSequence(typed)
			default:
				if !press(key) {
					return nil
				}
			}
		}
		n = copy(buf, typed)
	}
}

// afterSequence returns what follows the rest of an escape sequence, which comes in the
// same read as the escape.
func afterSequence(typed []byte) []byte {
	if len(typed) == 0 || typed[0] != '[' && typed[0] != 'O' {
		return typed
	}
	for i, c := range typed[1:] {
		if c >= '@' && c <= '~' {
			return typed[i+2:]
		}
	}
	return nil
}
