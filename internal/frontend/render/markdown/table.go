package markdown

import (
	"bytes"
	"strings"
)

const (
	maxTableRows = 100      // rows that are measured for the widths of columns
	maxTable     = 32 << 10 // bytes of them
	listColumn   = 10       // where words of up to so many columns would have to be broken, rows are lists
	wordColumn   = 14       // up to so many columns, words are not broken if that can be helped
)

// align is how the cells of a column are aligned.
type align uint8

const (
	alignLeft align = iota
	alignCenter
	alignRight
)

// layout is what is known of a table. Its slices are never changed once they are set.
type layout struct {
	aligns []align
	widths []int  // nil until rows are printed
	lines  bool   // rows are separated by rules, because there are cells of several lines
	list   bool   // the window has no room for columns: each cell has a row of its own
	head   []byte // the line of the head, if list
}

// cellsOf splits a row of a table into its cells.
func cellsOf(line []byte) (cells [][]byte) {
	line = bytes.TrimPrefix(bytes.Trim(line, " "), []byte("|"))
	from := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '|':
			cells = append(cells, bytes.Trim(line[from:i], " "))
			from = i + 1
		}
	}
	if rest := bytes.Trim(line[min(from, len(line)):], " "); len(rest) > 0 || len(cells) == 0 {
		cells = append(cells, rest)
	}
	return cells
}

// alignsOf reads the line below the head of a table. Nil means that it is none.
func alignsOf(line []byte) []align {
	var aligns []align
	for _, cell := range cellsOf(line) {
		n := len(cell)
		left := n > 0 && cell[0] == ':'
		right := n > 1 && cell[n-1] == ':'
		body := bytes.TrimSuffix(bytes.TrimPrefix(cell, []byte(":")), []byte(":"))
		if len(body) == 0 || !isRun(body, '-') || bytes.IndexByte(body, ' ') >= 0 {
			return nil
		}
		switch {
		case left && right:
			aligns = append(aligns, alignCenter)
		case right:
			aligns = append(aligns, alignRight)
		default:
			aligns = append(aligns, alignLeft)
		}
	}
	return aligns
}

// beginTable makes a table of the last line of the paragraph if rest is what stands
// below the head of one.
func (m *machine) beginTable(dst *[]byte, rest []byte) bool {
	aligns := alignsOf(rest)
	if aligns == nil {
		return false
	}
	held := m.heldLines()
	start := bytes.LastIndexByte(held, '\n') + 1
	head := held[start:]
	if bytes.IndexByte(head, '|') < 0 && bytes.IndexByte(rest, '|') < 0 || len(cellsOf(head)) != len(aligns) {
		return false
	}
	if start > 0 {
		*dst = m.inlines(*dst, held[:start-1], m.textBase())
		m.text = m.text[:copy(m.text, m.text[start:])]
	}
	m.leaf, m.lines = table, 1
	m.tbl = layout{aligns: aligns}
	return true
}

// tableLine takes a row.
func (m *machine) tableLine(dst, rest []byte) []byte {
	if m.tbl.widths != nil {
		return m.tableRow(dst, rest, baseText)
	}
	m.hold(rest)
	if m.tooLong() {
		dst = m.printTable(dst)
		m.release()
	}
	return dst
}

// tooLong reports whether a table is printed before it has ended.
func (m *machine) tooLong() bool { return m.lines > maxTableRows || len(m.text) > maxTable }

// endTable prints what is held of a table.
func (m *machine) endTable(dst []byte) []byte {
	if m.tbl.widths == nil {
		dst = m.printTable(dst)
	}
	m.tbl = layout{}
	return dst
}

// printTable decides on the widths of the columns, and prints the rows that are held.
func (m *machine) printTable(dst []byte) []byte {
	m.layTable()
	head, rows, _ := bytes.Cut(m.text, []byte("\n"))
	if m.tbl.list {
		m.tbl.head = bytes.Clone(head)
	} else {
		dst = m.tableRow(dst, head, baseHead)
		if !m.tbl.lines {
			dst = m.tableRule(dst)
		}
	}
	for line := range bytes.Lines(rows) {
		dst = m.tableRow(dst, bytes.TrimSuffix(line, []byte("\n")), baseText)
	}
	if m.tbl.list && m.lines == 1 {
		dst = m.plainRow(dst, m.tbl.head, baseHead)
	}
	return dst
}

// tableWidth returns the columns of the terminal that a table may take.
func (m *machine) tableWidth() int {
	if m.limit > 0 {
		return m.room(m.limit)
	}
	return m.room(m.columns)
}

// layTable measures the rows that are held.
func (m *machine) layTable() {
	n := len(m.tbl.aligns)
	natural, words := make([]int, n), make([]int, n)
	for line := range bytes.Lines(m.text) {
		m.scanRow(bytes.TrimSuffix(line, []byte("\n")))
		for i := range n {
			for part := range bytes.SplitSeq(m.cells[i].vis, []byte("\n")) {
				natural[i] = max(natural[i], reach(part))
				for word := range bytes.FieldsSeq(part) {
					words[i] = max(words[i], min(reach(word), wordColumn))
				}
			}
		}
	}
	for i := range n {
		natural[i] = max(natural[i], 1)
		if m.tooLong() {
			natural[i] += 2 + natural[i]/4 // rows that follow may be wider
		}
	}
	room := m.tableWidth() - 3*(n-1)
	least := 0
	for i := range n {
		least += min(words[i], listColumn)
	}
	m.tbl.list = n > 1 && sum(natural) > room && least > room
	m.tbl.widths = squeeze(natural, words, max(room, n))
	for i, w := range m.tbl.widths {
		m.tbl.lines = m.tbl.lines || w < natural[i]
	}
	m.tbl.lines = m.tbl.lines && !m.tbl.list
}

