package line

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/base/text"
)

// frame is what is on the terminal while a text is edited: rows from the one where the prompt begins,
// and the place of the cursor.
type frame struct {
	rows        []row
	row, column int // of the cursor, from 0
}

// row is one row of the terminal.
type row struct {
	text  string // with colors, which end with it
	width int    // in columns
}

const (
	continuation = "... "
	tabStop      = 4
	menuRows     = 10 // at most, beside the one that counts

	// maxHighlight is the longest text, in bytes, that is highlighted.
	maxHighlight = 1 << 16

	reset, reverse, faint = "\x1b[0m", "\x1b[7m", "\x1b[2m"
)

// styled is a text and where its colors change.
type styled struct {
	text  string
	marks []mark
	// What is selected is shown in reverse.
	from, to int
}

type mark struct {
	at  int
	sgr string
}

// parseStyled takes the sequences that set colors (CSI ... m) out of s.
func parseStyled(s string) styled {
	var plain strings.Builder
	var marks []mark
	for {
		at := strings.Index(s, "\x1b[")
		if at < 0 {
			plain.WriteString(s)
			return styled{text: plain.String(), marks: marks}
		}
		end := at + 2 + len(s[at+2:]) - len(strings.TrimLeft(s[at+2:], "0123456789;:"))
		if end < len(s) && s[end] == 'm' {
			plain.WriteString(s[:at])
			marks = append(marks, mark{plain.Len(), s[at : end+1]})
			end++
		} else {
			plain.WriteString(s[:end])
		}
		s = s[end:]
	}
}

func isReset(sgr string) bool { return sgr == "\x1b[m" || sgr == "\x1b[0m" || sgr == "\x1b[00m" }

// part returns the characters between from and to as a terminal shows them, in their colors. Column is
// where they begin.
func (s *styled) part(from, to, column int) string {
	var b strings.Builder
	var active []string
	colored := false
	next := 0
	for ; next < len(s.marks) && s.marks[next].at <= from; next++ {
		if active = append(active, s.marks[next].sgr); isReset(s.marks[next].sgr) {
			active = active[:0]
		}
	}
	set := func(sgr string) { b.WriteString(sgr); colored = true }
	for _, sgr := range active {
		set(sgr)
	}
	for i := from; i < to; {
		for ; next < len(s.marks) && s.marks[next].at <= i; next++ {
			set(s.marks[next].sgr)
			if i > s.from && i < s.to {
				set(reverse)
			}
		}
		if i == max(s.from, from) && i < s.to {
			set(reverse)
		} else if i == s.to && s.from < s.to {
			set("\x1b[27m")
		}
		size, width := grapheme(s.text[i:])
		if s.text[i] == '\t' {
			width = tabStop - column%tabStop
			b.WriteString(strings.Repeat(" ", width))
		} else { // without characters that would control the terminal
			b.WriteString(text.Printable(s.text[i : i+size]))
		}
		column += width
		i += size
	}
	if colored {
		b.WriteString(reset)
	}
	return b.String()
}

// span is what one row shows of a text.
type span struct {
	from, to int
	indent   bool // it begins a line, and is not the first
	column   int  // where it begins
	width    int  // where it ends
}

// wrap cuts s into rows of width columns; the first one begins at column.
func wrap(s string, width, column int) []span {
	var spans []span
	now := span{column: column}
	for i := 0; i < len(s); {
		if s[i] == '\n' {
			now.to, now.width = i, column
			spans = append(spans, now)
			i++
			column = indent(width)
			now = span{from: i, indent: true, column: column}
			continue
		}
		size, w := grapheme(s[i:])
		if s[i] == '\t' {
			w = tabStop - column%tabStop
		}
		if column+w > width && column > 0 {
			now.to, now.width = i, column
			spans = append(spans, now)
			column = 0
			now = span{from: i}
			continue
		}
		column += w
		i += size
	}
	now.to, now.width = len(s), column
	spans = append(spans, now)
	if column >= width { // the cursor needs a place behind it
		spans = append(spans, span{from: len(s), to: len(s)})
	}
	return spans
}

// indent is how far lines after the first one are moved to the right.
func indent(width int) int {
	if width < 3*len(continuation) {
		return 0
	}
	return len(continuation)
}

// view is what a frame is made of beside the model.
type view struct {
	prompt        Prompt
	highlight     func(string) string
	width, height int
	top           int // the first row that is shown, if there are more than fit
}

// frame lays the model out for a terminal. It changes v.top so that the cursor can be seen.
func (v *view) frame(m *model) frame {
	rows, row, column := v.textRows(m)
	below := v.below(m)
	if most := max(v.height-len(below), 1); len(rows) > most {
		v.top = min(v.top, row, len(rows)-most)
		v.top = max(v.top, row-most+1)
		rows = rows[v.top : v.top+most]
		row -= v.top
	} else {
		v.top = 0
	}
	f := frame{row: row, column: column}
	for _, r := range rows {
		f.rows = append(f.rows, r())
	}
	f.rows = append(f.rows, below...)
	if len(f.rows) > v.height {
		f.rows = f.rows[:max(v.height, 1)]
	}
	return f
}

