package document

import (
	"strconv"
	"strings"
)

// readSheets reads a workbook of Excel, each sheet as a table.
func readSheets(a *archive, w *writer) error {
	main, parts := a.main("xl/workbook.xml")
	b := &workbook{archive: a, formats: make(map[string]numberFormat)}
	if err := a.noteDamage("texts of cells", b.readStrings(parts.of("sharedStrings", "xl/sharedStrings.xml"))); err != nil {
		return err
	}
	if err := a.noteDamage("formats of numbers", b.readStyles(parts.of("styles", "xl/styles.xml"))); err != nil {
		return err
	}
	type sheet struct{ name, file string }
	var sheets []sheet
	err := a.walk(main, handler{start: func(name string, e element) bool {
		switch name {
		case "workbookPr":
			b.from1904 = e.says("date1904")
		case "sheet":
			title := e.attr("name")
			if r, ok := e.relationOf(parts, "id"); !ok || !a.has(r.target) {
				a.say("sheet " + quoteName(title) + " (missing)")
			} else if state := e.attr("state"); state == "hidden" || state == "veryHidden" {
				a.say("sheet " + quoteName(title) + ", which is hidden")
			} else {
				sheets = append(sheets, sheet{title, r.target})
			}
		}
		return false
	}})
	if err := a.noteDamage("the list of sheets", err); err != nil {
		return err
	}
	for _, s := range sheets {
		w.text(s.name)
		w.paragraph(headingMark(2))
		if err := a.noteDamage("sheet "+quoteName(s.name), b.sheet(w, s.name, s.file)); err != nil {
			return err
		}
		if err := b.drawings(w, s.name, s.file); err != nil {
			return err
		}
		if w.tooLong() {
			return errTooLarge
		}
	}
	return nil
}

type workbook struct {
	*archive
	shared   []string // texts that cells refer to
	codes    []string // formats of the styles of cells
	formats  map[string]numberFormat
	from1904 bool // days count from 1904
}

// readStrings reads the texts that cells refer to.
func (b *workbook) readStrings(file string) error {
	if !b.has(file) {
		return nil
	}
	var text strings.Builder
	inText, size := false, int64(0)
	return b.walk(file, handler{
		start: func(name string, _ element) bool {
			inText = name == "t"
			if name == "si" {
				text.Reset()
			}
			return name == "rPh" || size > b.most // how a text is pronounced
		},
		text: func(s string) {
			if inText {
				text.WriteString(s)
			}
		},
		end: func(name string) {
			inText = false
			if name == "si" {
				const header = 16 // bytes of a string beside its text
				size += int64(text.Len()) + header
				b.shared = append(b.shared, text.String())
			}
		},
	})
}

// readStyles finds how the styles of cells show numbers.
func (b *workbook) readStyles(file string) error {
	if !b.has(file) {
		return nil
	}
	codes := make(map[string]string)
	inCells := false
	return b.walk(file, handler{
		start: func(name string, e element) bool {
			switch name {
			case "numFmt":
				codes[e.attr("numFmtId")] = e.attr("formatCode")
			case "cellXfs":
				inCells = true
			case "xf":
				if id := e.attr("numFmtId"); inCells {
					if n, err := strconv.Atoi(id); err == nil && codes[id] == "" {
						codes[id] = builtIn[n]
					}
					b.codes = append(b.codes, codes[id])
				}
			}
			return false
		},
		end: func(name string) { inCells = inCells && name != "cellXfs" },
	})
}

// sheetReader is the state of reading a sheet.
type sheetReader struct {
	*workbook
	w                       *writer
	value                   strings.Builder
	inValue                 bool
	kind, style             string // of the open cell
	column                  int
	formula                 bool // the open cell has one
	hidden                  map[int]bool
	hiddenRows, hiddenCells int // that are not empty
	unknown                 int // formulas without a value
}

