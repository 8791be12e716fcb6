package render

import (
	"strings"
)

// Below shows lines of the user below everything else, while something runs: what they are typing. Nil for nothing. Each is cut at the
// width of the terminal. Below an answer whose last line is not complete they are drawn, too, and the cursor returns there.
func (s *Screen) Below(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.below = lines
	s.show("")
}

// belowLines returns the lines of the user for a terminal of a size.
func (s *Screen) belowLines(columns, rows int) (lines []liveLine) {
	shown := s.below[max(0, len(s.below)-rows/2):]
	for _, line := range shown {
		lines = append(lines, newLiveLine(colors(s.o.Color), columns, span{dim, oneLine(line, columns)}))
	}
	return lines
}

// hang draws the lines of the user below the cursor, which stays where it is: inside of a line of the answer. It first makes room
// with index, which keeps the column where a line feed does not. s.mu is held.
func (s *Screen) hang() {
	if !s.midline && len(s.below) > 0 && !s.closed {
		s.lines("") // the line has ended
		return
	}
	columns, rows := sizeOf(s.o.Size)
	if !s.midline || s.pauses > 0 || s.closed || len(s.below) == 0 || len(s.drawn) > 0 || s.sink == nil || s.sink.atEdge(columns) {
		return
	}
	lines := s.belowLines(columns, rows)
	var b strings.Builder
	b.WriteString(strings.Repeat("\x1bD", len(lines)) + strings.Repeat("\x1b[A", len(lines)) + "\x1b7")
	for _, line := range lines {
		b.WriteString("\n" + line.text + "\x1b[K")
	}
	b.WriteString("\x1b8")
	s.hanging = true
	_, _ = s.o.Out.Write([]byte(b.String()))
}

// unhang takes them away. s.mu is held.
func (s *Screen) unhang() {
	if s.hanging {
		s.hanging = false
		_, _ = s.o.Out.Write([]byte("\x1b[J"))
	}
}

// atEdge reports whether the cursor may be at the right edge of the terminal, where it cannot be kept.
func (k *sink) atEdge(columns int) bool {
	if n := len(k.live.rows); k.raw == nil && n > 0 {
		return k.live.rows[n-1].columns%columns == 0
	}
	return k.raw == nil || k.column%columns == 0
}

// at notes in which column of an endless line the cursor is after text was printed.
func (k *sink) at(p []byte) {
	line := string(p)
	if i := strings.LastIndexByte(line, '\n'); i >= 0 {
		k.column, line = 0, line[i+1:]
	}
	k.column += width(line)
}