func sum(list []int) int {
	total := 0
	for _, n := range list {
		total += n
	}
	return total
}

// squeeze returns widths of columns that need natural columns and have words of some
// length, so that their sum is room at most, if it is at least their number. Wide columns
// give most.
func squeeze(natural, words []int, room int) []int {
	widths := make([]int, len(natural))
	fill := func(level int, floor []int) int {
		for i := range widths {
			widths[i] = min(natural[i], max(level, floor[i]))
		}
		return sum(widths)
	}
	floor := words
	if fill(1, floor) > room {
		floor = make([]int, len(natural))
	}
	level := 1
	for level < room && fill(level+1, floor) <= room {
		level++
	}
	left := room - fill(level, floor)
	for i := range widths {
		if left > 0 && widths[i] < natural[i] {
			widths[i]++
			left--
		}
	}
	return widths
}

// unescapeBars returns the Markdown of a cell.
func unescapeBars(cell []byte) []byte { return bytes.ReplaceAll(cell, []byte(`\|`), []byte("|")) }

// scanRow puts the cells of a row into m.cells. Cells that there are no columns for
// become part of the last one: nothing is lost.
func (m *machine) scanRow(line []byte) {
	n := len(m.tbl.aligns)
	if len(m.cells) < n {
		m.cells = make([]inline, n)
	}
	cells := cellsOf(line)
	for i := range n {
		in := &m.cells[i]
		in.reset(m)
		if i >= len(cells) {
			continue
		}
		in.scan(unescapeBars(cells[i]))
		for i == n-1 && len(cells) > n {
			in.print([]byte(" | "), 0)
			in.scan(unescapeBars(cells[n]))
			cells = append(cells[:n], cells[n+1:]...)
		}
	}
}

// tableRow prints a row.
func (m *machine) tableRow(dst, line []byte, base style) []byte {
	if m.tbl.list {
		return m.listRow(dst, line)
	}
	if m.tbl.lines && base != baseHead {
		dst = m.tableRule(dst)
	}
	m.scanRow(line)
	n := len(m.tbl.aligns)
	painters := make([]painter, n)
	at := make([]int, n)
	for i := range n {
		painters[i] = painter{m: m, in: &m.cells[i], base: base}
	}
	for more := true; more; {
		more = false
		dst = m.prefix(dst)
		blanks := 0 // not printed unless something follows
		for i := range n {
			if i > 0 {
				dst = m.appendStyled(pad(dst, blanks+1), "│", baseRule)
				blanks = 1
			}
			text := m.cells[i].vis
			from, to, next := cellRow(text, at[i], m.tbl.widths[i])
			at[i] = next
			more = more || next < len(text)
			gap := m.tbl.widths[i] - width(text[from:to])
			left := 0
			switch m.tbl.aligns[i] {
			case alignRight:
				left = gap
			case alignCenter:
				left = gap / 2
			}
			if from < to {
				dst = painters[i].paint(pad(dst, blanks+left), from, to)
				blanks = gap - left
			} else {
				blanks += gap
			}
		}
		dst = append(dst, '\n')
	}
	return dst
}

// cellRow returns which part of the text of a cell its next row shows, and where the row
// after it begins.
func cellRow(text []byte, at, limit int) (from, to, next int) {
	if at >= len(text) {
		return at, at, at
	}
	end := len(text)
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		end = at + i
	}
	to, next = nextRow(text[at:end], limit)
	to, next = at+to, at+next
	if next == end && end < len(text) {
		next++
	}
	return at, to, next
}

// tableRule prints a line between rows.
func (m *machine) tableRule(dst []byte) []byte {
	columns := make([]string, len(m.tbl.widths))
	for i, w := range m.tbl.widths {
		columns[i] = strings.Repeat("─", w)
	}
	return m.plainRow(dst, []byte(strings.Join(columns, "─┼─")), baseRule)
}

// listRow prints a row as a list of its cells, each behind the name of its column.
func (m *machine) listRow(dst, line []byte) []byte {
	dst = m.ruleRow(dst)
	heads := cellsOf(m.tbl.head)
	m.scanRow(line)
	for i := range m.tbl.aligns {
		m.in.reset(m)
		m.in.scan(unescapeBars(heads[i]))
		m.in.print([]byte(": "), 0)
		for k := range m.in.runs {
			m.in.runs[k].style |= baseHead
		}
		cell := &m.cells[i]
		if len(cell.vis) == 0 {
			continue
		}
		shift := len(m.in.vis)
		links := int32(len(m.in.links))
		m.in.vis = append(m.in.vis, cell.vis...)
		m.in.links = append(m.in.links, cell.links...)
		for _, r := range cell.runs {
			if r.link > 0 {
				r.link += links
			}
			r.end += shift
			m.in.runs = append(m.in.runs, r)
		}
		limit := m.limit
		if limit == 0 {
			limit = m.columns
		}
		dst = m.appendWrapped(dst, 0, limit)
	}
	return dst
}
