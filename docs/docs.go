// Package docs holds the pages of the documentation, which are part of the program. Its terms: a page is one Markdown file, its
// kind is the part of README.md that lists it, and a section is a heading with the text below it.
package docs

import (
	"embed"
	"strings"
	"unicode"
)

//go:embed *.md
var files embed.FS

// Page is one page.
type Page struct {
	Name string // of its file, without .md
	Kind string
	Line string // what it is about
}

// Pages returns all pages that README.md lists, in that order.
func Pages() []Page {
	var (
		pages []Page
		kind  string
	)
	for line := range strings.Lines(read("README")) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			kind = title
		} else if _, rest, ok := strings.Cut(line, "]("); ok && strings.HasPrefix(line, "* [") {
			if name, about, ok := strings.Cut(rest, ".md): "); ok {
				pages = append(pages, Page{Name: name, Kind: kind, Line: about})
			}
		}
	}
	return pages
}

// read returns the text of the page called name, "" if there is none.
func read(name string) string {
	text, _ := files.ReadFile(name + ".md")
	return string(text)
}

// Text returns a page, or a section of it: name may end in .md, begin with docs/, and have the anchor of a heading after #. It is
// "" if there is no such page or section.
func Text(name string) string {
	name, anchor, part := strings.Cut(name, "#")
	text := read(strings.TrimSuffix(strings.TrimPrefix(name, "docs/"), ".md"))
	if !part {
		return text
	}
	var (
		b     strings.Builder
		level int // of the section's heading; 0 before it
	)
	for _, l := range lines(text) {
		if n := l.heading(); n > 0 && level > 0 && n <= level {
			break
		} else if n > 0 && level == 0 && Anchor(l.text) == anchor {
			level = n
		}
		if level > 0 {
			b.WriteString(l.text + "\n")
		}
	}
	return b.String()
}

// Anchor returns the anchor of a heading, as web sites make it.
func Anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(strings.TrimLeft(heading, "#")))
}

// line is a line of a page.
type line struct {
	text string
	code bool // in a fenced block
}

// heading returns the level of a heading, 0 for another line.
func (l line) heading() int {
	n := len(l.text) - len(strings.TrimLeft(l.text, "#"))
	if l.code || n == 0 || !strings.HasPrefix(l.text[n:], " ") {
		return 0
	}
	return n
}

func lines(text string) []line {
	var (
		list []line
		code bool
	)
	for s := range strings.Lines(text) {
		l := line{text: strings.TrimRight(s, "\r\n")}
		fence := strings.HasPrefix(strings.TrimSpace(l.text), "```")
		l.code = code || fence
		code = code != fence
		list = append(list, l)
	}
	return list
}

// Section is a heading with the text up to the next one.
type Section struct {
	Page    Page
	Heading string
	Lines   []string // without the heading
}

// Sections returns all sections of all pages.
func Sections() []Section {
	var all []Section
	for _, p := range Pages() {
		for _, l := range lines(read(p.Name)) {
			if n := l.heading(); n > 0 {
				all = append(all, Section{Page: p, Heading: strings.TrimSpace(l.text[n:])})
			} else if len(all) > 0 && all[len(all)-1].Page == p {
				last := &all[len(all)-1]
				last.Lines = append(last.Lines, l.text)
			}
		}
	}
	return all
}