// rowText makes a row when it is shown.
type rowText func() row

// textRows returns the rows of prompt and text, and the place of the cursor.
func (v *view) textRows(m *model) (rows []rowText, cursorRow, cursorColumn int) {
	left := v.prompt.Left
	if s := m.search; s != nil {
		left = "(reverse-search: " + s.term + ") "
		if s.failing {
			left = "(failing reverse-search: " + s.term + ") "
		}
	}
	prompt := parseStyled(text.PrintableColored(left))
	above := wrap(prompt.text, v.width, 0)
	last := above[len(above)-1]
	width := ansi.StringWidth(prompt.text[last.from:last.to])
	body := styled{text: m.buf.text}
	if v.highlight != nil && len(body.text) <= maxHighlight {
		if colored := parseStyled(v.highlight(body.text)); colored.text == body.text {
			body.marks = colored.marks
		}
	}
	body.from, body.to = m.buf.selection()
	for _, s := range above[:len(above)-1] {
		rows = append(rows, func() row {
			shown := prompt.part(s.from, s.to, 0)
			return row{shown, ansi.StringWidth(shown)}
		})
	}
	spans := wrap(body.text, v.width, width)
	for i, s := range spans {
		first := i == 0
		if s.from <= m.buf.cursor && (i+1 == len(spans) || spans[i+1].from > m.buf.cursor) {
			cursorRow = len(rows)
			cursorColumn = s.column + columns(body.text[s.from:m.buf.cursor], s.column)
		}
		rows = append(rows, func() row {
			shown := body.part(s.from, s.to, s.column)
			switch {
			case first:
				shown = prompt.part(last.from, last.to, 0) + shown
			case s.indent && s.column > 0:
				shown = continuation + shown
			}
			return row{shown, s.width}
		})
	}
	right := parseStyled(text.PrintableColored(v.prompt.Right))
	if w := ansi.StringWidth(right.text); w > 0 && !strings.Contains(right.text, "\n") {
		plain := rows[0]
		rows[0] = func() row {
			r := plain()
			if r.width+w >= v.width {
				return r
			}
			return row{r.text + strings.Repeat(" ", v.width-w-r.width) + right.part(0, len(right.text), 0), v.width}
		}
	}
	return rows, cursorRow, min(cursorColumn, v.width-1)
}

// columns returns the width of s, which begins at column.
func columns(s string, column int) int {
	start := column
	for s != "" {
		size, width := grapheme(s)
		if s[0] == '\t' {
			width = tabStop - column%tabStop
		}
		column += width
		s = s[size:]
	}
	return column - start
}

// below returns the rows under the text: the menu, or a message.
func (v *view) below(m *model) []row {
	if n := m.menu; n != nil {
		return v.menu(n)
	}
	if m.message == "" || v.height < 2 {
		return nil
	}
	s := ansi.Truncate(text.OneLine(m.message, 1000), v.width, "…")
	return []row{{faint + s + reset, ansi.StringWidth(s)}}
}

// menu returns the rows of a menu around the candidate that is selected.
func (v *view) menu(n *menu) []row {
	all := n.completion.Candidates
	count := (len(all) + n.columns - 1) / n.columns
	most := min(menuRows, v.height/2)
	if count > most {
		most = max(most-1, 0) // one row counts
	}
	at := n.at / n.columns
	from := max(0, min(at-most/2, count-most))
	var rows []row
	for r := from; r < min(from+most, count); r++ {
		var b strings.Builder
		width := 0
		for i := r * n.columns; i < min((r+1)*n.columns, len(all)); i++ {
			if width > 0 {
				b.WriteString("  ")
				width += 2
			}
			value := cell(all[i].Value, n.cell)
			if i == n.at {
				value = reverse + value + reset
			}
			b.WriteString(value)
			width += n.cell
			if room := v.width - width - 2; n.described && room > 0 && all[i].Description != "" {
				d := ansi.Truncate(description(all[i].Description, 4*room), room, "…")
				b.WriteString("  " + faint + d + reset)
				width += 2 + ansi.StringWidth(d)
			}
		}
		rows = append(rows, row{b.String(), width})
	}
	if count > most && most > 0 {
		s := ansi.Truncate(fmt.Sprintf("%d of %d", n.at+1, len(all)), v.width, "")
		rows = append(rows, row{faint + s + reset, len(s)})
	}
	return rows
}

// description returns s as one line, cut to limit characters. The blanks of a single line stay as they are:
// it may have columns that stand below those of other candidates.
func description(s string, limit int) string {
	if strings.ContainsAny(s, "\r\n\t\u0085\u2028\u2029") {
		return text.OneLine(s, limit)
	}
	return text.Clean(text.CutRunes(s, limit))
}

// cell returns s cut or filled to width columns.
func cell(s string, width int) string {
	s = ansi.Truncate(text.Printable(strings.ReplaceAll(s, "\n", " ")), width, "…")
	return s + strings.Repeat(" ", max(width-ansi.StringWidth(s), 0))
}
