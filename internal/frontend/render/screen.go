package render

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	frameTime = 100 * time.Millisecond // between two drawings of the live area
	showAfter = 150 * time.Millisecond // what is over sooner never appears there
)

// ScreenOptions configure NewScreen.
type ScreenOptions struct {
	Out      io.Writer                  // required; it need not be safe for concurrent use
	Terminal bool                       // Out is a terminal that obeys escape sequences
	Color    bool                       // finished and live lines are colored
	Size     func() (columns, rows int) // of the terminal, asked for at each drawing; nil or 0 means 80 by 24
	Now      func() time.Time           // nil means time.Now
}

// Screen is the stream that users watch. Everything written to it is complete lines, which
// scroll; on a terminal the live area stands below them while something runs. What is
// written stays when the live area goes: the same lines as on a stream that is not
// a terminal.
//
// A Screen may be used from several goroutines. It runs one of its own while there is
// something live, for the spinners; Close waits for it. Errors of Out are ignored: work
// does not end because its display is gone.
type Screen struct {
	o    ScreenOptions
	done chan struct{} // closed by Close
	wg   sync.WaitGroup

	mu      sync.Mutex // guards what follows, the sink, and the state of the emitters that use the screen
	tasks   []*task    // what runs, in order of start
	tree    *Tree      // the agents at work; nil if they are not shown
	drawn   []liveLine // on the terminal, from the top
	pauses  int        // how many Pauses were not ended by Resume
	held    []byte     // lines that wait for Resume
	partial []byte     // what Write was given after the last line feed
	midline bool       // text on the same terminal left the cursor inside a line
	ticking bool
	closed  bool
	sink    *sink // of an answer on the same terminal; nil while there is none
	buf     bytes.Buffer
	below   []string // what the user is typing, see Below
	hanging bool     // it is drawn below an unfinished line
}

// NewScreen returns a screen that writes to o.Out.
func NewScreen(o ScreenOptions) *Screen {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Screen{o: o, done: make(chan struct{})}
}

// Pause takes the live area away, and withholds what is written until Resume, so that the user can
// be asked on the terminal. Pauses nest. On a stream that is not a terminal nothing is withheld.
func (s *Screen) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pauses++
	s.unhang()
	s.erase()
	if s.sink != nil {
		s.sink.hide()
		s.midline = s.sink.open()
	}
}

// Resume ends a Pause and shows what was withheld.
func (s *Screen) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pauses--; s.pauses > 0 {
		return
	}
	s.pauses = 0
	s.release()
}

// release shows what a pause withheld. s.mu is held.
func (s *Screen) release() {
	text := string(s.held)
	s.held = nil
	s.midline = false // the asker left the cursor at the start of a line
	if text != "" && lastByte(text) != '\n' {
		text += "\n"
	}
	s.show(text)
	if s.sink != nil {
		s.sink.unhide()
	}
}

// Write shows the complete lines of p above the live area and keeps an incomplete one
// until its end is written or the screen is closed. It never fails. Log handlers and the
// standard error of child processes write here. On a terminal the text is shown without
// escape sequences and control characters.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial = append(s.partial, p...)
	if i := bytes.LastIndexByte(s.partial, '\n'); i >= 0 {
		text := s.tame(s.partial[:i+1])
		s.partial = append(s.partial[:0], s.partial[i+1:]...)
		s.show(text)
	}
	return len(p), nil
}

// Print shows a line that a program printed, above what is live.
func (s *Screen) Print(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show(safe(line) + "\n")
}

// columns returns how wide the terminal is, 0 if there is none.
func (s *Screen) columns() (columns int) {
	if s.o.Terminal {
		columns, _ = sizeOf(s.o.Size)
	}
	return columns
}

// Warn shows a warning.
func (s *Screen) Warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show(Warning(text, s.o.Color, s.columns()) + "\n")
}

// tame returns text of other programs as it may be shown.
func (s *Screen) tame(text []byte) string {
	if s.o.Terminal {
		return safe(string(text))
	}
	return string(text)
}

// Close shows what is still withheld, removes the live area, leaves the cursor at the
// start of a line and waits for the screen's goroutine. Lines written later are still shown.
// Closing twice is harmless.
func (s *Screen) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
		s.tasks, s.tree, s.pauses = nil, nil, 0
		text := string(s.held)
		s.held = nil
		if len(s.partial) > 0 {
			text += s.tame(s.partial) + "\n"
			s.partial = nil
		}
		if text == "" && s.midline {
			_, _ = io.WriteString(s.o.Out, "\n")
			s.midline = false
		}
		s.show(text)
	}
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}

// show writes text, which is empty or complete lines, and draws the live area below it. It
// is one Write to Out, so that lines of other processes do not come between. The
// unfinished part of an answer on the same terminal is drawn again below. s.mu is held.
func (s *Screen) show(text string) {
	s.unhang()
	defer s.hang()
	if text == "" || s.sink == nil || s.pauses > 0 || s.sink.r == nil {
		s.lines(text)
		return
	}
	s.sink.hide()
	s.midline = s.midline && s.sink.open()
	pending := s.sink.r.Pending()
	s.lines(text)
	if pending {
		s.erase()
	}
	s.sink.unhide()
}

// endText makes final what there is of an answer, so that lines are shown below it. The Answer
// returns errors of its output. s.mu is held.
func (s *Screen) endText() {
	if s.sink != nil {
		_ = s.sink.end()
	}
}

