package line

import "strconv"

// screen draws frames. It never asks the terminal anything: it knows where the cursor is relative to
// the first row that it drew.
type screen struct {
	rows          []row // on the terminal
	row, column   int   // of the cursor
	width, height int
	out           []byte // the pending output
}

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearRight = "\x1b[K"
	clearBelow = "\x1b[J"
)

// begin begins a new place to draw at. If the cursor is not at the beginning of a row it goes to the
// next one: as many blanks as a row has leave it on the same row only if they fill that.
func (s *screen) begin() {
	s.rows, s.row, s.column = nil, 0, 0
	for range s.width {
		s.out = append(s.out, ' ')
	}
	s.out = append(s.out, "\r"+clearRight...)
}

// resize takes the new size of the terminal. Most terminals wrap rows that are too long now, so the
// frame may take more of them; it is drawn anew.
func (s *screen) resize(width, height int) {
	if width < s.width {
		up := s.column / width
		for _, r := range s.rows[:min(s.row, len(s.rows))] {
			up += max((r.width+width-1)/width, 1)
		}
		s.row, s.column = up, 0
	}
	s.width, s.height = width, height
	s.redraw()
}

// redraw has the next frame drawn as a whole, at the place of the last one.
func (s *screen) redraw() {
	s.vertical(0)
	s.out = append(s.out, clearBelow...)
	s.rows = nil
}

// noteCleared says that the screen is empty, with the cursor at its beginning.
func (s *screen) noteCleared() {
	s.out = append(s.out, "\x1b[H\x1b[2J"...)
	s.rows, s.row, s.column = nil, 0, 0
}

// vertical moves the cursor to the beginning of a row that is on the terminal.
func (s *screen) vertical(to int) {
	s.out = append(s.out, '\r')
	switch {
	case to < s.row:
		s.sequence(s.row-to, 'A')
	case to > s.row:
		s.sequence(to-s.row, 'B')
	}
	s.row, s.column = to, 0
}

func (s *screen) sequence(n int, final byte) {
	s.out = append(s.out, "\x1b["...)
	s.out = strconv.AppendInt(s.out, int64(n), 10)
	s.out = append(s.out, final)
}

// draw writes the rows that differ from the ones on the terminal.
func (s *screen) draw(f frame) {
	begin := len(s.out)
	s.out = append(s.out, hideCursor...)
	drawn := false
	for i, r := range f.rows {
		if i < len(s.rows) && s.rows[i] == r {
			continue
		}
		drawn = true
		if i < len(s.rows) || i == 0 {
			s.vertical(i)
		} else { // the first time that the row is used: the terminal may have to scroll
			s.vertical(i - 1)
			s.out = append(s.out, "\r\n"...)
			s.row = i
		}
		s.out = append(s.out, r.text...)
		if r.width < s.width {
			s.out = append(s.out, clearRight...)
		}
		if i >= len(s.rows) {
			s.rows = append(s.rows, r)
		} else {
			s.rows[i] = r
		}
	}
	if len(f.rows) < len(s.rows) {
		drawn = true
		s.vertical(len(f.rows))
		s.out = append(s.out, clearBelow...)
		s.rows = s.rows[:len(f.rows)]
	}
	if !drawn {
		s.out = s.out[:begin]
		if s.row == f.row && s.column == f.column {
			return
		}
	}
	s.vertical(f.row)
	if f.column > 0 {
		s.sequence(f.column, 'C')
	}
	s.column = f.column
	if drawn {
		s.out = append(s.out, showCursor...)
	}
}

// finish puts the cursor below what is drawn.
func (s *screen) finish() {
	if len(s.rows) > 0 {
		s.vertical(len(s.rows) - 1)
		s.out = append(s.out, "\r\n"...)
	}
	s.rows, s.row, s.column = nil, 0, 0
}
