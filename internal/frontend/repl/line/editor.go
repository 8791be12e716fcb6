package line

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/muesli/cancelreader"
)

// Editor reads submissions at a terminal. Read and Watch are for one goroutine at a time; Close may
// be called by any.
type Editor struct {
	opts    Options
	keys    decoder       // what was typed and not read yet
	early   int           // how many bytes will come that were typed before the terminal was taken
	burst   time.Time     // until when Enter submits nothing; each key moves it on
	closing chan struct{} // closed by Close
	draft   draft         // what was typed during a watch

	mu     sync.Mutex // guards the terminal and what follows
	use    use
	saved  *term.State // of the terminal as it was found
	closed bool
	screen screen
	shape  string // of the cursor
}

// use is what the editor does with the terminal.
type use int

const (
	unused use = iota
	reading
	watching
)

const (
	// escapeWait is how long the rest of a sequence that a terminal sends may take.
	escapeWait = 50 * time.Millisecond

	// burstTime is within which time a key belongs to the same burst of typing as the one before it.
	burstTime = 750 * time.Millisecond

	// frameTime is how often the screen is drawn while keys keep coming.
	frameTime = 16 * time.Millisecond

	// maxFinal is how many rows of a submission are shown when they do not fit on the screen.
	maxFinal = 1000

	// maxAhead is how many bytes that are typed ahead are kept.
	maxAhead = 1 << 20

	// Pasted text is marked by the terminal. Keys like Ctrl-Enter have sequences of their own, in
	// kitty's protocol or xterm's; signals and interrupts need the old ones.
	pasteOn, pasteOff = "\x1b[?2004h", "\x1b[?2004l"
	focusOn, focusOff = "\x1b[?1004h", "\x1b[?1004l"
	keysOn, keysOff   = "\x1b[>4;1m\x1b[>5u", "\x1b[<u\x1b[>4m"

	blinkingBar, steadyBlock, usualShape = "\x1b[5 q", "\x1b[2 q", "\x1b[0 q"
)

// New returns an editor. It does not touch the terminal.
func New(opts Options) *Editor {
	if opts.History == nil {
		opts.History = new(History)
	}
	return &Editor{opts: opts, keys: decoder{focus: opts.Focus}, closing: make(chan struct{})}
}

// enter takes the terminal, as it was found or after the process was stopped.
func (e *Editor) enter(u use) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	in := e.opts.In.Fd()
	fresh := e.use == unused
	if fresh {
		state, err := term.GetState(in)
		if err != nil {
			return fmt.Errorf("reading keys: the input is not a terminal: %w", err)
		}
		e.saved = state
	}
	on := pasteOn
	if u == watching {
		if err := watchMode(in); err != nil {
			return err
		}
	} else {
		if _, err := term.MakeRaw(in); err != nil {
			return err
		}
		on += keysOn
		e.shape = ""
	}
	if e.opts.Focus != nil {
		on += focusOn
	}
	e.use = u
	if fresh {
		e.early = pendingBytes(in)
	}
	_, err := io.WriteString(e.opts.Out, on)
	return err
}

// takeInput takes bytes of the terminal. Bytes that were typed before it was taken have line feeds where
// Enter was pressed. In a burst of typing that began at a question, Enter breaks the line.
func (e *Editor) takeInput(chunk []byte) {
	for i := range chunk[:min(e.early, len(chunk))] {
		if chunk[i] == '\n' {
			chunk[i] = '\r'
		}
	}
	e.early -= min(e.early, len(chunk))
	if now := time.Now(); len(chunk) > 0 && now.Before(e.burst) {
		e.burst = now.Add(burstTime)
		for i := range chunk {
			if chunk[i] == '\r' {
				chunk[i] = '\n'
			}
		}
	}
	e.keys.add(chunk)
}

// leave gives the terminal back as it was found. A frame that is not finished stays above the cursor.
func (e *Editor) leave() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.restore()
}

func (e *Editor) restore() error {
	if e.use == unused {
		return nil
	}
	e.screen.finish()
	off := pasteOff
	if e.opts.Focus != nil {
		off = focusOff + pasteOff
	}
	if e.use == reading {
		off = keysOff + off
		if e.shape != "" {
			off += usualShape
		}
	}
	e.use = unused
	e.screen.out = append(e.screen.out, off...)
	return errors.Join(e.flush(), term.Restore(e.opts.In.Fd(), e.saved))
}

// flush writes the pending output.
func (e *Editor) flush() error {
	if len(e.screen.out) == 0 {
		return nil
	}
	_, err := e.opts.Out.Write(e.screen.out)
	e.screen.out = e.screen.out[:0]
	return err
}

