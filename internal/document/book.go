package document

import (
	"context"
	"errors"
	"io"
	"net/url"
	"path"
	"strings"
)

// readBook reads an electronic book, EPUB, chapter by chapter.
func readBook(ctx context.Context, data []byte) (text string, unread []string, err error) {
	a, err := openArchive(ctx, data)
	if err != nil {
		return "", nil, err
	}
	chapters, err := a.chapters()
	if err != nil {
		return "", nil, err
	}
	var out strings.Builder
	for _, chapter := range chapters {
		if !a.has(chapter) {
			continue
		}
		page, err := a.readAll(chapter)
		if err != nil {
			return "", nil, err
		}
		out.WriteString(strings.TrimSpace(Markdown(page, "")) + "\n\n")
		if out.Len() > maxText {
			return "", nil, errTooLarge
		}
	}
	return out.String(), nil, nil
}

// chapters returns the pages of the book in the order of reading.
func (a *archive) chapters() ([]string, error) {
	var main string
	err := a.walk("META-INF/container.xml", handler{start: func(name string, e element) bool {
		if name == "rootfile" && main == "" {
			main = e.attr("full-path")
		}
		return false
	}})
	if err != nil {
		return nil, err
	}
	pages := make(map[string]string)
	var order []string
	err = a.walk(main, handler{start: func(name string, e element) bool {
		switch name {
		case "item":
			if target, err := url.PathUnescape(e.attr("href")); err == nil && strings.Contains(e.attr("media-type"), "html") {
				pages[e.attr("id")] = path.Join(path.Dir(main), target)
			}
		case "itemref":
			if page := pages[e.attr("idref")]; page != "" {
				order = append(order, page)
				delete(pages, e.attr("idref"))
			}
		}
		return false
	}})
	return order, err
}

// maxChapter bounds one page of a book, in bytes.
const maxChapter = 16 << 20

func (a *archive) readAll(name string) (string, error) {
	r, err := a.open(name)
	if err != nil {
		return "", err
	}
	defer r.Close()
	page, err := io.ReadAll(io.LimitReader(r, maxChapter+1))
	if err == nil && len(page) > maxChapter {
		err = errors.New("a chapter is too large")
	}
	return strings.TrimPrefix(string(page), "\ufeff"), err
}
