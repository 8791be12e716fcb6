package document

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/text"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Markdown converts an HTML page, without what only browsers need, without navigation, and without elements that are
// hidden. Links are made absolute by address, which may be empty. Of a page that cannot be converted the text without its
// form is returned.
func Markdown(page, address string) string {
	if strings.TrimSpace(page) == "" || !strings.Contains(page, "<") {
		return page
	}
	if len(page) > maxPage || strings.Count(page, "<") > maxTags || strings.Count(page, "[") > maxSigns || strings.Count(page, "&#91;") > maxSigns || strings.Count(page, "&lbrack;") > maxSigns {
		return plainPage(page)
	}
	if isXML(page) {
		page = emptyElement().ReplaceAllStringFunc(page, expand)
	}
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return plainPage(page)
	}
	prune(doc)
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Table && !bounded(n) {
			return plainPage(page)
		}
	}
	tables := table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))
	conv := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), tables))
	for _, tag := range []string{"nav", "template", "svg", "canvas", "iframe", "object", "button", "dialog", "rt", "rp"} {
		conv.Register.TagType(tag, converter.TagTypeRemove, converter.PriorityEarly)
	}
	text, err := conv.ConvertNode(doc, converter.WithDomain(address))
	if err != nil {
		return plainPage(page)
	}
	return string(text)
}

// Limits of a page that is converted. Of a larger one only its text and the signs of headings and lists are kept.
const (
	maxPage  = 8 << 20 // bytes
	maxTags  = 150_000
	maxSigns = 5_000   // brackets, each of which is compared with all that follow
	maxGrid  = 200_000 // cells of a table, with the empty ones that fill its rows
)

// readPage reads an HTML file.
func readPage(_ context.Context, data []byte) (string, []string, error) {
	text, _ := pageText(data)
	return text, nil, nil
}

// pageText returns the text of a page, in the encoding that it declares. pictures are those without a text.
func pageText(data []byte) (text string, pictures int) {
	label := ""
	if found := declared().FindSubmatch(data[:min(len(data), 200)]); found != nil {
		label = string(found[1])
	}
	switch {
	case len(data) > 3 && data[0] == 0 && data[1] == '<':
		data = append(slices.Clone(markUTF16BE), data...)
	case len(data) > 3 && data[0] == '<' && data[1] == 0:
		data = append(slices.Clone(markUTF16LE), data...)
	}
	page, ok := DecodePage(data, label)
	if !ok {
		page = strings.ReplaceAll(strings.ToValidUTF8(string(data), "\uFFFD"), "\x00", "")
	}
	return Markdown(page, ""), strings.Count(page, "<img") - strings.Count(page, "alt=")
}

var (
	declared     = text.Regexp(`^\s*<\?xml[^>]*encoding=["']([\w.:-]+)["']`)
	emptyElement = text.Regexp(`<([A-Za-z][\w-]*)(\s[^<>]*)?/>`)
	undisplayed  = text.Regexp(`(?i)(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)`)
)

// isXML reports whether a page is XHTML, in which any element may be empty.
func isXML(page string) bool {
	begin := page[:min(len(page), 1000)]
	return strings.HasPrefix(strings.TrimSpace(begin), "<?xml") || strings.Contains(begin, "http://www.w3.org/1999/xhtml")
}

// expand returns an empty element of XHTML as HTML has it.
func expand(tag string) string {
	name := emptyElement().FindStringSubmatch(tag)[1]
	switch strings.ToLower(name) {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return tag
	}
	return strings.TrimSuffix(tag, "/>") + "></" + name + ">"
}

// prune removes the elements of a page that are not shown.
func prune(n *html.Node) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if c.Type == html.ElementNode && c.Data != "body" && c.Data != "html" && slices.ContainsFunc(c.Attr, hides) {
			n.RemoveChild(c)
		} else {
			if c.DataAtom == atom.A && !slices.ContainsFunc(c.Attr, func(a html.Attribute) bool { return a.Key == "href" }) {
				c.Data, c.DataAtom = "span", atom.Span // a place that links lead to
			}
			prune(c)
		}
		c = next
	}
}

// bounded reports whether the grid of a table has at most maxGrid cells. If it has more because of cells that span several columns
// or rows, these span one.
func bounded(table *html.Node) bool {
	var rows [][]*html.Node
	var collect func(n *html.Node)
	collect = func(n *html.Node) {
		for c := range n.ChildNodes() {
			switch c.DataAtom {
			case atom.Table: // has a grid of its own
				continue
			case atom.Tr:
				rows = append(rows, nil)
			case atom.Td, atom.Th:
				if len(rows) > 0 {
					rows[len(rows)-1] = append(rows[len(rows)-1], c)
				}
			}
			collect(c)
		}
	}
	collect(table)
	if grid(rows) <= maxGrid {
		return true
	}
	for _, cells := range rows {
		for _, c := range cells {
			c.Attr = slices.DeleteFunc(c.Attr, func(a html.Attribute) bool { return a.Key == "colspan" || a.Key == "rowspan" })
		}
	}
	return grid(rows) <= maxGrid
}

// grid returns how many cells the rectangle has that rows fill.
func grid(rows [][]*html.Node) int {
	height, width := len(rows), 0
	change := make([]int, len(rows)+1) // by row, of the columns that cells of earlier rows take
	above := 0
	for i, cells := range rows {
		above += change[i]
		own := 0
		for _, c := range cells {
			columns, lines := span(c, "colspan"), span(c, "rowspan")
			own += columns
			if i+1 < len(rows) {
				change[i+1] += columns
				change[min(i+lines, len(rows))] -= columns
			}
			height = max(height, i+lines)
		}
		width = max(width, own+above)
	}
	return height * width
}

// span returns how many columns or rows a cell spans, at least 1 and at most 2^20.
func span(cell *html.Node, key string) int {
	for _, a := range cell.Attr {
		if a.Key == key {
			n, err := strconv.ParseUint(strings.TrimSpace(a.Val), 10, 64)
			if errors.Is(err, strconv.ErrRange) {
				n = 1 << 20
			}
			return int(min(max(n, 1), 1<<20))
		}
	}
	return 1
}

// hides reports whether an attribute hides its element.
func hides(a html.Attribute) bool {
	switch a.Key {
	case "hidden":
		return !strings.EqualFold(a.Val, "until-found")
	case "aria-hidden":
		return strings.EqualFold(strings.TrimSpace(a.Val), "true")
	case "style":
		return undisplayed().MatchString(a.Val)
	}
	return false
}

// plainPage returns the text of a page, with lines for its blocks and the signs of headings, items and cells.
func plainPage(page string) string {
	var out strings.Builder
	z := html.NewTokenizer(strings.NewReader(page))
	z.SetMaxBuf(maxPage / 2)
	skip := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out.String()
		case html.TextToken:
			if skip == "" {
				out.Write(z.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			switch name, _ := z.TagName(); string(name) {
			case "script", "style", "template", "nav":
				skip = string(name)
			case "h1", "h2", "h3", "h4", "h5", "h6":
				out.WriteString("\n\n" + string(headingMark(int(name[1]-'0'))))
			case "li":
				out.WriteString("\n" + string(itemMark))
			case "p", "div", "br", "tr":
				out.WriteByte('\n')
			case "td", "th":
				out.WriteString(" | ")
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == skip {
				skip = ""
			}
		}
	}
}
