package ask

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/term"
)

const (
	// pause is how long no key may have been pressed before a question is shown. It is longer than the
	// time between the two halves of a double press, and shorter than a person needs to read a question.
	pause = 200 * time.Millisecond
	// typing is how long no key may have been pressed before a question is shown if the user was typing before it. It is longer
	// than the time between two keys of a sentence.
	typing = 500 * time.Millisecond
	// reading is how long no key may be pressed after a question that grants something was shown before a key answers it. It
	// is longer than the time between two keys of a slow typist, so that the rest of a sentence answers nothing.
	reading = 750 * time.Millisecond

	// hesitation is how long no key may be pressed after a letter or digit before that is an answer without Enter: until then it
	// may be the start of a text.
	hesitation = 300 * time.Millisecond

	// moment is how long the terminal's input is looked at for what was typed before.
	moment = 5 * time.Millisecond

	// escapeWait and replyWait are how long the rest of a key's sequence, and of a terminal's reply, may take.
	escapeWait = 50 * time.Millisecond
	replyWait  = time.Second

	pasteBegin, pasteEnd = "\x1b[200~", "\x1b[201~"
)

// keyboard reads the keys of a terminal, which it keeps in raw mode. All questions read from one; only the lines of a plain
// prompt are edited by the terminal itself. A keyboard is for one goroutine at a time.
type keyboard struct {
	tty   *os.File
	state *term.State
	typed lines // its rest is what was typed and not decoded yet
	stale int   // how many bytes at the start of the rest were typed before the question was shown
	keep  func(typed []byte, late bool)
	late  bool          // a question that grants something was shown, and what is typed on may belong to it
	wary  time.Duration // how long no key may be pressed before one answers; zero if each does
	calm  time.Time     // when keys begin to count if none is pressed until then; zero if they count
	alone time.Time     // when the last key is an answer if none is pressed until then; zero if it is none
	aside typedOn       // what was late
	dec   uv.EventDecoder
}

// openKeyboard sets the terminal to raw mode. What answers no question is passed to keep, unless that is nil.
func openKeyboard(tty *os.File, keep func(typed []byte, late bool)) (*keyboard, error) {
	state, err := term.MakeRaw(tty.Fd())
	if err != nil {
		return nil, err
	}
	if keep == nil {
		keep = func([]byte, bool) {}
	}
	return &keyboard{tty: tty, state: state, typed: lines{r: tty}, keep: keep}, nil
}

// close gives the terminal back as it was found.
func (k *keyboard) close() {
	if len(k.typed.rest) > 0 || k.late {
		k.keep(k.typed.rest, k.late)
	}
	_ = term.Restore(k.tty.Fd(), k.state)
}

