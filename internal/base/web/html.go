package web

import (
	"bytes"
	"strings"

	"loki/internal/base/text"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// dropped are the elements that are removed with their content, since a reader
// of text does not need them.
var dropped = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Svg: true, atom.Picture: true,
	atom.Video: true, atom.Audio: true, atom.Iframe: true, atom.Object: true, atom.Canvas: true, atom.Map: true,
}

// void are the elements without content that are removed.
var void = map[atom.Atom]bool{atom.Img: true, atom.Source: true, atom.Embed: true, atom.Link: true, atom.Meta: true, atom.Track: true}

// WithoutMedia returns an HTML page without scripts, styles, pictures and the like.
func WithoutMedia(page string) string {
	var out bytes.Buffer
	z := html.NewTokenizer(strings.NewReader(page))
	var inside atom.Atom // the element that is being removed
	depth := 0
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return out.String()
		}
		raw := string(z.Raw()) // TagName changes what Raw returns
		var name atom.Atom
		if kind == html.StartTagToken || kind == html.EndTagToken || kind == html.SelfClosingTagToken {
			tag, _ := z.TagName()
			name = atom.Lookup(tag)
		}
		switch {
		case inside != 0:
			if name == inside && kind == html.StartTagToken {
				depth++
			}
			if name == inside && kind == html.EndTagToken {
				if depth--; depth == 0 {
					inside = 0
				}
			}
		case kind == html.StartTagToken && dropped[name]:
			inside, depth = name, 1
		case void[name], dropped[name], kind == html.CommentToken:
		default:
			out.WriteString(raw)
		}
	}
}

// emptyLink matches a link around a picture that was removed.
var emptyLink = text.Regexp(`\[\s*\]\([^()\s]*\)`)

// blankLines matches more blank lines than separate two paragraphs.
var blankLines = text.Regexp(`\n(?:[ \t]*\n){2,}`)

// Tidy removes from Markdown the links without text, and blank lines.
func Tidy(markdown string) string {
	markdown = emptyLink().ReplaceAllString(markdown, "")
	return strings.TrimSpace(blankLines().ReplaceAllString(markdown, "\n\n")) + "\n"
}
