package cli

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"loki/docs"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/text/rank"
	"loki/internal/base/value/yamldoc"
	"loki/internal/frontend/command/display"
)

// allPages is the value of --docs without a page.
const allPages = "(all)"

// mostSections is how many sections --docs lists for words.
const mostSections = 8

// showDocs prints the list of pages, a page, or the sections that words describe. It needs no configuration, and uses the colors
// and the width of one that can be read.
func (c *command) showDocs(context.Context) error {
	c.app = c.quietApp()
	words := strings.Fields(strings.Join(c.opts.text, " "))
	switch {
	case c.opts.value != allPages:
		words = append(strings.Fields(c.opts.value), words...)
	case len(words) == 0:
		return c.listPages()
	}
	if len(words) == 1 {
		if page := docs.Text(words[0]); page != "" {
			out := display.Output{Display: c.display()}
			out.Layout = out.Display.Markdown()
			out.Markdown(page)
			return nil
		}
	}
	if page, heading, ok := strings.Cut(words[0], "#"); ok && len(words) == 1 && docs.Text(page) != "" {
		return noSection(page, heading)
	}
	query := strings.Join(words, " ")
	found := findSections(query)
	if len(found) == 0 {
		var names []string
		for _, p := range docs.Pages() {
			names = append(names, p.Name)
		}
		hint := "the list of pages: loki --docs"
		if near := yamldoc.Nearest(strings.TrimSuffix(words[0], ".md"), names); near != "" {
			hint = fmt.Sprintf("did you mean the page %s? %s", near, hint)
		}
		return fault.New(fault.NotFound, "the documentation does not mention %s", text.Printable(query)).WithHint("%s", hint)
	}
	for _, s := range found {
		fmt.Fprintf(c.Out, "%s#%s\n    %s\n", s.Page.Name, docs.Anchor(s.Heading), bestLine(s, query, helpWidth(c.Out)-4))
	}
	return nil
}

// noSection returns the error that a page has no such section.
func noSection(page, heading string) error {
	var anchors []string
	for _, s := range docs.Sections() {
		if s.Page.Name == strings.TrimSuffix(path.Base(page), ".md") {
			anchors = append(anchors, docs.Anchor(s.Heading))
		}
	}
	return fault.New(fault.NotFound, "the page %s has no section %s", text.Printable(page), text.Printable(heading)).WithHint("it has: %s", strings.Join(anchors, ", "))
}

// findSections returns the sections that a query in words describes best. A heading counts more than the text below it.
func findSections(query string) []docs.Section {
	all := docs.Sections()
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = strings.Repeat(s.Heading+"\n", 5) + s.Page.Name + "\n" + strings.Join(s.Lines, "\n")
	}
	var found []docs.Section
	for _, i := range rank.New(texts).Search(query, mostSections) {
		found = append(found, all[i])
	}
	return found
}

// bestLine returns the line of a section that a query describes best, from its first word on, in at most width columns.
func bestLine(s docs.Section, query string, width int) string {
	line := s.Page.Line
	if best := rank.New(s.Lines).Search(query, 1); len(best) > 0 {
		line = strings.TrimSpace(s.Lines[best[0]])
	}
	at := len(line)
	for _, word := range strings.Fields(strings.ToLower(query)) {
		if i := strings.Index(strings.ToLower(line), word); i >= 0 && len(word) > 2 {
			at = min(at, i)
		}
	}
	if start := strings.LastIndexByte(line[:max(at-width/3, 0)], ' '); at < len(line) && start > 0 {
		line = text.Mark + line[start:]
	}
	return text.CutColumns(line, width)
}

// listPages lists the pages by their kind.
func (c *command) listPages() error {
	var rows [][]string
	for _, p := range docs.Pages() {
		rows = append(rows, []string{p.Name, p.Line})
	}
	table := strings.SplitAfter(display.Table(rows), "\n")
	var b strings.Builder
	kind := ""
	for i, p := range docs.Pages() {
		if p.Kind != kind {
			kind = p.Kind
			fmt.Fprintf(&b, "\n%s:\n", kind)
		}
		b.WriteString("  " + table[i])
	}
	b.WriteString("\nPrint one: loki --docs PAGE, or a section: loki --docs PAGE#HEADING. Find words: loki --docs WORDS\n")
	_, err := io.WriteString(c.Out, b.String()[1:])
	return err
}