// read waits until something is typed, ctx ends, or the limit passes; zero means no limit. It reports whether something was typed.
func (k *keyboard) read(ctx context.Context, limit time.Duration) (bool, error) {
	limited := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	before := len(k.typed.rest)
	if before > maxLine {
		return false, fmt.Errorf("more than %d bytes were typed at once", maxLine)
	}
	err := k.typed.read(limited)
	if limited.Err() != nil && ctx.Err() == nil && len(k.typed.rest) == before && waiting(k.tty) {
		err = k.typed.read(ctx) // the limit passed while this process was not running
	}
	switch {
	case len(k.typed.rest) > before:
		return true, nil
	case err == nil:
		return false, k.typed.end
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	return false, nil
}

// settle waits until no key was pressed for the given time, or for a longer one if the user is typing, and drops what was typed
// until then. Ctrl-C is [context.Canceled].
func (k *keyboard) settle(ctx context.Context, quiet time.Duration) error {
	wait := max(quiet, moment)
	typed, err := k.read(ctx, moment) // what was typed before
	if err != nil {
		return err
	}
	if typed || len(k.typed.rest) > 0 {
		wait = typing
	}
	for ; ; wait = typing {
		if err := k.drop(); err != nil {
			return err
		}
		if typed, err := k.read(ctx, wait); err != nil || !typed {
			k.drain(len(k.typed.rest)) // a sequence that has lasted so long is not finished any more
			return err
		}
	}
}

// markShown marks the moment at which a question appears: it drops what was typed before. Of a sequence that has begun, the
// rest is dropped when it arrives.
func (k *keyboard) markShown(ctx context.Context) error {
	for {
		if err := k.drop(); err != nil {
			return err
		}
		if typed, err := k.read(ctx, moment); err != nil || !typed {
			k.stale, k.late = len(k.typed.rest), k.wary > 0
			k.beWary()
			return err
		}
	}
}

// beWary makes keys that could answer count only after a while without such a key.
func (k *keyboard) beWary() {
	if k.wary > 0 {
		k.calm = time.Now().Add(k.wary)
	}
}

// await waits until keys count, and drops the ones that do not.
func (k *keyboard) await(ctx context.Context) error {
	for !k.calm.IsZero() {
		event, err := k.next(ctx)
		if err != nil {
			return err
		}
		switch eventRune(event) {
		case keyInterrupt:
			return context.Canceled
		case keyEnd:
			return io.EOF
		}
	}
	return nil
}

// drop drops the keys that were read.
func (k *keyboard) drop() error {
	for {
		n := unit(k.typed.rest)
		if n == 0 {
			return nil
		}
		if k.typed.rest[0] == keyInterrupt {
			k.drain(len(k.typed.rest))
			return context.Canceled
		}
		k.drain(n)
	}
}

// drain keeps n bytes for the program that reads the terminal next, if there is one.
func (k *keyboard) drain(n int) {
	if dropped := k.typed.rest[:n]; k.late {
		k.putAside(dropped)
	} else if n > 0 {
		k.keep(dropped, false)
	}
	k.typed.rest = k.typed.rest[n:]
	k.stale = 0
}

// putAside keeps a unit that was typed late if it belongs to a text.
func (k *keyboard) putAside(unit []byte) {
	if k.aside.add(unit); k.aside.text {
		k.keep(k.aside.typed, true)
		k.aside.typed = nil
	}
}

// typedOn is what was typed at a question, but not for it. It is a text if it has two different letters or was pasted; before
// that, it is a key that was pressed too early.
type typedOn struct {
	typed  []byte
	letter rune // the first one, in lower case
	text   bool
}

func (t *typedOn) add(unit []byte) {
	t.typed = append(t.typed, unit...)
	r, _ := utf8.DecodeRune(unit)
	switch r = unicode.ToLower(r); {
	case bytes.HasPrefix(unit, []byte(pasteBegin)):
		t.text = true
	case !unicode.IsLetter(r):
	case t.letter == 0:
		t.letter = r
	case t.letter != r:
		t.text = true
	}
}

// counts is the event that keys count from now on, and hesitated that no key has followed one that answers alone.
type (
	counts    struct{}
	hesitated struct{}
)

// next returns the next key, paste or reply of the terminal, [counts] or [hesitated]. Ctrl-C is a key. Until keys count, keys that
// could answer are dropped. The error is that of ctx, or io.EOF if the terminal is gone.
func (k *keyboard) next(ctx context.Context) (uv.Event, error) {
	for {
		rest := k.typed.rest
		n := unit(rest)
		if n == 0 {
			limit := time.Duration(0)
			switch {
			case len(rest) > 2:
				limit = replyWait
			case len(rest) > 0:
				limit = escapeWait
			case !k.calm.IsZero():
				limit = max(time.Until(k.calm), 1)
			case !k.alone.IsZero():
				limit = max(time.Until(k.alone), 1)
			}
			typed, err := k.read(ctx, limit)
			if err != nil {
				return nil, err
			}
			if typed {
				continue
			}
			if len(rest) == 0 && !k.alone.IsZero() {
				k.alone = time.Time{}
				return hesitated{}, nil
			}
			if len(rest) == 0 {
				k.calm = time.Time{}
				return counts{}, nil
			}
			if n = len(rest); n > 2 && !bytes.HasPrefix(rest, []byte(pasteBegin)) {
				k.typed.rest = nil // a reply that was cut off
				continue
			}
		}
		if k.stale > 0 {
			k.drain(n)
			continue
		}
		event := k.decode(rest[:n])
		if !k.calm.IsZero() && answers(event) {
			k.drain(n)
			k.beWary()
			continue
		}
		k.typed.rest = rest[n:]
		if eventRune(event) == keyInterrupt {
			k.late = false // what is typed now is typed anew
		}
		switch event.(type) {
		case uv.KeyPressEvent, uv.PasteEvent:
			k.alone = time.Time{}
		}
		if event != nil {
			return event, nil
		}
	}
}

// decode returns what a unit of typed bytes is, nil for nothing.
func (k *keyboard) decode(unit []byte) uv.Event {
	if text, ok := strings.CutPrefix(string(unit), pasteBegin); ok {
		return uv.PasteEvent{Content: strings.ToValidUTF8(strings.TrimSuffix(text, pasteEnd), "\uFFFD")}
	}
	_, event := k.dec.Decode(unit)
	return event
}

// eventText returns what a key or paste types, nil if that is nothing.
func eventText(event uv.Event) []byte {
	switch event := event.(type) {
	case uv.KeyPressEvent:
		return []byte(event.Text)
	case uv.PasteEvent:
		return []byte(pasteBegin + event.Content + pasteEnd)
	}
	return nil
}

// answers reports whether a key or paste could answer a question.
func answers(event uv.Event) bool {
	switch eventRune(event) {
	case 0:
		_, pasted := event.(uv.PasteEvent)
		return pasted
	case keyInterrupt, keyEnd:
		return false
	}
	return true
}

// unit returns the length of the first key, paste or reply in what was typed, 0 if that is not complete.
func unit(typed []byte) int {
	if len(typed) < 2 || typed[0] != keyEscape {
		if len(typed) == 0 || typed[0] == keyEscape || !utf8.FullRune(typed) {
			return 0
		}
		_, n := utf8.DecodeRune(typed)
		return n
	}
	switch typed[1] {
	case '[':
		if bytes.HasPrefix(typed, []byte(pasteBegin)) {
			if i := bytes.Index(typed, []byte(pasteEnd)); i >= 0 {
				return i + len(pasteEnd)
			}
			return 0
		}
		for i, c := range typed[2:] {
			if c < ' ' || c >= '@' && c <= '~' {
				return i + 3
			}
		}
		return 0
	case 'O':
		if len(typed) < 3 {
			return 0
		}
		return 3
	case ']', 'P', '_', '^', 'X':
		for i, c := range typed[2:] {
			switch {
			case c == '\a':
				return i + 3
			case c == '\\' && typed[i+1] == keyEscape && i > 0:
				return i + 3
			}
		}
		return 0
	}
	if n := unit(typed[1:]); n > 0 {
		return n + 1
	}
	return 0
}

// eventRune returns the character of a key, 0 for one that has none. Enter is '\r'.
func eventRune(event uv.Event) rune {
	key, ok := event.(uv.KeyPressEvent)
	switch {
	case !ok:
		return 0
	case key.Code == uv.KeyEnter || key.Code == 'j' && key.Mod == uv.ModCtrl:
		return '\r'
	case key.Mod == uv.ModCtrl && key.Code == 'c':
		return keyInterrupt
	case key.Mod == uv.ModCtrl && key.Code == 'd':
		return keyEnd
	case key.Mod == uv.ModCtrl && key.Code == 'u':
		return keyErase
	case key.Code == uv.KeyBackspace || key.Mod == uv.ModCtrl && key.Code == 'h':
		return keyDelete
	case key.Text == "" || key.Mod&^uv.ModShift != 0:
		return 0
	}
	r, _ := utf8.DecodeRuneInString(key.Text)
	return r
}

// Characters that keys send.
const (
	keyInterrupt = 0x03
	keyEnd       = 0x04
	keyErase     = 0x15
	keyEscape    = 0x1b
	keyDelete    = 0x7f
)

// Key prints prompt, waits until one of the keys is pressed and returns it, without waiting for Enter, which means the first of
// the keys. Keys count from when none was pressed for a while; then the colon at the end of the prompt is printed, and what was
// typed before is dropped. The chosen key is shown and the line ended. After another key, a list of the keys is printed and the
// prompt repeated. Letters' case does not matter. Ctrl-D is io.EOF; the other errors are those of [Terminal.Ask].
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
	k, err := openKeyboard(in, t.opts.Keep)
	if err != nil {
		return 0, err
	}
	defer t.releaseKeyboard(k)
	k.wary = reading
	if !t.plain() {
		prompt = "\x1b[?2004h" + prompt // pasted text is marked
		defer func() { _, _ = io.WriteString(out, "\x1b[?2004l") }()
	}
	var chosen, typed rune
	err = k.settle(ctx, t.quiet())
	for hint := ""; err == nil && chosen == 0; hint = "\n" + keyNames(keys) + "\n" {
		chosen, typed, err = k.choose(ctx, out, hint+prompt, keys)
	}
	shown := "\r\n"
	if chosen > ' ' {
		shown = string(chosen) + shown
	}
	if _, werr := io.WriteString(out, shown); err == nil {
		err = werr
	}
	if err == nil {
		err = k.finish(ctx, typed != '\r')
	}
	if err != nil {
		return 0, err
	}
	return chosen, nil
}

