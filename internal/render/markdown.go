package render

import (
	"io"
	"sync"
	"time"

	"loki/internal/render/markdown"
	"loki/internal/render/theme"
	"loki/internal/text"
)

const (
	batchTime  = 50 * time.Millisecond // text that arrives within it is drawn at once
	batchBytes = 64 << 10              // more text is drawn without waiting
)

// MarkdownOptions say how Markdown is shown on a terminal.
type MarkdownOptions struct {
	Size     func() (columns, rows int) // of the terminal, asked for at each drawing; nil or 0 means 80 by 24
	Theme    func() *theme.Theme        // called once, when there is text; nil, or a nil theme, shows text without colors
	Terminal Capabilities
	Wrap     int              // as in markdown.Options
	WrapCode bool             // code is wrapped, too
	Now      func() time.Time // nil means time.Now
}

// Markdown draws Markdown on a terminal while it arrives.
//
// Rows that are final are printed once and never touched again. Only the unfinished block
// below them is drawn anew, by moving the cursor up over it, and of that only the rows
// from the first one that has changed. Of a block that is taller than the screen the last
// rows are shown; all of it is printed when it is finished. The first piece of text is
// drawn at once; what comes within 50 ms of a drawing is drawn together, in a single
// write. The cursor is left behind the text.
//
// A Markdown may be used from several goroutines. It runs one of its own while text waits to
// be drawn; Close waits for it. After an error of the writer nothing more is written, and
// each method returns the error.
type Markdown struct {
	w    io.Writer
	o    MarkdownOptions
	lock sync.Locker // guards what follows
	done chan struct{}
	wg   sync.WaitGroup

	around around
	r      *markdown.Renderer
	raw    *text.Filter // instead of r: the source is shown as it is, and nothing is drawn twice; both are nil before the first text
	inside bool         // raw, and the cursor stands inside a line
	live   liveRows

	drawn   time.Time // when something was drawn last; zero at the start of a text
	fresh   int       // bytes that came since
	waiting bool      // a goroutine is going to draw
	closed  bool
	err     error
	rows    []byte // scratch
	tail    []byte
}

// around is what shares the terminal. Its methods are called with the lock held.
type around interface {
	busy() bool         // nothing may be drawn now
	before()            // something is going to be drawn
	after(midline bool) // it was, and the cursor may be inside a line
}

// NewMarkdown returns a Markdown that writes to w, a terminal.
func NewMarkdown(w io.Writer, o MarkdownOptions) *Markdown {
	return newMarkdown(w, o, &sync.Mutex{}, nil)
}

func newMarkdown(w io.Writer, o MarkdownOptions, lock sync.Locker, a around) *Markdown {
	m := &Markdown{w: w, o: o, lock: lock, around: a, done: make(chan struct{})}
	if m.o.Now == nil {
		m.o.Now = time.Now
	}
	return m
}

// start makes what shows the text. The lock is held.
func (m *Markdown) start() {
	var colors *theme.Theme
	if m.o.Theme != nil {
		colors = m.o.Theme()
	}
	if colors == nil && m.o.Wrap == 0 {
		m.raw = &text.Filter{}
		return
	}
	mo := markdown.Options{Wrap: m.o.Wrap, WrapCode: m.o.WrapCode, Hyperlinks: m.o.Terminal.Hyperlinks}
	if colors != nil {
		mo.Styles = Styles(colors, m.o.Terminal.TrueColor)
	}
	m.r = markdown.New(mo)
	m.live.synchronized = m.o.Terminal.Synchronized
}

