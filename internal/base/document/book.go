package document

import (
	"net/url"
	"path"
	"strings"
)

// readBook reads an electronic book, EPUB, chapter by chapter.
func readBook(a *archive, w *writer) error {
	chapters, err := a.chapters()
	if err != nil {
		return err
	}
	for _, chapter := range chapters {
		page, err := a.readAll(chapter)
		if err := a.noteDamage("chapter "+path.Base(chapter), err); err != nil {
			return err
		}
		text, pictures := pageText(page)
		if pictures > 0 {
			a.count(pictures, "picture", " without text")
		}
		w.block(text)
		if w.tooLong() {
			return errTooLarge
		}
	}
	return nil
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
	if main == "" { // it is usual to have one only
		for name := range a.files {
			if path.Ext(name) == ".opf" && (main == "" || name < main) {
				main = name
			}
		}
	}
	if main == "" && err != nil {
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
	if err != nil && len(order) == 0 {
		return nil, err
	}
	return order, a.noteDamage("the list of chapters", err)
}
