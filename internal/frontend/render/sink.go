package render

import (
	"io"
	"strings"
	"time"

	"loki/internal/base/text"
	"loki/internal/frontend/render/markdown"
	"loki/internal/frontend/render/theme"
)

const (
	batchTime  = 50 * time.Millisecond // text that arrives within it is drawn at once
	batchBytes = 64 << 10              // more text is drawn without waiting
	sliceBytes = 128 << 10             // of a larger piece, so much is drawn at a time
)

// MarkdownOptions say how Markdown is shown on a terminal.
type MarkdownOptions struct {
	Size     func() (columns, rows int) // of the terminal, asked for at each drawing; nil or 0 means 80 by 24
	Theme    func() *theme.Theme        // called at the beginning of each text; nil, or a nil theme, shows it without colors
	Raw      func() bool                // likewise, reports whether the source is shown as it is; nil for never
	Terminal Capabilities
	Wrap     int              // as in markdown.Options
	WrapCode bool             // code is wrapped, too
	Now      func() time.Time // nil means time.Now
}

// sink is where the text of answers goes. It draws Markdown on a terminal while it arrives.
//
// Rows that are final are printed once and never touched again. Only the unfinished block
// below them is drawn anew, by moving the cursor up over it, and of that only the rows
// from the first one that has changed. Of a block that is taller than the screen the last
// rows are shown; all of it is printed when it is finished. The first piece of text is
// drawn at once; what comes within 50 ms of a drawing is drawn together, in a single
// write. The cursor stays after the text.
//
// A sink belongs to a Screen, whose lock is held when a method is called, and whose goroutines
// draw text that waits. After an error of the writer nothing more is written, and each
// method returns the error.
type sink struct {
	screen *Screen
	w      io.Writer
	o      MarkdownOptions

	r      *markdown.Renderer
	raw    *text.Filter // instead of r: the source is shown as it is, and nothing is drawn twice; both are nil between texts
	inside bool         // raw, and the cursor stands inside a line
	column int          // raw: of the cursor in that line
	live   liveRows

	drawn   time.Time // when something was drawn last; zero at the start of a text
	fresh   int       // bytes that came since
	waiting bool      // a goroutine is going to draw
	err     error
	rows    []byte // scratch
	tail    []byte
}

// newSink returns a sink that writes to w, a terminal. If the screen is a terminal, it is the same.
func (s *Screen) newSink(w io.Writer, o MarkdownOptions) *sink {
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &sink{screen: s, w: w, o: o}
	if s.o.Terminal {
		s.sink = k
	}
	return k
}

// start makes what shows the text.
func (k *sink) start() {
	if k.r = k.o.renderer(); k.r == nil {
		k.raw = &text.Filter{}
		return
	}
	k.live.synchronized = k.o.Terminal.Synchronized
}

// renderer returns what lays text out, nil if its source is shown as it is.
func (o MarkdownOptions) renderer() *markdown.Renderer {
	if o.Raw != nil && o.Raw() {
		return nil
	}
	var colors *theme.Theme
	if o.Theme != nil {
		colors = o.Theme()
	}
	if colors == nil && o.Wrap == 0 {
		return nil
	}
	mo := markdown.Options{Wrap: o.Wrap, WrapCode: o.WrapCode, Hyperlinks: o.Terminal.Hyperlinks}
	if colors != nil {
		mo.Styles = Styles(colors, o.Terminal.TrueColor)
	}
	return markdown.New(mo)
}

// Markdown returns a text as an answer with these options shows it, ended by a line feed.
func Markdown(source string, o MarkdownOptions) string {
	r := o.renderer()
	if r == nil {
		return safe(strings.TrimRight(source, "\n")) + "\n"
	}
	columns, _ := sizeOf(o.Size)
	r.Write([]byte(source))
	return string(r.End(nil, columns))
}

// open reports whether the cursor is inside a line.
func (k *sink) open() bool { return k.inside || k.live.midline() }