// lines writes text and draws the live area.
func (s *Screen) lines(text string) {
	if !s.o.Terminal {
		if text != "" {
			_, _ = io.WriteString(s.o.Out, text)
		}
		return
	}
	if s.pauses > 0 {
		s.held = append(s.held, text...)
		return
	}
	columns, rows := sizeOf(s.o.Size)
	before := s.drawn
	s.drawn = nil
	if !s.midline || text != "" {
		s.drawn = s.liveArea(columns, rows)
	}
	if text == "" && slices.Equal(before, s.drawn) && !broken(before, columns) {
		return
	}
	s.buf.Reset()
	wiped := s.rewind(before, columns, rows, text != "" || len(s.drawn) == 0)
	if text != "" && s.midline {
		s.buf.WriteByte('\n')
		s.midline = false
	}
	s.buf.WriteString(text)
	for i, line := range s.drawn {
		if wiped || i >= len(before) || line != before[i] {
			s.buf.WriteString(line.text + "\x1b[K")
		}
		s.buf.WriteByte('\n')
	}
	if len(before) > 0 && (text != "" || len(s.drawn) > 0) { // also what the user typed meanwhile, such as ^C
		s.buf.WriteString("\x1b[J")
	}
	if s.buf.Len() > 0 {
		_, _ = s.o.Out.Write(s.buf.Bytes())
	}
}

// broken reports whether the terminal has become narrower than lines that were drawn.
func broken(lines []liveLine, columns int) bool {
	return slices.ContainsFunc(lines, func(l liveLine) bool { return l.columns > columns })
}

// rewind puts the cursor where the live area begins, and clears the screen from there
// on if wipe is set or the lines are broken; otherwise they are going to be overwritten.
//
// If the terminal became narrower since the lines were drawn, it has broken the lines that no
// longer fit, as terminals do today, and the area is as many rows taller.
func (s *Screen) rewind(lines []liveLine, columns, rows int, wipe bool) (wiped bool) {
	if len(lines) == 0 {
		return wipe
	}
	up := 0
	for _, l := range lines {
		up += max(1, (l.columns+columns-1)/columns)
	}
	up = min(up, max(1, rows-1))
	fmt.Fprintf(&s.buf, "\r\x1b[%dA", up)
	if wipe = wipe || broken(lines, columns); wipe {
		s.buf.WriteString("\x1b[K\n\x1b[J\x1b[A") // tmux keeps what is cleared from the top of the screen in its history
	}
	return wipe
}

// erase removes the live area. s.mu is held.
func (s *Screen) erase() {
	if len(s.drawn) == 0 {
		return
	}
	s.buf.Reset()
	columns, rows := sizeOf(s.o.Size)
	s.rewind(s.drawn, columns, rows, true)
	s.drawn = nil
	_, _ = s.o.Out.Write(s.buf.Bytes())
}

// sizeOf returns the columns and rows of a terminal, as size says, or 80 by 24.
func sizeOf(size func() (columns, rows int)) (columns, rows int) {
	if size != nil {
		columns, rows = size()
	}
	if columns <= 0 {
		columns = 80
	}
	if rows <= 0 {
		rows = 24
	}
	return columns, rows
}

// inline writes text to the screen without ending the line. The live area is away until
// the line ends. s.mu is held.
func (s *Screen) inline(text string) {
	if s.pauses > 0 && s.o.Terminal {
		s.held = append(s.held, text...)
		return
	}
	_ = s.beside(s.o.Out, text)
}

// beside writes text to w, which shows on the same terminal. s.mu is held.
func (s *Screen) beside(w io.Writer, text string) error {
	if text == "" {
		return nil
	}
	s.unhang()
	s.erase()
	s.midline = s.o.Terminal && !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(w, text)
	return err
}

// begin adds t to what runs. It appears when it has run for a moment. s.mu is held.
func (s *Screen) begin(t *task) {
	s.tasks = append(s.tasks, t)
	s.animate()
}

// animate has the live area drawn again and again while there is one. s.mu is held.
func (s *Screen) animate() {
	if s.ticking || s.closed || !s.o.Terminal {
		return
	}
	s.ticking = true
	s.wg.Go(s.tick)
}

// end takes t away from what runs; the caller shows the change. s.mu is held.
func (s *Screen) end(t *task) {
	s.tasks = slices.DeleteFunc(s.tasks, func(other *task) bool { return other == t })
}

// task returns what runs and has a key, nil if nothing has. s.mu is held.
func (s *Screen) task(key taskKey) *task {
	if i := slices.IndexFunc(s.tasks, func(t *task) bool { return t.key == key }); i >= 0 {
		return s.tasks[i]
	}
	return nil
}

// Spin turns a spinner that says what is done, until stop is called. Off a terminal it does
// nothing.
func (s *Screen) Spin(what string) (stop func()) {
	t := &task{key: taskKey{node: what}, since: s.o.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(t)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.end(t)
		s.show("")
	}
}

// tick draws the live area again and again. It ends when nothing runs any more, or with
// Close.
func (s *Screen) tick() {
	ticker := time.NewTicker(frameTime)
	defer ticker.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		if len(s.tasks) == 0 && !s.tree.working() {
			s.ticking = false
			s.mu.Unlock()
			return
		}
		if s.pauses == 0 {
			s.show("")
		}
		s.mu.Unlock()
	}
}
