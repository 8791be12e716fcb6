package document

import (
	"fmt"
	"strings"
)

// writer puts paragraphs, headings, lists and tables into Markdown.
type writer struct {
	out  strings.Builder
	para strings.Builder // the paragraph or the cell being read
	item bool            // the last paragraph was an item of a list

	tables int // that are open, in each other
	rows   int // that were written of the outermost one
	cells  []string
}

// mark is put before a paragraph: "# " and its like, "- ", or nothing.
type mark string

func headingMark(level int) mark { return mark(strings.Repeat("#", min(max(level, 1), 6)) + " ") }

const itemMark mark = "- "

func (w *writer) text(s string) { w.para.WriteString(s) }

// paragraph ends a paragraph. One in a table belongs to its cell.
func (w *writer) paragraph(m mark) {
	if w.tables > 0 {
		w.para.WriteByte(' ')
		return
	}
	text := strings.TrimSpace(w.para.String())
	w.para.Reset()
	if text == "" {
		return
	}
	if m != "" {
		text = strings.Join(strings.Fields(text), " ")
	}
	if w.out.Len() > 0 && (!w.item || m != itemMark) {
		w.out.WriteByte('\n')
	}
	w.item = m == itemMark
	w.out.WriteString(string(m) + text + "\n")
}

func (w *writer) beginTable() {
	if w.tables == 0 {
		w.paragraph("")
		w.rows, w.cells = 0, nil
	}
	w.tables++
}

func (w *writer) endTable() {
	if w.tables = max(0, w.tables-1); w.tables == 0 {
		w.para.Reset()
		w.item = false
	}
}

// cell ends a cell. Cells of a table within a cell are part of that.
func (w *writer) cell() {
	if w.tables > 1 {
		w.para.WriteByte(' ')
		return
	}
	w.addCell(w.para.String())
	w.para.Reset()
}

func (w *writer) addCell(text string) {
	w.cells = append(w.cells, strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`))
}

// row ends a row. Empty ones are left out.
func (w *writer) row() {
	if w.tables > 1 {
		return
	}
	cells := w.cells
	w.cells = nil
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	if len(cells) == 0 {
		return
	}
	if w.rows == 0 && w.out.Len() > 0 {
		w.out.WriteByte('\n')
	}
	w.out.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	if w.rows++; w.rows == 1 {
		w.out.WriteString("|" + strings.Repeat("---|", len(cells)) + "\n")
	}
}

// endOfTable takes note of the end of an element of Office Open XML, as far as it is part of a table.
func (w *writer) endOfTable(name string) {
	switch name {
	case "tc":
		w.cell()
	case "tr":
		w.row()
	case "tbl":
		w.endTable()
	}
}

// tooLong reports whether there is more text than a document may have.
func (w *writer) tooLong() bool { return w.out.Len()+w.para.Len() > maxText }

// String returns the Markdown.
func (w *writer) String() string {
	w.paragraph("")
	return w.out.String()
}

func slideHeading(n int, title string) string {
	if title = strings.Join(strings.Fields(title), " "); title != "" {
		return fmt.Sprintf("Slide %d: %s", n, title)
	}
	return fmt.Sprintf("Slide %d", n)
}