// add adds a piece of text, which may be cut anywhere. Others may use the screen between the slices
// of a large one.
func (k *sink) add(p []byte) error {
	for len(p) > sliceBytes && k.err == nil {
		_ = k.addSlice(p[:sliceBytes])
		p = p[sliceBytes:]
		k.screen.mu.Unlock()
		k.screen.mu.Lock()
	}
	return k.addSlice(p)
}

func (k *sink) addSlice(p []byte) error {
	if k.err != nil || len(p) == 0 {
		return k.err
	}
	if k.r == nil && k.raw == nil {
		k.start()
	}
	if k.raw != nil {
		k.print(k.raw.Append(k.rows[:0], p))
		return k.err
	}
	k.r.Write(p)
	k.fresh += len(p)
	now := k.o.Now()
	wait := batchTime - now.Sub(k.drawn)
	switch {
	case k.drawn.IsZero() || wait <= 0 || k.fresh >= batchBytes || k.screen.closed:
		k.draw()
	case !k.waiting:
		k.waiting = true
		k.screen.wg.Go(func() { k.later(wait) })
	}
	return k.err
}

// later draws what has come after a while. It ends then, or when the screen is closed.
func (k *sink) later(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.screen.done:
		return
	}
	k.screen.mu.Lock()
	defer k.screen.mu.Unlock()
	k.waiting = false
	if k.fresh > 0 {
		k.draw()
	}
}

// print writes text that is not drawn again.
func (k *sink) print(p []byte) {
	k.rows = p[:0]
	if len(p) == 0 {
		return
	}
	k.inside = p[len(p)-1] != '\n'
	k.at(p)
	k.write(p)
}

// draw shows what has become final, and the unfinished block.
func (k *sink) draw() {
	if k.r == nil || k.err != nil || k.screen.pauses > 0 {
		return
	}
	columns, rows := sizeOf(k.o.Size)
	k.rows = k.r.Commit(k.rows[:0], columns)
	k.tail = k.r.Tail(k.tail[:0], columns)
	k.show(columns, rows)
	k.drawn, k.fresh = k.o.Now(), 0
}

// end finishes the text: everything is final, and the cursor is at the start of a line. What is added
// later is a new text.
func (k *sink) end() error {
	if k.err != nil {
		return k.err
	}
	if k.raw != nil {
		rest := k.raw.Flush(k.rows[:0])
		if k.inside || len(rest) > 0 {
			rest = append(rest, '\n')
		}
		k.print(rest)
		k.raw = nil
		return k.err
	}
	if k.r == nil {
		return nil
	}
	columns, rows := sizeOf(k.o.Size)
	k.rows, k.tail = k.r.End(k.rows[:0], columns), k.tail[:0]
	if len(k.rows) > 0 || len(k.live.rows) > 0 {
		k.show(columns, rows)
	}
	k.r, k.drawn, k.fresh = nil, time.Time{}, 0
	return k.err
}

// show writes k.rows and k.tail.
func (k *sink) show(columns, rows int) {
	k.write(k.live.draw(k.rows, k.tail, columns, rows))
	if cap(k.rows) > 16*batchBytes {
		k.rows = nil
	}
}

// hide takes the unfinished block away, so that something else can be printed.
func (k *sink) hide() {
	columns, _ := sizeOf(k.o.Size)
	k.send(k.live.hide(columns))
}

// unhide shows it again.
func (k *sink) unhide() {
	if k.r != nil && len(k.live.rows) == 0 && k.r.Pending() {
		k.draw()
	}
}

// write writes p in place of the live area.
func (k *sink) write(p []byte) {
	k.screen.unhang()
	k.screen.erase()
	k.send(p)
	k.screen.midline = k.screen.o.Terminal && k.open()
	k.screen.hang()
}

func (k *sink) send(p []byte) {
	if len(p) > 0 && k.err == nil {
		_, k.err = k.w.Write(p)
	}
}
