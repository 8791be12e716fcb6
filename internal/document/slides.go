package document

import (
	"context"
	"strings"
)

// readSlides reads a presentation of PowerPoint, with the notes of the speaker.
func readSlides(ctx context.Context, data []byte) (text string, unread []string, err error) {
	a, err := openArchive(ctx, data)
	if err != nil {
		return "", nil, err
	}
	const main = "ppt/presentation.xml"
	relations, err := a.relations(main)
	if err != nil {
		return "", nil, err
	}
	var slides []string
	err = a.walk(main, handler{start: func(name string, e element) bool {
		if name == "sldId" {
			if r, ok := e.related(relations); ok {
				slides = append(slides, r.target)
			}
		}
		return false
	}})
	if err != nil {
		return "", nil, err
	}
	var out strings.Builder
	for i, slide := range slides {
		if err := a.slide(&out, i+1, slide); err != nil {
			return "", nil, err
		}
	}
	return out.String(), nil, nil
}

// slide writes a slide: its title, its text, and the notes.
func (a *archive) slide(out *strings.Builder, n int, name string) error {
	if !a.has(name) {
		return nil
	}
	body := &writer{}
	title, err := a.shapes(body, name)
	if err != nil {
		return err
	}
	relations, err := a.relations(name)
	if err != nil {
		return err
	}
	for _, r := range relations {
		if r.kind == "notesSlide" && a.has(r.target) {
			if _, err := a.shapes(body, r.target); err != nil {
				return err
			}
		}
	}
	out.WriteString("## " + slideHeading(n, title) + "\n\n" + body.String() + "\n")
	if out.Len() > maxText {
		return errTooLarge
	}
	return nil
}

// shapes writes the text of a slide and returns its title, which is not written.
func (a *archive) shapes(w *writer, name string) (title string, err error) {
	var (
		inText bool
		kind   string // of the placeholder
		titles []string
	)
	err = a.walk(name, handler{
		start: func(name string, e element) bool {
			inText = name == "t"
			switch name {
			case "Fallback":
				return true
			case "sp":
				kind = ""
			case "ph":
				kind = e.attr("type")
			case "txBody": // numbers of slides, dates and the like say nothing
				return kind == "sldNum" || kind == "dt" || kind == "ftr"
			case "br":
				w.text("\n")
			case "tbl":
				w.beginTable()
			}
			return w.tooLong()
		},
		text: func(s string) {
			if inText {
				w.text(s)
			}
		},
		end: func(name string) {
			inText = false
			switch name {
			case "sp":
				kind = ""
			case "p":
				if kind == "title" || kind == "ctrTitle" {
					titles = append(titles, w.para.String())
					w.para.Reset()
				}
				w.paragraph("")
			default:
				w.endOfTable(name)
			}
		},
	})
	return strings.Join(titles, " "), err
}