// sheet writes the cells of a sheet.
func (b *workbook) sheet(w *writer, title, file string) error {
	s := &sheetReader{workbook: b, w: w, hidden: make(map[int]bool)}
	w.beginTable()
	err := b.walk(file, handler{start: s.start, end: s.end, text: func(text string) {
		if s.inValue {
			s.value.WriteString(text)
		}
	}})
	w.endTable()
	of := " of sheet " + quoteName(title)
	if w.cut {
		b.say("columns beyond " + strconv.Itoa(maxColumns) + of)
		w.cut = false
	}
	for _, left := range []struct {
		n          int
		noun, rest string
	}{{s.hiddenRows, "hidden row", of}, {s.hiddenCells, "hidden column", of}, {s.unknown, "formula", " without a value" + of}} {
		if left.n > 0 {
			b.count(left.n, left.noun, left.rest)
		}
	}
	return err
}

func (s *sheetReader) start(name string, e element) (skip bool) {
	s.inValue = name == "v" || name == "t"
	switch name {
	case "col":
		from, _ := strconv.Atoi(e.attr("min"))
		to, _ := strconv.Atoi(e.attr("max"))
		if e.says("hidden") && from > 0 {
			for i := from; i <= min(to, maxColumns); i++ {
				s.hidden[i-1] = false // until there is something in it
			}
		}
	case "row":
		s.column = 0
		if e.says("hidden") {
			s.hiddenRows++
			return true
		}
	case "c":
		s.value.Reset()
		s.kind, s.style, s.formula = e.attr("t"), e.attr("s"), false
		if n := columnOf(e.attr("r")); n > 0 {
			s.column = n - 1
		}
		s.column = min(s.column, maxColumns)
	case "f":
		s.formula = true
		return true
	case "rPh", "extLst":
		return true
	case "oddHeader", "oddFooter":
		s.say("headers and footers of printed sheets")
		return true
	}
	return s.w.tooLong()
}

func (s *sheetReader) end(name string) {
	s.inValue = false
	switch name {
	case "c":
		text := s.cellText(s.value.String(), s.kind, s.style)
		if s.formula && s.value.Len() == 0 && s.kind != "str" {
			s.unknown++
		}
		if used, ok := s.hidden[s.column]; ok {
			if text != "" && !used {
				s.hidden[s.column] = true
				s.hiddenCells++
			}
			text = ""
		}
		if s.column >= maxColumns {
			s.w.cut = s.w.cut || text != ""
		} else if text != "" && len(s.w.cells) <= s.column {
			s.w.fillCells(s.column)
			s.w.addCell(text)
		}
		s.column++
	case "row":
		s.w.row()
	}
}

// drawings writes what lies on a sheet: text boxes and charts.
func (b *workbook) drawings(w *writer, title, file string) error {
	for _, r := range b.relations(file).all {
		switch {
		case (r.kind == "comments" || r.kind == "threadedComment") && b.has(r.target):
			b.say("comments of sheet " + quoteName(title))
		case r.kind == "drawing" && b.has(r.target):
			v := &shapes{presentation: &presentation{b.archive, make(map[string]bool)}, w: w, parts: b.relations(r.target)}
			if err := b.noteDamage("drawings of sheet "+quoteName(title), b.walk(r.target, v.handler())); err != nil {
				return err
			}
		}
	}
	return nil
}

// columnOf returns the number of the column in the name of a cell, from 1, such as 28 for AB3; 0 if
// there is none.
func columnOf(cell string) int {
	n := 0
	for _, c := range []byte(cell) {
		if c < 'A' || c > 'Z' || n > maxColumns {
			break
		}
		n = n*26 + int(c-'A') + 1
	}
	return n
}

// format returns the format of a style. Files may have far more formats than are used.
func (b *workbook) format(style string) numberFormat {
	i, err := strconv.Atoi(style)
	if err != nil || i < 0 || i >= len(b.codes) {
		return numberFormat{}
	}
	f, ok := b.formats[b.codes[i]]
	if !ok {
		f = parseFormat(b.codes[i])
		b.formats[b.codes[i]] = f
	}
	return f
}

// cellText returns what a cell shows.
func (b *workbook) cellText(value, kind, style string) string {
	format := b.format(style)
	switch kind {
	case "s":
		if i, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && i >= 0 && i < len(b.shared) {
			return format.string(b.shared[i])
		}
		return ""
	case "b":
		return map[string]string{"0": "FALSE", "1": "TRUE"}[value]
	case "", "n":
		number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return value
		}
		return format.number(number, b.from1904)
	case "str", "inlineStr":
		return format.string(value)
	}
	return value
}