// Close restores the terminal, whatever the editor is doing with it, and ends a Read that is under
// way with [ErrClosed]. The error is that of the terminal or of the history's file, if the latest entry
// could not be written. Calling it again does nothing.
func (e *Editor) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	close(e.closing)
	err := e.restore()
	if herr := e.opts.History.Err(); herr != nil {
		err = errors.Join(err, fmt.Errorf("writing the history: %w", herr))
	}
	return err
}

// Read shows the prompt and initial, a text to begin with, and returns what the user submits. The
// error is [ErrInterrupt] after Ctrl-C, io.EOF after Ctrl-D on an empty text or when the terminal is
// gone, that of ctx when it ends, or [ErrClosed].
func (e *Editor) Read(ctx context.Context, p Prompt, initial string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := e.enter(reading); err != nil {
		return "", err
	}
	defer func() { _ = e.leave() }()
	if typed := e.draft.take(); initial == "" || typed == "" {
		initial += typed
	} else {
		initial += "\n" + typed
	}
	r := &reader{
		Editor: e,
		model:  newModel(&e.opts, e.opts.History.Entries(), initial),
		view:   view{prompt: p, highlight: e.opts.Highlight},
	}
	keyboard, err := listen(e.opts.In)
	if err != nil {
		return "", err
	}
	r.keyboard = keyboard
	defer func() { e.takeInput(r.keyboard.stop()) }()
	r.signals = make(chan os.Signal, 8)
	notify(r.signals)
	defer signal.Stop(r.signals)
	r.begin()
	if err := r.run(ctx); err != nil {
		return "", err
	}
	e.opts.History.Add(ctx, r.model.buf.text)
	return r.model.buf.text, nil
}

// reader is a Read that is under way.
type reader struct {
	*Editor
	model    *model
	view     view
	keyboard *keyboard
	signals  chan os.Signal
	drawn    time.Time
}

// run passes keys to the model until the user has finished the text.
func (r *reader) run(ctx context.Context) error {
	for late, dirty := false, true; ; {
		what, pressed := r.pressAll(late)
		late, dirty = false, dirty || pressed
		switch what {
		case submit, interrupt, end:
			r.final()
			return map[outcome]error{interrupt: ErrInterrupt, end: io.EOF}[what]
		case edit:
			if err := r.edit(ctx); err != nil {
				return err
			}
			continue
		case suspend:
			if err := r.suspend(true); err != nil {
				return err
			}
			continue
		case clear:
			r.lock((*screen).noteCleared)
			continue
		case cycle:
			if r.opts.Cycle != nil {
				r.view.prompt = r.opts.Cycle()
			}
			continue
		}
		if dirty && (len(r.keyboard.chunks) == 0 || time.Since(r.drawn) > frameTime) {
			r.draw()
			dirty = false
		}
		var timeout <-chan time.Time
		if r.keys.waits() {
			timeout = time.After(escapeWait)
		}
		select {
		case chunk, ok := <-r.keyboard.chunks:
			if !ok {
				r.final()
				return io.EOF
			}
			r.takeInput(chunk)
		case <-timeout:
			late = true
		case s := <-r.signals:
			if err := r.signal(s); err != nil {
				return err
			}
			dirty = true
		case <-r.opts.News:
			if err := r.above(); err != nil {
				return err
			}
			dirty = true
		case <-ctx.Done():
			r.final()
			return ctx.Err()
		case <-r.closing:
			return ErrClosed
		}
	}
}

// pressAll passes the keys that are there to the model, up to one that asks for more.
func (r *reader) pressAll(late bool) (what outcome, pressed bool) {
	for {
		k, ok := r.keys.next(late)
		if !ok {
			return goOn, pressed
		}
		pressed = true
		if what := r.model.press(k); what != goOn {
			return what, true
		}
	}
}

// signal does what a signal asks for.
func (r *reader) signal(s os.Signal) error {
	switch {
	case isStop(s):
		return r.suspend(false)
	case isContinue(s): // the process was stopped without notice
		return r.resume()
	}
	return nil // the size is asked for before each frame
}

// suspend stops the process, and with group all of its job, until the user continues it.
func (r *reader) suspend(group bool) error {
	if err := r.leave(); err != nil {
		return err
	}
	stopProcess(r.signals, group)
	return r.resume()
}

// resume takes the terminal again and begins a new place to draw at.
func (r *reader) resume() error {
	if err := r.enter(reading); err != nil {
		return err
	}
	r.begin()
	return nil
}

