// Package pdf reads the text of PDF files.
//
// A page is a program that puts glyphs, the characters of its fonts, at places. The words and lines follow
// from the places: what is near belongs to a word, and what is lower begins a line. The order of
// the lines is that of the program, which is nearly always the order of reading. Within a line it is, too,
// unless the line has letters that are read from right to left.
package pdf

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// maxText bounds the text of a file, in bytes.
const maxText = 64 << 20

var (
	errNoPages = errors.New("the PDF file is malformed: it has no pages")
	errTooLong = errors.New("the PDF file has too much text")
)

// Text returns the text of a PDF file, with a blank line between paragraphs and a form feed between pages. Text that is
// in pictures is not found; if the file has other text, its last line names the pages that have pictures and no text.
// Files that need a password or have no pages are an error. unread says the same about pages with pictures.
func Text(ctx context.Context, data []byte) (text string, unread []string, err error) {
	f, err := open(ctx, data)
	if err != nil {
		return "", nil, err
	}
	pages := f.pages()
	if len(pages) == 0 {
		return "", nil, errNoPages
	}
	var out strings.Builder
	var pictures []int // pages
	fonts := make(map[ref]*font)
	found := false
	for i, p := range pages {
		if i > 0 {
			out.WriteByte('\f')
		}
		if err := f.step(formSteps); err != nil {
			return "", nil, err
		}
		text, pictured, err := f.pageText(p, fonts)
		if err != nil {
			return "", nil, err
		}
		if text = strings.TrimSpace(text); text != "" {
			out.WriteString(text + "\n\n")
			found = true
		} else if pictured {
			pictures = append(pictures, i+1)
		}
		if out.Len() > maxText {
			return "", nil, errTooLong
		}
	}
	if !found {
		return "", nil, nil
	}
	if len(pictures) > 0 {
		out.WriteString("[Without text, but with pictures: " + pageList(pictures) + "]\n")
		unread = []string{pageList(pictures) + " with pictures and no text"}
	}
	return out.String(), unread, nil
}

// pageList returns ascending numbers of pages as "page 3" or "pages 3, 5-7".
func pageList(pages []int) string {
	var ranges []string
	for i := 0; i < len(pages); i++ {
		first := pages[i]
		for i+1 < len(pages) && pages[i+1] == pages[i]+1 {
			i++
		}
		if ranges = append(ranges, strconv.Itoa(first)); pages[i] > first {
			ranges[len(ranges)-1] += "-" + strconv.Itoa(pages[i])
		}
	}
	if len(pages) == 1 {
		return "page " + ranges[0]
	}
	return "pages " + strings.Join(ranges, ", ")
}

// page is a page with what it inherits.
type page struct{ dict, resources dict }

// maxPages bounds the pages that are read.
const maxPages = 100_000

// pages returns the pages in their order.
func (f *file) pages() []page {
	var pages []page
	seen := make(map[ref]bool)
	var visit func(obj any, resources dict, depth int)
	visit = func(obj any, resources dict, depth int) {
		if r, ok := obj.(ref); ok {
			if seen[r] {
				return
			}
			seen[r] = true
		}
		d := f.dict(obj)
		if d == nil || depth > maxNesting || len(pages) >= maxPages {
			return
		}
		if own := f.dict(d["Resources"]); own != nil {
			resources = own
		}
		kids := f.array(d["Kids"])
		if kids == nil {
			pages = append(pages, page{d, resources})
			return
		}
		for _, kid := range kids {
			visit(kid, resources, depth+1)
		}
	}
	visit(f.root["Pages"], nil, 0)
	return pages
}

// pageText returns the text of a page, and whether it has pictures.
func (f *file) pageText(p page, fonts map[ref]*font) (text string, pictured bool, err error) {
	var content []byte
	parts := f.list(p.dict["Contents"], nil)
	for _, part := range parts {
		s, ok := f.resolve(part).(*stream)
		if !ok {
			continue
		}
		data, err := f.read(s)
		if err != nil {
			return "", false, err
		}
		if content = append(append(content, data...), '\n'); len(content) > maxStream+len(parts) {
			return "", false, errTooMuch
		}
	}
	t := &typesetter{file: f, fonts: fonts, running: make(map[*stream]bool)}
	if err := t.run(content, p.resources, identity, 0); err != nil {
		return "", false, err
	}
	t.breakLine("\n\n")
	for _, a := range f.array(p.dict["Annots"]) {
		if err := t.annotation(f.dict(a)); err != nil {
			return "", false, err
		}
		t.breakLine("\n\n")
	}
	return t.out.String(), t.pictures > 0, nil
}

// annotation runs the appearance of a note or of a field of a form.
func (t *typesetter) annotation(d dict) error {
	const hidden, noView = 1 << 1, 1 << 5
	if int(t.numberOr(d["F"], 0))&(hidden|noView) != 0 {
		return nil
	}
	appearance := t.resolve(t.file.dict(d["AP"])["N"])
	if states, ok := appearance.(dict); ok {
		appearance = t.resolve(states[t.name(d["AS"])])
	}
	s, ok := appearance.(*stream)
	rect := t.array(d["Rect"])
	if !ok {
		t.writeValue(d)
		return nil
	}
	if len(rect) < 2 {
		return nil
	}
	return t.runForm(s, nil, shift(t.numberOr(rect[0], 0), t.numberOr(rect[1], 0)), 1)
}

// writeValue writes what viewers show of a note or a field of a form for which the file has no appearance.
func (t *typesetter) writeValue(d dict) {
	var value any
	switch t.name(d["Subtype"]) {
	case "FreeText":
		value = d["Contents"]
	case "Widget":
		field := d
		for range maxForms { // what a field does not have it inherits
			if value = field["V"]; value != nil || field["Parent"] == nil {
				break
			}
			field = t.file.dict(field["Parent"])
		}
	}
	if text, ok := t.resolve(value).(string); ok && text != "" {
		t.out.WriteString(strings.ReplaceAll(textString(text), "\r", "\n") + "\n\n")
	}
}
