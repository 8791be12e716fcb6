package export

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"loki/internal/base/text"
	"loki/internal/frontend/render/highlight"
	"loki/internal/frontend/render/markdown"
)

//go:embed export.css
var style string

// Policy is the Content-Security-Policy of a document: it may load nothing, and has one style.
func Policy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// html returns the document as a page. All that was said is text or comes from [renderMarkdown].
func (d document) html() []byte {
	var b bytes.Buffer
	title := html.EscapeString(d.title)
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>%s</style>
</head>
<body>
<h1>%[2]s</h1>
<dl>`, Policy(), title, style)
	for _, f := range d.facts {
		fmt.Fprintf(&b, "<dt>%s</dt><dd>%s</dd>\n", html.EscapeString(f[0]), html.EscapeString(f[1]))
	}
	b.WriteString("</dl>\n")
	for _, s := range d.sections {
		fmt.Fprintf(&b, "<section class=\"%s\"><h2>%s</h2>\n", s.role, html.EscapeString(s.who))
		for _, p := range s.parts {
			p.html(&b)
		}
		b.WriteString("</section>\n")
	}
	b.WriteString("</body>\n</html>\n")
	return b.Bytes()
}

// html writes a part.
func (p part) html(b *bytes.Buffer) {
	switch {
	case p.url != "":
		fmt.Fprintf(b, "<p><img alt=\"picture\" src=\"%s\"></p>\n", html.EscapeString(p.url))
	case p.fold != "":
		fmt.Fprintf(b, "<details><summary>%s</summary><pre>", html.EscapeString(p.fold))
		writeCode(b, p.lang, p.text)
		b.WriteString("</pre></details>\n")
	case p.code || len(p.text) > maxRendered:
		fmt.Fprintf(b, "<div class=\"plain\">%s</div>\n", html.EscapeString(p.text))
	default:
		b.WriteString("<div>" + renderMarkdown(p.text) + "</div>\n")
	}
}

// maxRendered is how many bytes of Markdown are rendered at most; longer texts are shown as they are.
const maxRendered = 256 << 10

// renderMarkdown returns a text in Markdown as HTML. Tags in it are shown as text, and character references do not bring back what
// [Options.displayText] has taken out.
func renderMarkdown(source string) string {
	md := goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough, extension.TaskList),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(inert{}, 100))),
	)
	var b bytes.Buffer
	if err := md.Convert([]byte(source), &b); err != nil {
		return "<pre>" + html.EscapeString(source) + "</pre>"
	}
	return text.Printable(b.String())
}

// inert renders what goldmark would render as HTML of the author, as links without a look at where they lead, or without colors.
type inert struct{}

// RegisterFuncs implements [renderer.NodeRenderer].
func (inert) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString(html.EscapeString(string(n.(*ast.RawHTML).Segments.Value(source))))
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if block := n.(*ast.HTMLBlock); entering {
			lines := string(block.Lines().Value(source))
			if block.HasClosure() {
				lines += string(block.ClosureLine.Value(source))
			}
			fmt.Fprintf(w, "<div class=\"plain\">%s</div>\n", html.EscapeString(lines))
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindLink, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		link(w, n.(*ast.Link).Destination, entering)
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		link(w, n.(*ast.Image).Destination, entering)
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindAutoLink, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if auto := n.(*ast.AutoLink); entering {
			url := auto.URL(source)
			if auto.AutoLinkType == ast.AutoLinkEmail {
				url = append([]byte("mailto:"), url...)
			}
			link(w, url, true)
			_, _ = w.WriteString(html.EscapeString(string(auto.Label(source))))
			link(w, url, false)
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if block := n.(*ast.FencedCodeBlock); entering {
			_, _ = w.WriteString("<pre>")
			writeCode(w, string(block.Language(source)), string(block.Lines().Value(source)))
			_, _ = w.WriteString("</pre>\n")
		}
		return ast.WalkSkipChildren, nil
	})
}

// link writes the beginning or the end of a link. One that leads elsewhere than to the web or a mailbox is text.
func link(w util.BufWriter, destination []byte, entering bool) {
	url := string(util.URLEscape(destination, true))
	switch {
	case !entering && markdown.Linkable(url):
		_, _ = w.WriteString("</a>")
	case !entering:
		_, _ = w.WriteString("</span>")
	case markdown.Linkable(url):
		fmt.Fprintf(w, `<a rel="noreferrer noopener" href="%s">`, html.EscapeString(url))
	default:
		_, _ = w.WriteString("<span>")
	}
}

// writer is what code is written to.
type writer interface {
	WriteString(s string) (int, error)
}

// writeCode writes code, with a class for each token if its language is known.
func writeCode(w writer, lang, code string) {
	lexer := highlight.Find(lang)
	if lexer == nil || len(code) > maxRendered {
		_, _ = w.WriteString(html.EscapeString(code))
		return
	}
	var st highlight.State
	spans, from := []highlight.Span(nil), 0
	spans, _ = lexer.Lex(spans, []byte(code), len(code), &st)
	for _, s := range append(spans, highlight.Span{End: len(code)}) {
		token := html.EscapeString(code[from:s.End])
		if class := classOf(s.Kind.Scopes()); class != "" && token != "" {
			token = `<span class="` + class + `">` + token + "</span>"
		}
		_, _ = w.WriteString(token)
		from = s.End
	}
}

// classOf returns the class of a token: one of few, as a style has few colors.
func classOf(scopes string) string {
	for _, c := range [...][2]string{{"comment", "c"}, {"string", "s"}, {"constant", "n"}, {"keyword.operator", ""}, {"keyword", "k"}, {"storage", "k"}, {"entity.name.tag", "k"}, {"entity", "f"}, {"support", "f"}, {"markup.deleted", "s"}, {"markup.inserted", "n"}} {
		if strings.HasPrefix(scopes, c[0]) || strings.Contains(scopes, " "+c[0]) {
			return c[1]
		}
	}
	return ""
}
