package render

import (
	"bytes"
	"strconv"

	"github.com/charmbracelet/x/ansi"
)

// liveRows are the rows at the bottom of what is printed that may be drawn again. The
// cursor is behind the last of them; if there are none, it is at the start of a line.
type liveRows struct {
	rows         []liveRow
	synchronized bool // the terminal can draw several things at once
	next         []liveRow
	out          []byte
	text         []byte // of rows
	spare        []byte
}

// liveRow is a row as it was drawn. A terminal breaks one that is wider than it is.
type liveRow struct {
	text    []byte
	columns int
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
// then. columns and rows are the size of the terminal; the result is valid until the next
// call.
//
// Rows that have not changed are left alone, and if text was only added to the last one, it is
// added on the terminal, too.
func (l *liveRows) draw(final, tail []byte, columns, rows int) []byte {
	l.layTail(tail, columns, rows)
	old := l.rows
	same := 0
	rest := final // what is not on the terminal yet
	n := 0        // rows of l.next that are
	for same < len(old) {
		if len(rest) > 0 {
			line, after, _ := bytes.Cut(rest, []byte("\n"))
			if !bytes.Equal(line, old[same].text) {
				break
			}
			rest = after
		} else {
			if n == len(l.next) || !bytes.Equal(l.next[n].text, old[same].text) {
				break
			}
			n++
		}
		same++
	}
	out := l.out[:0]
	switch {
	case same < len(old):
		if suffix, ok := l.suffix(rest, n, same); ok {
			out = append(out, suffix...)
			if len(rest) > 0 {
				out = append(out, '\n')
				rest = rest[bytes.IndexByte(rest, '\n')+1:]
			} else {
				n++
				if n < len(l.next) {
					out = append(out, '\n')
				}
			}
			out = l.appendRows(out, rest, n)
			break
		}
		if len(rest) == 0 && n == len(l.next) && n > 0 { // the cursor must be after the last row
			same--
			n--
		}
		if l.synchronized {
			out = append(out, "\x1b[?2026h"...)
		}
		out = up(out, old[same:], columns)
		if l.shrinks(rest, n, old[same:], columns) {
			out = append(out, "\x1b[J"...)
			out = l.appendRows(out, rest, n)
		} else {
			out = l.overwrite(out, rest, n, old[same:])
		}
		if l.synchronized {
			out = append(out, "\x1b[?2026l"...)
		}
	case len(old) == 0:
		out = l.appendRows(out, rest, n)
	case len(rest) > 0 || n < len(l.next) || len(l.next) == 0:
		out = append(out, '\n')
		out = l.appendRows(out, rest, n)
	}
	l.out = out
	l.rows, l.next = l.next, l.rows
	l.text, l.spare = l.spare, l.text
	return out
}

// layTail makes l.next of the rows of tail: as many of the last ones as fit on the
// screen.
func (l *liveRows) layTail(tail []byte, columns, rows int) {
	l.spare = append(l.spare[:0], tail...)
	l.next = l.next[:0]
	if len(tail) == 0 {
		return
	}
	room := max(1, rows-1)
	for text := range bytes.SplitSeq(l.spare, []byte("\n")) {
		l.next = append(l.next, liveRow{text: text, columns: ansi.StringWidth(string(text))})
	}
	first := len(l.next)
	for first > 0 && room >= l.next[first-1].height(columns) {
		first--
		room -= l.next[first].height(columns)
	}
	if first == len(l.next) { // the last row alone is higher than the screen
		last := l.next[first-1]
		for keep := room * columns; ; keep-- { // wide characters leave columns at the edge empty
			cut := ansi.Cut(string(last.text), last.columns-keep, last.columns)
			part := liveRow{text: []byte(cut), columns: ansi.StringWidth(cut)}
			if part.height(columns) <= room || keep <= columns {
				l.next = append(l.next[:0], part)
				return
			}
		}
	}
	l.next = append(l.next[:0], l.next[first:]...)
}

// suffix returns what the row at same, the last live one, must be extended by, if nothing else
// changes in it: it has no style, and its text only grows.
func (l *liveRows) suffix(rest []byte, n, same int) (suffix []byte, ok bool) {
	if same != len(l.rows)-1 {
		return nil, false
	}
	var row []byte
	switch {
	case len(rest) > 0:
		row, _, _ = bytes.Cut(rest, []byte("\n"))
	case n < len(l.next):
		row = l.next[n].text
	default:
		return nil, false
	}
	old := l.rows[same].text
	suffix, ok = bytes.CutPrefix(row, old)
	if !ok || bytes.IndexByte(old, 0x1b) >= 0 || joins(suffix) {
		return nil, false
	}
	return suffix, true
}

// joins reports whether text may be drawn as a part of the character before it.
func joins(text []byte) bool { return len(text) > 0 && text[0] >= 0xcc }

// appendRows appends rows where there are none.
func (l *liveRows) appendRows(out, final []byte, n int) []byte {
	out = append(out, final...)
	for i := n; i < len(l.next); i++ {
		if i > n {
			out = append(out, '\n')
		}
		out = append(out, l.next[i].text...)
	}
	return out
}

// overwrite draws rows over old ones, of which there are not more.
func (l *liveRows) overwrite(out, final []byte, n int, old []liveRow) []byte {
	for len(final) > 0 && len(old) > 0 {
		line, after, _ := bytes.Cut(final, []byte("\n"))
		final = after
		out = append(out, line...)
		if ansi.StringWidth(string(line)) < old[0].columns {
			out = append(out, "\x1b[K"...)
		}
		out = append(out, '\n')
		old = old[1:]
	}
	out = append(out, final...)
	for i := n; i < len(l.next); i++ {
		if i > n {
			out = append(out, '\n')
		}
		out = append(out, l.next[i].text...)
		if len(old) > 0 {
			if l.next[i].columns < old[0].columns {
				out = append(out, "\x1b[K"...)
			}
			old = old[1:]
		}
	}
	return out
}

// shrinks reports whether drawing over the old rows would leave something of them: there
// will be fewer, or one is broken by the terminal.
func (l *liveRows) shrinks(final []byte, n int, old []liveRow, columns int) bool {
	if bytes.Count(final, []byte("\n"))+len(l.next)-n < len(old) {
		return true
	}
	for i := range old {
		if old[i].columns > columns {
			return true
		}
		if len(final) > 0 {
			line, after, _ := bytes.Cut(final, []byte("\n"))
			final = after
			if ansi.StringWidth(string(line)) > columns {
				return true
			}
		}
	}
	for i := n; i < len(l.next); i++ {
		if l.next[i].columns > columns {
			return true
		}
	}
	return false
}

// hide returns what takes the live rows away.
func (l *liveRows) hide(columns int) []byte {
	if len(l.rows) == 0 {
		return nil
	}
	l.out = append(up(l.out[:0], l.rows, columns), "\x1b[J"...)
	l.rows = l.rows[:0]
	return l.out
}

// up moves the cursor from behind the last of some rows to the start of the first.
func up(out []byte, rows []liveRow, columns int) []byte {
	lines := -1
	for i := range rows {
		lines += rows[i].height(columns)
	}
	out = append(out, '\r')
	if lines > 0 {
		out = append(out, "\x1b["...)
		out = strconv.AppendInt(out, int64(lines), 10)
		out = append(out, 'A')
	}
	return out
}