// choose prints the prompt and returns which of the keys is chosen next, zero for another one, and the character that was typed.
func (k *keyboard) choose(ctx context.Context, out io.Writer, prompt, keys string) (chosen, typed rune, err error) {
	text := strings.TrimRight(prompt, ": ")
	if err := k.show(ctx, out, text); err != nil {
		return 0, 0, err
	}
	if err := k.await(ctx); err != nil {
		return 0, 0, err
	}
	if _, err := io.WriteString(out, prompt[len(text):]); err != nil {
		return 0, 0, err
	}
	for {
		event, err := k.next(ctx)
		if err != nil {
			return 0, 0, err
		}
		if _, pasted := event.(uv.PasteEvent); pasted {
			return 0, 0, nil
		}
		typed = eventRune(event)
		r := typed
		switch r {
		case 0:
			continue
		case keyInterrupt:
			return 0, 0, context.Canceled
		case keyEnd:
			return 0, 0, io.EOF
		case '\r':
			r, _ = utf8.DecodeRuneInString(keys)
		}
		i := strings.Index(strings.ToLower(keys), strings.ToLower(string(r)))
		if i < 0 {
			return 0, typed, nil
		}
		chosen, _ = utf8.DecodeRuneInString(keys[i:])
		if typed == '\r' {
			return chosen, typed, nil
		}
		return k.confirmKey(ctx, chosen, typed)
	}
}

