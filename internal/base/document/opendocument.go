package document

import (
	"path"
	"strconv"
	"strings"
	"unicode"
)

// Limits of what a spreadsheet repeats.
const (
	maxRepeat = 64   // blanks
	maxRows   = 1024 // rows
)

// readOpenDocument reads a text, a presentation or a spreadsheet of LibreOffice and its like.
func readOpenDocument(a *archive, w *writer) error {
	o := newOpenDocument(a)
	if a.has("styles.xml") {
		if err := a.noteDamage("headers and footers", a.walk("styles.xml", handler{o.startStyles, o.endStyles, o.characters})); err != nil {
			return err
		}
	}
	o.writer, o.inText, o.margin = newWriter(a.most), 0, ""
	if err := a.noteDamage("the text", a.walk("content.xml", handler{o.start, o.end, o.characters})); err != nil {
		return err
	}
	if o.sheets || o.slides > 0 {
		o.header, o.footer = "", ""
	}
	w.block(o.header)
	w.block(o.writer.String())
	w.block(o.footer)
	return nil
}

// openDocument is the state of reading one.
type openDocument struct {
	*archive
	*writer
	inText   int        // paragraphs that are open, in each other
	heading  mark       // of the open heading
	items    []openList // lists that are open, in each other
	blanks   int        // empty cells before the open one
	repeated int        // how often the open cell is repeated in its row
	rows     int        // how often the open row is repeated in its table
	sheets   bool       // it is a spreadsheet
	slides   int
	frames   []openFrame
	columns  []bool // of the open table: whether they are hidden

	outlines *listShape            // how headings are numbered
	lists    map[string]*listShape // how lists are numbered, by the names of their styles
	unseen   map[string]bool       // styles of sheets that are hidden, and of text that is
	style    string                // being read
	shape    *listShape            // being read
	margin   string                // "header" or "footer" that is being read
	header   string
	footer   string
	footers  map[string]string // of slides, by name, until one of them has shown it
	declared string            // name of the footer that is being read
}

func newOpenDocument(a *archive) *openDocument {
	return &openDocument{archive: a, writer: newWriter(a.most), lists: make(map[string]*listShape), unseen: make(map[string]bool), footers: make(map[string]string)}
}

// openList is a list that is open.
type openList struct {
	shape *listShape
	fresh bool // the next paragraph begins an item
}

// openFrame is a frame that is open.
type openFrame struct{ picture, other bool }

func (o *openDocument) characters(s string) {
	if o.inText > 0 {
		o.text(s)
	}
}

// startStyles takes the beginning of an element of styles.xml: the styles, and headers and footers with their text.
func (o *openDocument) startStyles(name string, e element) (skip bool) {
	switch name {
	case "header", "footer", "header-left", "footer-left", "header-first", "footer-first":
		if e.Name.Space == "style" {
			o.margin, _, _ = strings.Cut(name, "-")
			return e.attr("display") == "false"
		}
	case "master-page", "master-styles":
		return o.tooLong()
	case "notes", "handout-master", "frame", "custom-shape", "rect":
		return o.margin == ""
	}
	if o.margin != "" {
		return o.start(name, e)
	}
	o.startStyle(name, e)
	return false
}

func (o *openDocument) endStyles(name string) {
	switch name {
	case "header", "footer", "header-left", "footer-left", "header-first", "footer-first":
		text := strings.TrimSpace(o.writer.String())
		o.writer = newWriter(o.archive.most)
		into := &o.header
		if o.margin == "footer" {
			into = &o.footer
		}
		if strings.ContainsFunc(text, unicode.IsLetter) && !strings.Contains("\n\n"+*into+"\n\n", "\n\n"+text+"\n\n") {
			*into = strings.TrimSpace(*into + "\n\n" + text)
		}
		o.margin = ""
	default:
		if o.margin != "" {
			o.end(name)
		}
	}
}