// Write adds a piece of text. It may be cut anywhere.
func (m *Markdown) Write(p []byte) (int, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if err := m.add(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteString adds a piece of text.
func (m *Markdown) WriteString(s string) (int, error) { return m.Write([]byte(s)) }

// Flush draws what has arrived.
func (m *Markdown) Flush() error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.draw()
	return m.err
}

// End finishes the text: everything is final, and the cursor is at the start of a line.
// What is written later is a new text.
func (m *Markdown) End() error {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.end()
}

// Close ends the text and waits for the goroutine. Closing twice is harmless.
func (m *Markdown) Close() error {
	m.lock.Lock()
	err := m.end()
	if !m.closed {
		m.closed = true
		close(m.done)
	}
	m.lock.Unlock()
	m.wg.Wait()
	return err
}

// open reports whether the cursor is inside a line. The lock is held.
func (m *Markdown) open() bool { return m.inside || m.live.midline() }

// add is Write with the lock held.
func (m *Markdown) add(p []byte) error {
	if m.err != nil || len(p) == 0 {
		return m.err
	}
	if m.r == nil && m.raw == nil {
		m.start()
	}
	if m.raw != nil {
		m.print(m.raw.Append(m.rows[:0], p))
		return m.err
	}
	m.r.Write(p)
	m.fresh += len(p)
	now := m.o.Now()
	wait := batchTime - now.Sub(m.drawn)
	switch {
	case m.drawn.IsZero() || wait <= 0 || m.fresh >= batchBytes || m.closed:
		m.draw()
	case !m.waiting:
		m.waiting = true
		m.wg.Go(func() { m.later(wait) })
	}
	return m.err
}

// later draws what has come after a while. It ends then, or with Close.
func (m *Markdown) later(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.done:
		return
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	m.waiting = false
	if m.fresh > 0 {
		m.draw()
	}
}

// print writes text that is not drawn again. The lock is held.
func (m *Markdown) print(text []byte) {
	m.rows = text[:0]
	if len(text) == 0 {
		return
	}
	m.begin()
	m.write(text)
	m.inside = text[len(text)-1] != '\n'
	m.finish()
}

// draw shows what has become final, and the unfinished block. The lock is held.
func (m *Markdown) draw() {
	if m.r == nil || m.err != nil || m.around != nil && m.around.busy() {
		return
	}
	columns, rows := m.size()
	m.rows = m.r.Commit(m.rows[:0], columns)
	m.tail = m.r.Tail(m.tail[:0], columns)
	m.show(columns, rows)
	m.drawn, m.fresh = m.o.Now(), 0
}

// end is End with the lock held.
func (m *Markdown) end() error {
	if m.err != nil {
		return m.err
	}
	if m.raw != nil {
		rest := m.raw.Flush(m.rows[:0])
		if m.inside || len(rest) > 0 {
			rest = append(rest, '\n')
		}
		m.print(rest)
		return m.err
	}
	if m.r == nil {
		return nil
	}
	columns, rows := m.size()
	m.rows, m.tail = m.r.End(m.rows[:0], columns), m.tail[:0]
	if len(m.rows) > 0 || len(m.live.rows) > 0 {
		m.show(columns, rows)
	}
	m.drawn, m.fresh = time.Time{}, 0
	return m.err
}

// show writes m.rows and m.tail. The lock is held.
func (m *Markdown) show(columns, rows int) {
	m.begin()
	m.write(m.live.draw(m.rows, m.tail, columns, rows))
	m.finish()
	if cap(m.rows) > 8*batchBytes {
		m.rows = nil
	}
}

// hide takes the unfinished block away, so that something else can be printed. The lock is
// held.
func (m *Markdown) hide() {
	columns, _ := m.size()
	m.write(m.live.hide(columns))
}

// unhide shows it again.
func (m *Markdown) unhide() {
	if m.r != nil && len(m.live.rows) == 0 && m.r.Pending() {
		m.draw()
	}
}

func (m *Markdown) begin() {
	if m.around != nil {
		m.around.before()
	}
}

func (m *Markdown) finish() {
	if m.around != nil {
		m.around.after(m.open())
	}
}

func (m *Markdown) write(p []byte) {
	if len(p) == 0 || m.err != nil {
		return
	}
	_, m.err = m.w.Write(p)
}

func (m *Markdown) size() (columns, rows int) {
	if m.o.Size != nil {
		columns, rows = m.o.Size()
	}
	if columns <= 0 {
		columns = 80
	}
	if rows <= 0 {
		rows = 24
	}
	return columns, rows
}