// confirmKey waits whether the key that was typed is alone. If it is the start of a text, nothing is chosen.
func (k *keyboard) confirmKey(ctx context.Context, key, typed rune) (rune, rune, error) {
	k.alone = time.Now().Add(hesitation)
	for {
		event, err := k.next(ctx)
		if err != nil {
			return 0, 0, err
		}
		if _, ok := event.(hesitated); ok {
			return key, typed, nil
		}
		switch r := eventRune(event); {
		case r == keyInterrupt:
			return 0, 0, context.Canceled
		case r == keyEnd:
			return 0, 0, io.EOF
		case r == '\r':
			return key, r, nil
		case answers(event):
			k.putAside([]byte(string(typed)))
			k.putAside(eventText(event))
			return 0, 0, nil
		}
	}
}

// keyNames names the keys that are not Enter.
func keyNames(keys string) string {
	return "Press one of these keys: " + strings.Join(strings.Split(strings.TrimPrefix(keys, "\n"), ""), ", ")
}

// show writes text at the moment at which keys begin to count.
func (k *keyboard) show(ctx context.Context, out io.Writer, text string) error {
	if err := k.markShown(ctx); err != nil {
		return err
	}
	_, err := io.WriteString(out, strings.ReplaceAll(text, "\n", "\r\n"))
	return err
}

// secret prints prompt and reads a line that is not shown.
func (k *keyboard) secret(ctx context.Context, out io.Writer, prompt string) (string, error) {
	if err := k.show(ctx, out, prompt); err != nil {
		return "", err
	}
	var line []rune
	for {
		event, err := k.next(ctx)
		if err != nil {
			return "", err
		}
		if paste, ok := event.(uv.PasteEvent); ok {
			line = append(line, []rune(strings.TrimRight(paste.Content, "\r\n"))...)
			continue
		}
		switch r := eventRune(event); r {
		case keyInterrupt:
			return "", context.Canceled
		case keyEnd:
			return "", io.EOF
		case '\r':
			_, err := io.WriteString(out, "\r\n")
			return string(line), err
		case keyDelete:
			line = line[:max(len(line)-1, 0)]
		case keyErase:
			line = nil
		default:
			if r >= ' ' && len(line) < maxLine {
				line = append(line, r)
			}
		}
	}
}

// finish ends a question that was answered. What follows an answer of a single key without a pause is dropped up to Enter: it is the
// rest of a word or sentence that began with that key. Ctrl-C is [context.Canceled].
func (k *keyboard) finish(ctx context.Context, single bool) error {
	if !single {
		k.late = false
		return nil
	}
	for wait := pause; ; wait = typing {
		for n := unit(k.typed.rest); n > 0; n = unit(k.typed.rest) {
			c := k.typed.rest[0]
			k.typed.rest = k.typed.rest[n:]
			switch c {
			case keyInterrupt:
				k.late = false
				return context.Canceled
			case '\r', '\n':
				k.late = false
				return nil
			}
		}
		if typed, err := k.read(ctx, wait); err != nil || !typed {
			k.typed.rest = nil
			return nil // there is an answer, even if the terminal is gone
		}
	}
}
