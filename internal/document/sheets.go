package document

import (
	"context"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxColumns is how many columns of a sheet are read.
const maxColumns = 1024

// readSheets reads a workbook of Excel, each sheet as a table.
func readSheets(ctx context.Context, data []byte) (text string, unread []string, err error) {
	a, err := openArchive(ctx, data)
	if err != nil {
		return "", nil, err
	}
	const main = "xl/workbook.xml"
	relations, err := a.relations(main)
	if err != nil {
		return "", nil, err
	}
	b := &workbook{archive: a}
	if err := b.readStrings(); err != nil {
		return "", nil, err
	}
	if err := b.readStyles(); err != nil {
		return "", nil, err
	}
	type sheet struct{ name, file string }
	var sheets []sheet
	err = a.walk(main, handler{start: func(name string, e element) bool {
		switch name {
		case "workbookPr":
			b.from1904 = e.attr("date1904") == "1" || e.attr("date1904") == "true"
		case "sheet":
			if r, ok := e.related(relations); ok && r.kind == "worksheet" {
				sheets = append(sheets, sheet{e.attr("name"), r.target})
			}
		}
		return false
	}})
	if err != nil {
		return "", nil, err
	}
	w := &writer{}
	for _, s := range sheets {
		w.text(s.name)
		w.paragraph(headingMark(2))
		if err := b.sheet(w, s.file); err != nil {
			return "", nil, err
		}
	}
	return w.String(), nil, nil
}

type workbook struct {
	*archive
	shared   []string // texts that cells refer to
	dates    []bool   // whether cells of a style are dates
	from1904 bool     // days count from 1904
}

// readStrings reads the texts that cells refer to.
func (b *workbook) readStrings() error {
	const file = "xl/sharedStrings.xml"
	if !b.has(file) {
		return nil
	}
	var text strings.Builder
	inText, size := false, 0
	return b.walk(file, handler{
		start: func(name string, _ element) bool {
			inText = name == "t"
			if name == "si" {
				text.Reset()
			}
			return name == "rPh" || size > maxText // how a text is pronounced
		},
		text: func(s string) {
			if inText {
				text.WriteString(s)
			}
		},
		end: func(name string) {
			inText = false
			if name == "si" {
				size += text.Len() + 1
				b.shared = append(b.shared, text.String())
			}
		},
	})
}

// datePart matches what makes the format of a number that of a date, once what is quoted is gone.
var datePart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[yYdD]|[hH]+:`) })

var quotedPart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"[^"]*"|\\.|\[[^\]]*\]`) })

// readStyles finds the styles that are those of dates.
func (b *workbook) readStyles() error {
	const file = "xl/styles.xml"
	if !b.has(file) {
		return nil
	}
	formats := make(map[string]bool)
	inCells := false
	return b.walk(file, handler{
		start: func(name string, e element) bool {
			switch name {
			case "numFmt":
				formats[e.attr("numFmtId")] = datePart().MatchString(quotedPart().ReplaceAllString(e.attr("formatCode"), ""))
			case "cellXfs":
				inCells = true
			case "xf":
				if id := e.attr("numFmtId"); inCells {
					n, _ := strconv.Atoi(id)
					b.dates = append(b.dates, formats[id] || n >= 14 && n <= 22 || n >= 45 && n <= 47)
				}
			}
			return false
		},
		end: func(name string) { inCells = inCells && name != "cellXfs" },
	})
}

// sheet writes the cells of a sheet.
func (b *workbook) sheet(w *writer, file string) error {
	if !b.has(file) {
		return nil
	}
	var (
		value       strings.Builder
		inValue     bool
		kind, style string
		column      int
	)
	w.beginTable()
	defer w.endTable()
	return b.walk(file, handler{
		start: func(name string, e element) bool {
			inValue = name == "v" || name == "t"
			switch name {
			case "row":
				column = 0
			case "c":
				value.Reset()
				kind, style = e.attr("t"), e.attr("s")
				if n := columnOf(e.attr("r")); n > 0 {
					column = n - 1
				}
				column = min(column, maxColumns)
			}
			return name == "f" || w.tooLong()
		},
		text: func(s string) {
			if inValue {
				value.WriteString(s)
			}
		},
		end: func(name string) {
			inValue = false
			switch name {
			case "c":
				if text := b.cellText(value.String(), kind, style); text != "" && column < maxColumns && len(w.cells) <= column {
					for len(w.cells) < column {
						w.cells = append(w.cells, "")
					}
					w.addCell(text)
				}
				column++
			case "row":
				w.row()
			}
		},
	})
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

// cellText returns what a cell shows.
func (b *workbook) cellText(value, kind, style string) string {
	switch kind {
	case "s":
		if i, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && i >= 0 && i < len(b.shared) {
			return b.shared[i]
		}
		return ""
	case "b":
		return map[string]string{"0": "FALSE", "1": "TRUE"}[value]
	case "", "n":
		number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return value
		}
		if i, err := strconv.Atoi(style); err == nil && i >= 0 && i < len(b.dates) && b.dates[i] {
			return b.date(number)
		}
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return value
}

// date returns the date that is a number of days.
func (b *workbook) date(days float64) string {
	epoch := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if b.from1904 {
		epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if !(days >= 0 && days < 3e6) {
		return strconv.FormatFloat(days, 'f', -1, 64)
	}
	day, part := math.Modf(days)
	at := epoch.AddDate(0, 0, int(day)).Add(time.Duration(math.Round(part*86400)) * time.Second)
	switch {
	case part == 0:
		return at.Format(time.DateOnly)
	case day == 0:
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}
