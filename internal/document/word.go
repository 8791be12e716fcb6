package document

import (
	"context"
	"strconv"
	"strings"
)

// readWord reads a document of Word.
func readWord(ctx context.Context, data []byte) (text string, unread []string, err error) {
	a, err := openArchive(ctx, data)
	if err != nil {
		return "", nil, err
	}
	levels, err := wordHeadings(a)
	if err != nil {
		return "", nil, err
	}
	w := &writer{}
	for _, part := range []string{"word/document.xml", "word/footnotes.xml", "word/endnotes.xml"} {
		if part != "word/document.xml" && !a.has(part) {
			continue
		}
		if err := a.walk(part, wordHandler(w, levels)); err != nil {
			return "", nil, err
		}
	}
	return w.String(), nil, nil
}

// wordHeadings returns the levels of the styles that are headings, by their ids, which differ from
// language to language.
func wordHeadings(a *archive) (map[string]int, error) {
	levels := make(map[string]int)
	const styles = "word/styles.xml"
	if !a.has(styles) {
		return levels, nil
	}
	id := ""
	err := a.walk(styles, handler{start: func(name string, e element) bool {
		switch name {
		case "style":
			id = e.attr("styleId")
		case "name":
			style := strings.ToLower(e.attr("val"))
			if style == "title" {
				levels[id] = 1
			} else if n, ok := strings.CutPrefix(style, "heading "); ok {
				levels[id], _ = strconv.Atoi(n)
			}
		}
		return false
	}})
	return levels, err
}

func wordHandler(w *writer, levels map[string]int) handler {
	var (
		m      mark
		inText bool
	)
	return handler{
		start: func(name string, e element) bool {
			inText = false
			switch name {
			case "Fallback", "pict", "del", "moveFrom":
				return true // another form of what came before, or what was deleted
			case "p":
				m = ""
			case "pStyle":
				if level := levels[e.attr("val")]; level > 0 {
					m = headingMark(level)
				}
			case "outlineLvl":
				if level, err := strconv.Atoi(e.attr("val")); err == nil && level < 9 {
					m = headingMark(level + 1)
				}
			case "numPr":
				if m == "" {
					m = itemMark
				}
			case "t":
				inText = true
			case "tab":
				w.text(" ")
			case "br", "cr":
				w.text("\n")
			case "noBreakHyphen":
				w.text("-")
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
			case "p":
				w.paragraph(m)
				m = ""
			default:
				w.endOfTable(name)
			}
		},
	}
}