// startStyle takes the beginning of an element of a style.
func (o *openDocument) startStyle(name string, e element) {
	switch name {
	case "style":
		o.style = e.attr("name")
	case "table-properties", "text-properties", "drawing-page-properties":
		if e.attr("display") == "false" || e.attr("display") == "none" || e.attr("visibility") == "hidden" {
			o.unseen[o.style] = true
		}
	case "outline-style":
		o.shape = newListShape()
		o.outlines = o.shape
	case "list-style":
		o.shape = newListShape()
		o.lists[e.attr("name")] = o.shape
	case "outline-level-style", "list-level-style-number", "list-level-style-bullet", "list-level-style-image":
		level, err := strconv.Atoi(e.attr("level"))
		if o.shape == nil || err != nil || level < 1 || level > maxLevels {
			return
		}
		one := &listLevel{start: 1, format: map[string]string{"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}[e.attr("num-format")]}
		if n, err := strconv.Atoi(e.attr("start-value")); err == nil {
			one.start = n
		}
		shown, _ := strconv.Atoi(e.attr("display-levels"))
		for i := level - min(max(shown, 1), level) + 1; i <= level; i++ {
			one.text += "%" + strconv.Itoa(i)
			if i < level {
				one.text += "."
			}
		}
		cut := func(s string) string { return s[:min(len(s), maxLabel)] }
		one.text = cut(e.attr("num-prefix")) + one.text + cut(e.attr("num-suffix"))
		if name == "list-level-style-bullet" || name == "list-level-style-image" {
			one.format = "bullet"
		} else if one.format == "" {
			one.format, one.text = "none", ""
		}
		o.shape.levels[level-1] = one
	}
}

// next returns the label of the next paragraph of a level.
func (s *listShape) next(level int) (string, bool) {
	n := numbering{map[string]*numberedList{"1": {shape: "s"}}, map[string]*listShape{"s": s}, nil}
	return n.next("1", level)
}

func (o *openDocument) start(name string, e element) (skip bool) {
	switch name {
	case "note-body":
		o.text(" (")
	case "annotation":
		o.archive.count(1, "comment", "")
		return true
	case "note-citation", "tracked-changes", "forms", "settings", "hidden-text", "hidden-paragraph", "ruby-text", "desc", "title":
		return name != "title" || e.Name.Space == "svg"
	case "page-number": // a placeholder on slides, of which each has its own
		return o.slides > 0
	case "spreadsheet":
		o.sheets = true
	case "footer-decl":
		o.inText++
		o.declared = e.attr("name")
	case "page":
		o.paragraph("")
		o.slides++
		if o.unseen[e.attr("style-name")] {
			o.say("slide " + strconv.Itoa(o.slides) + ", which is hidden")
			return true
		}
		o.text(slideHeading(o.slides, ""))
		o.paragraph(headingMark(2))
		if name := e.attr("use-footer-name"); name != "" { // a footer is there once
			o.text(o.footers[name])
			o.paragraph("")
			delete(o.footers, name)
		}
	case "h":
		o.inText++
		level, _ := strconv.Atoi(e.attr("outline-level"))
		o.heading = headingMark(level)
		if o.outlines != nil && e.attr("is-list-header") != "true" {
			if label, _ := o.outlines.next(max(level, 1) - 1); label != "" {
				o.heading += mark(label + " ")
			}
		}
	case "p":
		o.inText++
	case "span":
		if o.unseen[e.attr("style-name")] {
			o.say("hidden text")
			return true
		}
	case "s":
		n, _ := strconv.Atoi(e.attr("c"))
		o.text(strings.Repeat(" ", min(max(n, 1), maxRepeat)))
	case "tab":
		o.text(" ")
	case "line-break":
		o.text("\n")
	case "list":
		one := openList{shape: o.lists[e.attr("style-name")]}
		if n := len(o.items); one.shape == nil && n > 0 {
			one.shape = o.items[n-1].shape
		} else if one.shape != nil && e.attr("continue-numbering") != "true" && e.attr("continue-list") == "" {
			delete(one.shape.counts, n)
		}
		o.items = append(o.items, one)
	case "list-item":
		if n := len(o.items); n > 0 {
			o.items[n-1].fresh = true
			if v, err := strconv.Atoi(e.attr("start-value")); err == nil && o.items[n-1].shape != nil {
				o.items[n-1].shape.counts[n-1] = v - 1
			}
		}
	case "frame":
		o.frames = append(o.frames, openFrame{})
	case "image", "text-box", "object", "object-ole":
		return o.framed(name, e)
	case "table", "table-column", "table-row", "table-cell", "covered-table-cell":
		return o.startTable(name, e)
	default:
		o.startStyle(name, e)
	}
	return o.tooLong()
}

// framed takes what is in a frame, which may be there in several forms.
func (o *openDocument) framed(name string, e element) (skip bool) {
	n := len(o.frames) - 1
	if n < 0 {
		return false
	}
	switch f := &o.frames[n]; name {
	case "image":
		f.picture = true
		return true
	case "object-ole":
		f.other = true
		o.archive.count(1, "embedded object", "")
	case "object":
		f.other = true
		part := path.Join(path.Clean(e.attr("href")), "content.xml")
		inner := newOpenDocument(o.archive)
		if o.has(part) && len(o.frames) < maxLevels {
			inner.frames = append(o.frames[:n:n], openFrame{}, openFrame{other: true})
			_ = o.noteDamage("an embedded object", o.walk(part, handler{inner.start, inner.end, inner.characters}))
		}
		text := inner.writer.String()
		if o.sheets { // the values of a chart are in cells
			text, _, _ = strings.Cut(text, "\n|")
		}
		if strings.TrimSpace(text) == "" {
			o.archive.count(1, "embedded object", "")
		} else if o.inText > 0 {
			o.text(" " + strings.Join(strings.Fields(text), " ") + " ")
		} else {
			o.block(text)
		}
		return true
	default:
		f.other = true
	}
	return o.tooLong()
}

// startTable takes the beginning of a table or of a part of one.
func (o *openDocument) startTable(name string, e element) (skip bool) {
	hidden := e.attr("visibility") == "collapse" || e.attr("visibility") == "filter"
	switch name {
	case "table":
		if o.sheets && o.tables == 0 {
			if o.unseen[e.attr("style-name")] {
				o.say("sheet " + quoteName(e.attr("name")) + ", which is hidden")
				return true
			}
			o.text(e.attr("name"))
			o.paragraph(headingMark(2))
		}
		if o.tables == 0 {
			o.columns = nil
		}
		o.beginTable()
	case "table-column":
		n, _ := strconv.Atoi(e.attr("number-columns-repeated"))
		for range min(max(n, 1), maxColumns) {
			if o.tables == 1 && len(o.columns) < maxColumns {
				o.columns = append(o.columns, hidden)
			}
		}
	case "table-row":
		o.rows, _ = strconv.Atoi(e.attr("number-rows-repeated"))
		if hidden && o.tables == 1 {
			if o.rows < maxRows { // else it is the rest of the sheet, which is empty
				o.archive.count(max(o.rows, 1), "hidden row", "")
			}
			return true
		}
	default:
		o.repeated, _ = strconv.Atoi(e.attr("number-columns-repeated"))
	}
	return o.tooLong()
}

func (o *openDocument) end(name string) {
	switch name {
	case "footer-decl":
		o.inText--
		o.footers[o.declared] = o.para.String()
		o.para.Reset()
	case "h":
		o.inText--
		o.paragraph(o.heading)
	case "p":
		if o.inText--; o.inText > 0 { // of a note or a box within a paragraph
			o.text(" ")
		} else {
			o.item()
		}
	case "note-body":
		o.text(")")
	case "list":
		o.items = o.items[:max(0, len(o.items)-1)]
	case "frame":
		if n := len(o.frames) - 1; n >= 0 {
			if o.frames[n].picture && !o.frames[n].other {
				o.archive.count(1, "picture", " without text")
			}
			o.frames = o.frames[:n]
		}
	case "table-cell", "covered-table-cell":
		text := o.para.String()
		if o.tables == 1 && o.hiddenColumn() && strings.TrimSpace(text) != "" {
			o.say("hidden columns")
			text = ""
			o.para.Reset()
		}
		if o.tables == 1 && strings.TrimSpace(text) == "" {
			o.blanks += max(o.repeated, 1) // most often to the end of the row
			o.repeated = 0
			o.para.Reset()
			return
		}
		if o.tables == 1 {
			o.fillCells(len(o.cells) + o.blanks)
			o.blanks = 0
		}
		o.cell()
		for i := 1; i < min(o.repeated, maxColumns) && o.tables == 1 && !o.tooLong(); i++ {
			o.addCell(text)
		}
		o.repeated = 0
	case "table-row":
		cells := o.cells
		for i := 1; i < min(o.rows, maxRows) && o.tables == 1 && strings.Join(cells, "") != "" && !o.tooLong(); i++ {
			o.row()
			o.cells = cells
		}
		o.rows = 0
		if o.tables == 1 {
			o.blanks = 0
		}
		o.row()
	case "table":
		if o.endTable(); o.cut {
			o.say("columns beyond " + strconv.Itoa(maxColumns))
		}
	}
}

// hiddenColumn reports whether the open cell is in a column that is hidden.
func (o *openDocument) hiddenColumn() bool {
	i := len(o.cells) + o.blanks
	return i < len(o.columns) && o.columns[i]
}

// item ends a paragraph, with the label that it has in a list.
func (o *openDocument) item() {
	n := len(o.items) - 1
	if n < 0 {
		o.paragraph("")
		return
	}
	list := &o.items[n]
	label, bullet := "", true
	if list.fresh && list.shape != nil {
		label, bullet = list.shape.next(n)
	}
	switch {
	case label != "":
		o.paragraph(mark(label + " "))
	case list.fresh && bullet || list.shape == nil:
		o.paragraph(itemMark)
	default:
		o.paragraph("")
	}
	list.fresh = false
}
