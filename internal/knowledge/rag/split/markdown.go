package split

import (
	"slices"
	"strings"

	"loki/internal/base/text"
)

// titleLimit is the most characters that a path has of a heading.
const titleLimit = 120

// sections cuts a Markdown document before its headings. Small sections that follow each other, of a
// quarter of the size together, stay in one chunk. A heading with nothing below it stays with what follows it. A section
// that is too long for a chunk is cut between its blocks.
func (w *walk) sections() {
	var small, s section // what is not in a chunk yet, and behind it the section at hand
	end := func(at int) {
		s.end, s.chars = at, w.length(s.start, at)
		s.bare = len(s.path) > 0 && w.blank(s.path[len(s.path)-1].end, at)
		both := section{small.start, s.end, small.chars + s.chars, s.path, small.bare && s.bare}
		above := len(common(small.path, s.path)) == len(small.path)
		switch {
		case w.blank(small.start, small.end):
			small = s
		case both.chars <= w.size/4:
			both.path = common(small.path, s.path)
			small = both
		case small.bare && (above || both.chars <= w.size):
			small = both
		default:
			w.section(small)
			small = s
		}
	}
	for _, h := range w.outline.headings {
		end(h.start)
		path := s.path
		for len(path) > 0 && path[len(path)-1].level >= h.level {
			path = path[:len(path)-1]
		}
		s = section{start: h.start, path: append(slices.Clip(path), h)}
	}
	end(len(w.text))
	w.section(small)
}

// blank reports whether nothing is in text[start:end].
func (w *walk) blank(start, end int) bool { return strings.TrimSpace(w.text[start:end]) == "" }

// section is a part of a document.
type section struct {
	start, end int
	chars      int
	path       []heading // that all of it is under
	bare       bool      // it has headings only
}

// common returns what a and b begin with.
func common(a, b []heading) []heading {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// section adds a section.
func (w *walk) section(s section) {
	titles := make([]string, len(s.path))
	for i, h := range s.path {
		titles[i] = h.title
	}
	w.heading = strings.Join(titles, " > ")
	before, after := w.blanks(w.text[s.start:s.end])
	start, end := s.start+before, s.start+after
	if start < end && w.length(start, end) <= w.size {
		w.emit(start, end, w.text[start:end])
		return
	}
	w.pack(w.blocks(start, end))
}

// heading is a heading of a Markdown document.
type heading struct {
	start, end int // its lines, the last line end included
	level      int // from 1
	title      string
}

// outline is where things are in a Markdown document, in their order.
type outline struct {
	headings []heading
	code     []code
}

// code is a block of code between two lines, or up to the end of the document.
type code struct{ start, body, foot, end int } // where its lines begin: the first one, the next, the last one, and those behind it

// outlineOf returns the outline of a Markdown document, as CommonMark has it but for quotations. Code,
// comments and front matter have no headings.
func outlineOf(doc string) outline {
	var o outline
	s := scanner{doc: doc, paragraph: -1}
	for at := frontMatter(doc); at < len(doc); {
		line, _, _ := strings.Cut(doc[at:], "\n")
		end := min(at+len(line)+1, len(doc))
		inCode := s.fence != ""
		if h, ok := s.line(at, line); ok {
			h.end = end
			o.headings = append(o.headings, h)
		}
		switch open := s.fence != ""; {
		case open && !inCode:
			o.code = append(o.code, code{at, end, len(doc), len(doc)})
		case inCode && !open:
			last := &o.code[len(o.code)-1]
			last.foot, last.end = at, end
		}
		at = end
	}
	return o
}

// scanner reads a Markdown document line by line.
type scanner struct {
	doc       string
	fence     string // what ends the block of code that is open
	tag       string // what ends the HTML that is open
	paragraph int    // where the paragraph starts that may turn out to be a heading, -1 outside of one
	item      bool   // in a list item, quotation, table or HTML, whose lines need no mark
}

// line reads the line that starts at at, and returns the heading that ends in it.
func (s *scanner) line(at int, line string) (h heading, ok bool) {
	body := strings.TrimSpace(line)
	switch {
	case s.fence != "":
		if strings.HasPrefix(body, s.fence) && strings.Trim(body, s.fence[:1]) == "" {
			s.fence = ""
		}
	case s.tag != "":
		s.html(body)
	case body == "":
		s.paragraph, s.item = -1, false
	case indented(line): // code, or more of a paragraph
	case s.open(body):
		s.paragraph = -1
	case s.paragraph >= 0 && underline(body) > 0:
		h = heading{start: s.paragraph, level: underline(body), title: text.OneLine(s.doc[s.paragraph:at], titleLimit)}
		s.paragraph = -1
		return h, true
	case hashes(body) > 0:
		n := hashes(body)
		s.paragraph, s.item = -1, false
		return heading{start: at, level: n, title: title(body[n:])}, true
	case ruler(body):
		s.paragraph, s.item = -1, false
	case marked(body):
		s.paragraph, s.item = -1, true
	case s.paragraph < 0 && !s.item:
		s.paragraph = at
	}
	return heading{}, false
}

// open reports whether a line begins code or HTML in which no headings are.
func (s *scanner) open(body string) bool {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(body, mark)
		if n := len(body) - len(rest); n >= 3 && (mark == "~" || !strings.Contains(rest, mark)) {
			s.fence = body[:n]
			return true
		}
	}
	for _, tag := range []string{"<!--", "<pre", "<script", "<style"} {
		if len(body) < len(tag) || !strings.EqualFold(body[:len(tag)], tag) {
			continue
		}
		if s.tag = "</" + tag[1:]; tag == "<!--" {
			s.tag = "-->"
		}
		s.html(body)
		return true
	}
	return false
}

