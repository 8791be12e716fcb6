package markdown_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"loki/internal/base/text/sample"
	"loki/internal/frontend/render/markdown"
)

// decorated gives everything that is not text of the document a style of its own.
var decorated = &markdown.Styles{Mark: "2", Bar: "2", Bullet: "2", Done: "2", Rule: "2", URL: "2"}

var (
	decoration = regexp.MustCompile("\x1b\\[2m[^\x1b]*\x1b\\[0m")
	escapes    = regexp.MustCompile("\x1b\\[[0-9;]*m|\x1b\\]8;[^\x1b]*\x1b\\\\")
	whitespace = regexp.MustCompile(`\s+`)
)

// textOf returns the text of a rendered document without white space.
func textOf(rendered string) string {
	rendered = decoration.ReplaceAllString(rendered, "")
	return whitespace.ReplaceAllString(escapes.ReplaceAllString(rendered, ""), "")
}

// oracle returns the text of a document as goldmark understands it, without white space.
func oracle(source string) string {
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Linkify))
	src := []byte(source)
	var b strings.Builder
	lines := func(n ast.Node) {
		for i := range n.Lines().Len() {
			s := n.Lines().At(i)
			b.Write(s.Value(src))
		}
	}
	doc := md.Parser().Parse(text.NewReader(src))
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(src))
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(src))
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				s := n.Segments.At(i)
				b.Write(s.Value(src))
			}
		case *ast.HTMLBlock:
			lines(n)
			if n.HasClosure() {
				b.Write(n.ClosureLine.Value(src))
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			lines(n)
		case *ast.LinkReferenceDefinition:
			lines(n)
		case *east.TableCell, *ast.CodeSpan:
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		panic(err)
	}
	return whitespace.ReplaceAllString(b.String(), "")
}

func render(o markdown.Options, source string, columns int) string {
	r := markdown.New(o)
	r.Write([]byte(source))
	return string(r.End(nil, columns))
}

// pieces makes random documents of pieces that matter to a parser.
var pieces = []string{
	"a", "b", "word", " ", " ", " ", "\n", "\n", "\n\n", "*", "*", "**", "***", "_", "__", "`", "``", "~~", "[", "](", "](https://x.io)", "[l](https://x.io)", ")", "!", "# ",
	"## ", "- ", "* ", "1. ", "2) ", "> ", "    ", "  ", "```\n", "~~~\n", "```go\n", "---\n", "===\n", ".", ",", "(", "| a | b |\n| - | - |\n", "| x | y |\n", "|", "[ ] ", "[x] ", "<", ">", "1", "-", "+",
}

func randomDocument(rng *rand.Rand) string {
	var b strings.Builder
	for range 1 + rng.IntN(30) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return b.String()
}

// meant are documents that are read differently on purpose: the address of a link without
// text is shown, and boxes without a task are text. A table in the lazy continuation of a
// container is none for GitHub, but one for goldmark.
var meant = regexp.MustCompile(`\[\s*\]\(|\[[ x]\]\s*(\n|$)|(?s)[->*+.)].*- \| -`)

// TestLikeGoldmark compares the text that is shown with what goldmark takes for text. It is
// the same but for documents that are meant to differ in ways that are hard to distinguish from a
// distance, such as tables with more cells than columns.
func TestLikeGoldmark(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	documents := 20_000 / sample.Step(10)
	most := documents * 3 / 1000
	var differ []string
	compared := 0
	for range documents {
		doc := randomDocument(rng)
		if meant.MatchString(doc) {
			continue
		}
		compared++
		got := textOf(render(markdown.Options{Styles: decorated, Hyperlinks: true}, doc, 80))
		if want := oracle(doc); got != want {
			differ = append(differ, fmt.Sprintf("%q: got %q, goldmark %q", doc, got, want))
		}
	}
	if compared < documents/2 {
		t.Errorf("only %d documents were compared", compared)
	}
	if len(differ) > most {
		slices.SortFunc(differ, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
		t.Errorf("%d of %d documents differ, more than %d; the shortest:\n%s", len(differ), compared, most, strings.Join(differ[:20], "\n"))
	}
}
