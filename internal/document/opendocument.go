package document

import (
	"context"
	"strconv"
	"strings"
)

// maxRepeat is how often a cell or a blank that a document repeats is written.
const maxRepeat = 64

// readOpenDocument reads a text, a presentation or a spreadsheet of LibreOffice and its like.
func readOpenDocument(ctx context.Context, data []byte) (text string, unread []string, err error) {
	a, err := openArchive(ctx, data)
	if err != nil {
		return "", nil, err
	}
	w := &writer{}
	err = a.walk("content.xml", (&openDocument{writer: w}).handler())
	return w.String(), nil, err
}

// openDocument is the state of reading one.
type openDocument struct {
	*writer
	inText   int  // paragraphs that are open, in each other
	heading  mark // of the open heading
	items    int  // items of lists that are open
	repeated int  // how often the open cell stands in its row
	sheets   bool // it is a spreadsheet
	slides   int
}

func (o *openDocument) handler() handler {
	return handler{start: o.start, end: o.end, text: func(s string) {
		if o.inText > 0 {
			o.text(s)
		}
	}}
}

func (o *openDocument) start(name string, e element) (skip bool) {
	switch name {
	case "note-body":
		o.text(" (")
	case "annotation", "note-citation", "tracked-changes", "forms", "automatic-styles", "settings":
		return true
	case "spreadsheet":
		o.sheets = true
	case "page":
		o.paragraph("")
		o.slides++
		o.text(slideHeading(o.slides, ""))
		o.paragraph(headingMark(2))
	case "h":
		o.inText++
		level, _ := strconv.Atoi(e.attr("outline-level"))
		o.heading = headingMark(level)
	case "p":
		o.inText++
	case "s":
		n, _ := strconv.Atoi(e.attr("c"))
		o.text(strings.Repeat(" ", min(max(n, 1), maxRepeat)))
	case "tab":
		o.text(" ")
	case "line-break":
		o.text("\n")
	case "list-item":
		o.items++
	case "table":
		if o.sheets && o.tables == 0 {
			o.text(e.attr("name"))
			o.paragraph(headingMark(2))
		}
		o.beginTable()
	case "table-cell", "covered-table-cell":
		o.repeated, _ = strconv.Atoi(e.attr("number-columns-repeated"))
	}
	return o.tooLong()
}

func (o *openDocument) end(name string) {
	switch name {
	case "h":
		o.inText--
		o.paragraph(o.heading)
	case "p":
		switch o.inText--; {
		case o.inText > 0: // of a note or a box within a paragraph
			o.text(" ")
		case o.items > 0:
			o.paragraph(itemMark)
		default:
			o.paragraph("")
		}
	case "note-body":
		o.text(")")
	case "list-item":
		o.items--
	case "table-cell", "covered-table-cell":
		text := o.para.String()
		o.cell()
		for range min(o.repeated-1, maxRepeat) {
			if o.tables == 1 {
				o.addCell(text)
			}
		}
	case "table-row":
		o.row()
	case "table":
		o.endTable()
	}
}
