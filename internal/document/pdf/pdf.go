// Package pdf reads the text of PDF files.
//
// A page is a program that puts glyphs, the characters of its fonts, at places. The words and lines are
// those that the places make: what is near belongs to a word, and what is lower begins a line. The order is
// that of the program, which is nearly always the order of reading.
package pdf

import (
	"context"
	"errors"
	"strings"
)

// maxText bounds the text of a file, in bytes.
const maxText = 64 << 20

var (
	errNoPages = errors.New("the PDF file is malformed: it has no pages")
	errTooLong = errors.New("the PDF file has too much text")
)

// Text returns the text of a PDF file, with a blank line between pages and between paragraphs. Text that is in
// pictures is not found. Files that need a password, and those that have no pages, are an error.
func Text(ctx context.Context, data []byte) (string, error) {
	f, err := open(ctx, data)
	if err != nil {
		return "", err
	}
	pages := f.pages()
	if len(pages) == 0 {
		return "", errNoPages
	}
	var out strings.Builder
	fonts := make(map[ref]*font)
	for _, p := range pages {
		text, err := f.pageText(p, fonts)
		if err != nil {
			return "", err
		}
		if text = strings.TrimSpace(text); text != "" {
			out.WriteString(text + "\n\n")
		}
		if out.Len() > maxText {
			return "", errTooLong
		}
	}
	return out.String(), nil
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

// pageText returns the text of a page.
func (f *file) pageText(p page, fonts map[ref]*font) (string, error) {
	var content []byte
	parts := f.list(p.dict["Contents"], nil)
	for _, part := range parts {
		s, ok := f.resolve(part).(*stream)
		if !ok {
			continue
		}
		data, err := f.read(s)
		if err != nil {
			return "", err
		}
		if content = append(append(content, data...), '\n'); len(content) > maxText {
			return "", errTooMuch
		}
	}
	t := &typesetter{file: f, fonts: fonts, running: make(map[*stream]bool)}
	if err := t.run(content, p.resources, identity, 0); err != nil {
		return "", err
	}
	t.breakLine("\n\n")
	for _, a := range f.array(p.dict["Annots"]) {
		if err := t.annotation(f.dict(a)); err != nil {
			return "", err
		}
	}
	return t.out.String(), nil
}

// annotation runs the appearance of a note or of a field of a form.
func (t *typesetter) annotation(d dict) error {
	appearance := t.resolve(t.file.dict(d["AP"])["N"])
	if states, ok := appearance.(dict); ok {
		appearance = t.resolve(states[t.name(d["AS"])])
	}
	s, ok := appearance.(*stream)
	rect := t.array(d["Rect"])
	if !ok || len(rect) < 2 {
		return nil
	}
	return t.runForm(s, nil, shift(t.numberOr(rect[0], 0), t.numberOr(rect[1], 0)), 1)
}
