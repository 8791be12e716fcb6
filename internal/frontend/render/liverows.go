package render

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/charmbracelet/x/ansi"
)

// liveRows are the rows at the bottom of what is printed that may be drawn again. The
// cursor is behind the last of them; if there are none, it is at the start of a line.
type liveRows struct {
	rows         []liveRow
	synchronized bool // the terminal can draw several things at once
}

// liveRow is a row as it was drawn. A terminal breaks one that is wider than it is.
type liveRow struct {
	text    []byte
	columns int
}

func newLiveRow(text []byte) liveRow {
	return liveRow{text: bytes.Clone(text), columns: ansi.StringWidth(string(text))}
}

// height returns how many lines of the terminal the row takes. A wide character that does not
// fit at the end of one is drawn on the next.
func (r *liveRow) height(columns int) int {
	if r.columns <= columns {
		return 1
	}
	lines, at := 1, 0
	for text := ansi.Strip(string(r.text)); text != ""; {
		char, w := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
		if at+w > columns {
			lines++
			at = 0
		}
		at += w
		text = text[len(char):]
	}
	return lines
}

func (l *liveRows) midline() bool { return len(l.rows) > 0 }

// draw returns what to write so that the rows of final, each with a line feed, and below
// them those of tail stand where the live rows are. The rows of tail are the live ones
// then. columns and rows are the size of the terminal.
//
// Rows that have not changed are left alone, and if text was only added to the last one, it is
// added on the terminal, too.
func (l *liveRows) draw(final, tail []byte, columns, rows int) []byte {
	var all []liveRow // from the first live one on
	for line := range bytes.Lines(final) {
		all = append(all, newLiveRow(bytes.TrimSuffix(line, []byte("\n"))))
	}
	old, live := l.rows, lastRows(tail, columns, rows)
	all, l.rows = append(all, live...), live
	same := 0
	for same < min(len(old), len(all)) && bytes.Equal(all[same].text, old[same].text) {
		same++
	}
	switch {
	case same == len(old) && len(old) > 0 && same == len(all) && len(live) > 0: // nothing has changed, and the cursor stands there
		return nil
	case same == len(old) && len(old) > 0:
		return appendRows([]byte("\n"), all[same:], len(live), nil)
	case same == len(old):
		return appendRows(nil, all, len(live), nil)
	case same == len(old)-1 && same < len(all) && grows(old[same], all[same]):
		all[same].text = all[same].text[len(old[same].text):]
		return appendRows(nil, all[same:], len(live), nil)
	case same == len(all) && len(live) > 0: // the cursor must be after the last row
		same--
	}
	return l.redraw(old[same:], all[same:], columns)
}

// redraw returns what to write so that rows stand where the old ones are, the last of which the cursor is behind.
func (l *liveRows) redraw(old, rows []liveRow, columns int) []byte {
	out := up(old, columns)
	wide := func(r liveRow) bool { return r.columns > columns }
	if len(rows) < len(old) || slices.ContainsFunc(old, wide) || slices.ContainsFunc(rows, wide) { // something of the old rows would be left
		out = append(out, "\x1b[J"...)
		old = nil
	}
	out = appendRows(out, rows, len(l.rows), old)
	if l.synchronized {
		out = slices.Concat([]byte("\x1b[?2026h"), out, []byte("\x1b[?2026l"))
	}
	return out
}

// lastRows returns the rows of tail: as many of the last ones as fit on the screen.
func lastRows(tail []byte, columns, rows int) (last []liveRow) {
	if len(tail) == 0 {
		return nil
	}
	for text := range bytes.SplitSeq(tail, []byte("\n")) {
		last = append(last, newLiveRow(text))
	}
	room := max(1, rows-1)
	first := len(last)
	for first > 0 && room >= last[first-1].height(columns) {
		first--
		room -= last[first].height(columns)
	}
	if first < len(last) {
		return last[first:]
	}
	row := last[first-1]                   // alone higher than the screen
	for keep := room * columns; ; keep-- { // wide characters leave columns at the edge empty
		part := newLiveRow([]byte(ansi.Cut(string(row.text), row.columns-keep, row.columns)))
		if part.height(columns) <= room || keep <= columns {
			return []liveRow{part}
		}
	}
}

// grows reports whether row is old with more text at its end, and nothing else changes in it: it has no style, and what is
// added is not drawn as a part of the character before it.
func grows(old, row liveRow) bool {
	suffix, ok := bytes.CutPrefix(row.text, old.text)
	return ok && bytes.IndexByte(old.text, 0x1b) < 0 && (len(suffix) == 0 || suffix[0] < 0xcc)
}

// appendRows appends rows, the last of which are live, over old ones. A line feed follows each but the last one that is live.
func appendRows(out []byte, rows []liveRow, live int, old []liveRow) []byte {
	for i, r := range rows {
		out = append(out, r.text...)
		if i < len(old) && r.columns < old[i].columns {
			out = append(out, "\x1b[K"...)
		}
		if live == 0 || i < len(rows)-1 {
			out = append(out, '\n')
		}
	}
	return out
}

// hide returns what takes the live rows away.
func (l *liveRows) hide(columns int) []byte {
	if len(l.rows) == 0 {
		return nil
	}
	out := append(up(l.rows, columns), "\x1b[J"...)
	l.rows = nil
	return out
}

// up moves the cursor from behind the last of some rows to the start of the first.
func up(rows []liveRow, columns int) []byte {
	lines := -1
	for i := range rows {
		lines += rows[i].height(columns)
	}
	out := []byte{'\r'}
	if lines > 0 {
		out = fmt.Appendf(out, "\x1b[%dA", lines)
	}
	return out
}
