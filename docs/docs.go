// Package docs holds the pages of the documentation, which are part of the program. Its terms: a page is one Markdown file, its
// kind is the part of README.md that lists it, and a section is a heading with the text below it.
package docs

import (
	"embed"
	"regexp"
	"slices"
	"strings"
)

//go:embed *.md
var files embed.FS

// Page is one page.
type Page struct {
	Name string // of its file, without .md
	Kind string
	Line string // what it is about
}

var listed = regexp.MustCompile(`^\* \[.+\]\((.+)\.md\): (.+)$`)

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
		} else if m := listed.FindStringSubmatch(line); m != nil {
			pages = append(pages, Page{Name: m[1], Kind: kind, Line: m[2]})
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

var punctuation = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// Anchor returns the anchor of a heading, as web sites make it.
func Anchor(heading string) string {
	text := strings.TrimSpace(strings.TrimLeft(heading, "#"))
	return strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
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

// Place is a section with all words that were looked for.
type Place struct {
	Page    string // its name
	Heading string
	Line    string // the line with the most of the words
	score   int
}

// Word matches a word, and longer ones that begin with it.
func Word(w string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[^\pL\pN])` + regexp.QuoteMeta(w))
}

// Find returns the sections that have all words, the best first: sections with the words in the heading, then with many of them in
// one line. A word is found at the beginning of a longer one. Upper and lower case are the same, and words of one or two letters
// count only if there are no others.
func Find(words []string) []Place {
	if long := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return len(w) < 3 }); len(long) > 0 {
		words = long
	}
	patterns := make([]*regexp.Regexp, len(words))
	for i, w := range words {
		patterns[i] = Word(w)
	}
	var places []Place
	for _, p := range Pages() {
		var at Place
		seen := make([]bool, len(words))
		best := -1
		add := func() {
			if at.Page != "" && !slices.Contains(seen, false) {
				places = append(places, at)
			}
		}
		for _, l := range lines(read(p.Name)) {
			n := l.heading()
			if n > 0 {
				add()
				at, best = Place{Page: p.Name, Heading: strings.TrimSpace(l.text[n:])}, -1
				clear(seen)
			}
			count := 0
			for i, p := range patterns {
				if p.MatchString(l.text) {
					seen[i] = true
					count++
				}
			}
			if n > 0 {
				at.score += 10 * count
			} else if count > best && strings.TrimSpace(l.text) != "" {
				at.score += count - max(best, 0)
				at.Line, best = strings.TrimSpace(l.text), count
			}
		}
		add()
	}
	slices.SortStableFunc(places, func(a, b Place) int { return b.score - a.score })
	return places
}
