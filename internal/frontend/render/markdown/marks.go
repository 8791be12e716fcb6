package markdown

import (
	"bytes"
	stdhtml "html"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/base/text"
)

// class says what r is for the marks beside it.
func class(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		switch {
		case r == ' ' || r == '\n':
			return blank
		case isPunctuation(byte(r)):
			return punctuation
		}
		return letter
	case unicode.IsSpace(r):
		return blank
	case unicode.IsPunct(r) || unicode.IsSymbol(r):
		return punctuation
	case ansi.StringWidth(string(r)) == 2:
		return ideograph
	}
	return letter
}

// isPunctuation reports whether c is ASCII punctuation.
func isPunctuation(c byte) bool {
	return c > ' ' && c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z' && c < 0x7f
}

// escape takes a backslash.
func (in *inline) escape() {
	if in.at+1 == len(in.text) {
		if in.live || in.more { // a hard line break
			in.skip(1)
			return
		}
		in.at++
		return
	}
	switch c := in.text[in.at+1]; {
	case c == '(' && in.verbatim(`\(`, `\)`), c == '[' && in.verbatim(`\[`, `\]`):
	case c == '\n':
		in.skip(1)
		in.at++
	case isPunctuation(c):
		in.skip(1)
		in.at++
	default:
		in.at++
	}
}

// verbatim takes everything from one mark to another as it is.
func (in *inline) verbatim(begin, end string) bool {
	k := bytes.IndexByte([]byte("([$"), begin[1])
	if in.noEnd[k] {
		return false
	}
	rest := in.text[in.at+len(begin):]
	i := bytes.Index(rest, []byte(end))
	switch {
	case i >= 0:
		in.add(mathNode, len(begin)+i+len(end))
	case in.live:
		in.add(mathNode, len(in.text)-in.at)
	default:
		in.open, in.noEnd[k] = true, true
		return false
	}
	return true
}

// dollars takes TeX between dollar signs. A single one begins it if no space follows, and
// ends it, on the same line, if no space is before it and no digit after it, so that prices are
// prices.
//
// Source: the Pandoc manual, extension tex_math_dollars.
func (in *inline) dollars() {
	text := in.text
	if in.at+1 < len(text) && text[in.at+1] == '$' {
		if !in.verbatim("$$", "$$") {
			in.at += 2
		}
		return
	}
	for i := in.at + 1; i < len(text) && text[i] != '\n'; i++ {
		switch text[i] {
		case '\\':
			i++
		case '$':
			after := byte(0)
			if i+1 < len(text) {
				after = text[i+1]
			}
			if text[in.at+1] == ' ' || text[i-1] == ' ' || after >= '0' && after <= '9' {
				in.at++
				return
			}
			in.add(mathNode, i+1-in.at)
			return
		}
	}
	in.at++
}

// entity takes a character reference.
func (in *inline) entity() {
	rest := in.text[in.at:]
	n := 1
	for n < len(rest) && n < 34 && (isAlnum(rest[n]) || n == 1 && rest[n] == '#') {
		n++
	}
	if n < 3 || n >= len(rest) || rest[n] != ';' {
		in.at++
		return
	}
	name := string(rest[:n+1])
	char := stdhtml.UnescapeString(name)
	if char == name {
		in.at++
		return
	}
	in.flush(in.at)
	start := len(in.aux)
	in.aux = append(in.aux, text.Printable(char)...)
	in.nodes = append(in.nodes, node{kind: auxNode, from: int32(start), to: int32(len(in.aux))})
	in.at += n + 1
	in.from = in.at
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// angle takes an address or a tag between angle brackets. A tag is shown as it is,
// except that <br> breaks the line.
func (in *inline) angle() {
	rest := in.text[in.at:]
	if bytes.HasPrefix(rest, []byte("<!--")) && !in.noEnd[3] {
		if i := bytes.Index(rest, []byte("-->")); i >= 0 {
			in.add(htmlNode, i+3)
			return
		}
		in.noEnd[3] = true
	}
	i := bytes.IndexByte(rest[:min(len(rest), maxTag)], '>')
	if i < 2 {
		in.at++
		return
	}
	inner := rest[1:i]
	switch {
	case urlPattern().Match(inner), mailPattern().Match(inner):
		in.skip(1)
		url := string(inner)
		if mailPattern().Match(inner) {
			url = "mailto:" + url
		}
		in.links = append(in.links, url)
		in.add(urlNode, len(inner))
		in.nodes[len(in.nodes)-1].link = int32(len(in.links))
		in.skip(1)
	case breakPattern().Match(inner):
		in.flush(in.at)
		in.nodes = append(in.nodes, node{kind: breakNode})
		in.at += i + 1
		if in.at < len(in.text) && in.text[in.at] == '\n' {
			in.at++
		}
		in.from = in.at
	case tagPattern().Match(inner):
		in.add(htmlNode, i+1)
	default:
		in.at++
	}
}

// What may stand between angle brackets: an address with its scheme, that of a mailbox, and
// what looks like a tag of HTML, of which <br> is one.
var (
	urlPattern   = text.Regexp(`^[A-Za-z+.-][A-Za-z0-9+.-]{1,31}:[^ \n<]*$`)
	mailPattern  = text.Regexp(`^[A-Za-z0-9.!#$%&'*+/=?^_{|}~` + "`" + `-]+@` + label + `(\.` + label + `)*$`)
	breakPattern = text.Regexp(`(?i)^br[ /]*$`)
	tagPattern   = text.Regexp(`^/?[A-Za-z][A-Za-z0-9-]*([ \n]|/?$)`)
)

// label is a part of the name of a host.
const label = `[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?`
