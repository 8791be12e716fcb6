package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"loki/docs"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/frontend/display"
)

// allPages is the value of --docs without a page.
const allPages = "(all)"

// mostPlaces is how many sections --docs lists for words.
const mostPlaces = 12

// showDocs prints the list of pages, a page, or the sections that have the words. It needs no configuration, and uses the colors
// and the width of one that can be read.
func (c *command) showDocs(context.Context) error {
	c.app = c.quietApp()
	if c.opts.docs == allPages {
		return c.listPages()
	}
	words := strings.Fields(strings.Join(append([]string{c.opts.docs}, c.opts.text...), " "))
	if len(words) == 1 {
		if page := docs.Text(words[0]); page != "" {
			out := display.Output{Display: c.display()}
			out.Layout = out.Display.Markdown()
			out.Markdown(page)
			return nil
		}
	}
	places := docs.Find(words)
	if len(places) == 0 {
		var names []string
		for _, p := range docs.Pages() {
			names = append(names, p.Name)
		}
		hint := "the list of pages: loki --docs"
		if near := yamldoc.Nearest(strings.TrimSuffix(words[0], ".md"), names); near != "" {
			hint = fmt.Sprintf("did you mean the page %s? %s", near, hint)
		}
		return fault.New(fault.NotFound, "no page has %s", text.Printable(strings.Join(words, " "))).WithHint("%s", hint)
	}
	width := helpWidth(c.Out)
	for _, p := range places[:min(mostPlaces, len(places))] {
		fmt.Fprintf(c.Out, "%s#%s\n    %s\n", p.Page, docs.Anchor(p.Heading), around(p.Line, words, width-4))
	}
	if more := len(places) - mostPlaces; more > 0 && !c.opts.quiet {
		fmt.Fprintf(c.Err, "%d more sections have these words\n", more)
	}
	return nil
}

// around returns the part of a line with the first of the words, in at most width columns.
func around(line string, words []string, width int) string {
	at := len(line)
	for _, w := range words {
		if found := docs.Word(w).FindStringIndex(line); found != nil && len(w) > 2 {
			at = min(at, found[0])
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