// above has lines printed where the text is, which is drawn below them then.
func (r *reader) above() error {
	r.mu.Lock()
	if r.use == reading {
		r.screen.redraw()
	}
	err := r.restore()
	r.mu.Unlock()
	if err != nil {
		return err
	}
	r.opts.Above()
	return r.resume()
}

// edit has the user change the text in another program.
func (r *reader) edit(ctx context.Context) error {
	if r.opts.Edit == nil {
		r.model.message = "There is no editor: set `editor` in config.yaml, or VISUAL or EDITOR."
		return nil
	}
	r.takeInput(r.keyboard.stop())
	r.mu.Lock()
	kept := r.screen
	kept.out, r.screen.rows = nil, nil // the rows stay where they are
	err := r.restore()
	r.mu.Unlock()
	if err != nil {
		return err
	}
	text, editErr := r.opts.Edit(ctx, r.model.buf.text)
	if err := r.enter(reading); err != nil {
		return err
	}
	if r.keyboard, err = listen(r.opts.In); err != nil {
		return err
	}
	r.lock(func(s *screen) {
		*s = kept
		s.redraw()
	})
	if editErr != nil {
		r.model.message = editErr.Error()
		return ctx.Err()
	}
	b := &r.model.buf
	b.begin()
	if text = strings.TrimRight(plain(text), "\n"); text != b.text {
		b.replace(0, len(b.text), text)
		b.begin()
	}
	return nil
}

// lock calls f with the screen, unless the terminal was given back.
func (r *reader) lock(f func(*screen)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.use == reading {
		f(&r.screen)
	}
}

func (r *reader) begin() {
	width, height := r.size()
	r.lock(func(s *screen) {
		s.width, s.height = width, height
		s.begin()
	})
}

// size returns the size of the terminal, or a usual one if it does not say.
func (r *reader) size() (width, height int) {
	width, height, err := term.GetSize(r.opts.Out.Fd())
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return max(width, tabStop), height
}

// draw shows the model.
func (r *reader) draw() {
	width, height := r.size()
	r.view.width, r.view.height = width, height
	if r.model.width != width {
		r.model.width = width
		if n := r.model.menu; n != nil {
			at := n.at
			r.model.setMenu(n.completion)
			r.model.menu.at = at
		}
	}
	r.show(r.view.frame(r.model))
	r.drawn = time.Now()
}

func (r *reader) show(f frame) {
	r.lock(func(s *screen) {
		if s.width != r.view.width || s.height != r.view.height {
			s.resize(r.view.width, r.view.height)
		}
		s.draw(f)
		if vi := r.model.vi; vi != nil {
			shape := blinkingBar
			if !vi.inserts() {
				shape = steadyBlock
			}
			if r.shape != shape {
				r.shape = shape
				s.out = append(s.out, shape...)
			}
		}
		_ = r.flush() // a terminal that is gone ends the input, too
	})
}

// final shows the whole text as it stays on the terminal, and puts the cursor below.
func (r *reader) final() {
	m := r.model
	m.menu, m.search, m.message = nil, nil, ""
	m.buf.move(len(m.buf.text))
	r.draw()
	whole := r.view
	whole.height = maxFinal
	if f := whole.frame(m); len(f.rows) > r.view.height && len(f.rows) < maxFinal {
		r.lock((*screen).redraw)
		r.show(f)
	}
	r.lock(func(s *screen) {
		s.finish()
		_ = r.flush()
	})
}

// keyboard reads from a terminal until it is stopped.
type keyboard struct {
	chunks  chan []byte // closed at the end of the input, or when reading was stopped
	r       cancelreader.CancelReader
	stopped sync.Once
}

func listen(f *os.File) (*keyboard, error) {
	r, err := cancelreader.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("reading keys: %w", err)
	}
	k := &keyboard{chunks: make(chan []byte, 16), r: r}
	go func() { // ends with the input, or when stop cancels r; stop waits for it
		defer close(k.chunks)
		for {
			buf := make([]byte, 4096)
			n, err := r.Read(buf)
			if n > 0 {
				k.chunks <- buf[:n]
			}
			if err != nil || n == 0 {
				return
			}
		}
	}()
	return k, nil
}

// stop ends the reading and returns what was read and not taken. Calling it again returns nothing.
func (k *keyboard) stop() (left []byte) {
	k.stopped.Do(func() {
		k.r.Cancel()
		for chunk := range k.chunks {
			left = append(left, chunk...)
		}
		_ = k.r.Close()
	})
	return left
}
