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
	most int             // bytes that may be written

	tables int             // that are open, in each other
	cells  []string        // of the open row
	held   int             // bytes in cells
	cut    bool            // there are more columns than are read
	header []string        // the first row of the outermost table; nil before that
	body   strings.Builder // its other rows
	width  int             // cells of its longest row
}

// newWriter returns a writer for a document that may have so much text.
func newWriter(most int64) *writer { return &writer{most: int(min(most, maxText))} }

// mark is put before a paragraph: "# " and its like, "- ", "1. ", or nothing.
type mark string

func headingMark(level int) mark { return mark(strings.Repeat("#", min(max(level, 1), 6)) + " ") }

const itemMark mark = "- "

// isItem reports whether a paragraph is an item of a list, which no blank line divides from the next.
func (m mark) isItem() bool {
	return m == itemMark || len(m) < 8 && (strings.HasSuffix(string(m), ". ") || strings.HasSuffix(string(m), ") "))
}

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
	if w.out.Len() > 0 && (!w.item || !m.isItem()) {
		w.out.WriteByte('\n')
	}
	w.item = m.isItem()
	w.out.WriteString(string(m) + text + "\n")
}

func (w *writer) beginTable() {
	if w.tables == 0 {
		w.paragraph("")
		w.header, w.cells, w.width = nil, nil, 0
	}
	w.tables++
}

// endTable ends a table. Its header is as wide as its longest row.
func (w *writer) endTable() {
	if w.tables = max(0, w.tables-1); w.tables > 0 {
		return
	}
	w.row()
	if w.header != nil {
		if w.out.Len() > 0 {
			w.out.WriteByte('\n')
		}
		w.out.WriteString("| " + strings.Join(w.header, " | ") + strings.Repeat(" | ", w.width-len(w.header)) + " |\n")
		w.out.WriteString("|" + strings.Repeat("---|", w.width) + "\n" + w.body.String())
		w.header = nil
		w.body.Reset()
	}
	w.para.Reset()
	w.item = false
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
	if len(w.cells) >= maxColumns {
		w.cut = w.cut || strings.TrimSpace(text) != ""
		return
	}
	w.held += len(text)
	w.cells = append(w.cells, strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`))
}

// fillCells adds empty cells until a row has n.
func (w *writer) fillCells(n int) {
	for len(w.cells) < min(n, maxColumns) && w.tables == 1 {
		w.cells = append(w.cells, "")
	}
}

// row ends a row. Empty ones are left out.
func (w *writer) row() {
	if w.tables > 1 {
		return
	}
	cells := w.cells
	w.cells, w.held = nil, 0
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	if len(cells) == 0 {
		return
	}
	if w.width = max(w.width, len(cells)); w.header == nil {
		w.header = cells
		return
	}
	w.body.WriteString("| " + strings.Join(cells, " | ") + " |\n")
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

// block writes paragraphs that are Markdown already.
func (w *writer) block(markdown string) {
	if markdown = strings.TrimSpace(markdown); markdown == "" {
		return
	}
	if w.tables > 0 {
		w.para.WriteString(" " + markdown + " ")
		return
	}
	w.paragraph("")
	if w.out.Len() > 0 {
		w.out.WriteByte('\n')
	}
	w.out.WriteString(markdown + "\n")
	w.item = false
}

// size returns the bytes that were written.
func (w *writer) size() int { return w.out.Len() + w.body.Len() + w.para.Len() + w.held }

// tooLong reports whether there is more text than the document may have.
func (w *writer) tooLong() bool { return w.size() > w.most }

// String returns the Markdown.
func (w *writer) String() string {
	for w.tables > 0 { // of a damaged part
		w.cell()
		w.endTable()
	}
	w.paragraph("")
	return w.out.String()
}

// maxColumns is how many columns of a table are read.
const maxColumns = 1024

func slideHeading(n int, title string) string {
	if title = strings.Join(strings.Fields(title), " "); title != "" {
		return fmt.Sprintf("Slide %d: %s", n, title)
	}
	return fmt.Sprintf("Slide %d", n)
}