// html reads a line of HTML that ends with a tag.
func (s *scanner) html(body string) {
	if strings.Contains(strings.ToLower(body), s.tag) {
		s.tag = ""
	}
}

// frontMatter returns where doc begins behind the settings at its start.
func frontMatter(doc string) int {
	for _, fence := range []string{"---", "+++"} {
		first, _, _ := strings.Cut(doc, "\n")
		if strings.TrimRight(first, " \t\r") != fence {
			continue
		}
		for at := len(first) + 1; at < len(doc); {
			line, _, _ := strings.Cut(doc[at:], "\n")
			at += len(line) + 1
			if strings.TrimRight(line, " \t\r") == fence {
				return at
			}
		}
	}
	return 0
}

// indented reports whether a line that is not blank begins with four blanks or a tab.
func indented(line string) bool {
	rest := strings.TrimLeft(line, " ")
	return len(line)-len(rest) >= 4 || rest[0] == '\t'
}

// hashes returns the level of a heading such as "## Title", 0 for other lines.
func hashes(body string) int {
	rest := strings.TrimLeft(body, "#")
	if n := len(body) - len(rest); n <= 6 && (rest == "" || rest[0] == ' ' || rest[0] == '\t') {
		return n
	}
	return 0
}

// title returns the title of such a heading, which may have more of the marks at its end.
func title(rest string) string {
	if cut := strings.TrimRight(rest, "#"); cut == "" || strings.HasSuffix(cut, " ") || strings.HasSuffix(cut, "\t") {
		rest = cut
	}
	return text.OneLine(rest, titleLimit)
}

// underline returns the level of the heading that a line is below, 0 for other lines.
func underline(body string) int {
	switch {
	case strings.Trim(body, "=") == "":
		return 1
	case strings.Trim(body, "-") == "":
		return 2
	}
	return 0
}

// ruler reports whether a line is a rule across the page.
func ruler(body string) bool {
	mark := body[:1]
	return strings.Contains("*-_", mark) && strings.Count(body, mark) >= 3 && strings.Trim(body, mark+" \t") == ""
}

// marked reports whether a line begins a list item, a quotation, the row of a table or HTML.
func marked(body string) bool { return strings.Contains(">|<", body[:1]) || item(body) }

// item reports whether a line begins a list item.
func item(body string) bool {
	number := strings.TrimLeft(body, "0123456789")
	if number != body && (strings.HasPrefix(number, ".") || strings.HasPrefix(number, ")")) {
		body = "-" + number[1:]
	}
	first, rest := body[:1], body[1:]
	return strings.Contains("-*+", first) && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}
