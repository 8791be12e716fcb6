package yamldoc

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrorAt is like Errorf, for the place where byte offset of the node's text stands.
func (n *Node) ErrorAt(offset int, format string, args ...any) *Problem {
	return n.doc.report(place(n.doc.src, n.raw.pos, n.raw.text, offset), n.path, fmt.Sprintf(format, args...))
}

// Place returns where byte offset of a text is in the source of a document, in which the text is a scalar, in whatever
// style, that begins at begin. A place in white space is that of what follows it.
func Place(src []byte, begin Pos, text string, offset int) Pos {
	return place(normalize(src), begin, text, offset)
}

// place aligns the text with the source. Folding and indentation change white space only, so the n-th character of the text that is not
// white space is the n-th of the source, but for the escapes of quoted texts.
func place(src []byte, begin Pos, text string, offset int) Pos {
	c := cursor{rest: string(lineFrom(src, begin)), pos: begin}
	c.open()
	before, after := text[:min(offset, len(text))], text[min(offset, len(text)):]
	wanted, atEnd := solid(before), solid(after) == 0
	end := c.pos
	for n := 0; ; {
		if c.rest == "" || atEnd && n == wanted {
			return end
		}
		size, space := c.unit()
		if !space && n == wanted {
			return c.pos
		}
		c.skip(size)
		if !space {
			n++
			end = c.pos
		}
	}
}

// solid returns the number of characters that are not white space.
func solid(text string) int {
	return utf8.RuneCountInString(strings.NewReplacer(" ", "", "\t", "", "\n", "", "\r", "").Replace(text))
}

// lineFrom returns src from a place on, nothing if it is not there.
func lineFrom(src []byte, pos Pos) []byte {
	for ; pos.Line > 1; pos.Line-- {
		_, src, _ = bytes.Cut(src, []byte("\n"))
	}
	for ; pos.Column > 1 && len(src) > 0; pos.Column-- {
		_, size := utf8.DecodeRune(src)
		src = src[size:]
	}
	return src
}

// cursor goes through the source of a scalar.
type cursor struct {
	rest  string
	pos   Pos
	quote byte // the style: ', " or 0
}

func (c *cursor) skip(size int) {
	for range utf8.RuneCountInString(c.rest[:size]) {
		r, n := utf8.DecodeRuneInString(c.rest)
		c.rest = c.rest[n:]
		c.pos.Column++
		if r == '\n' {
			c.pos = Pos{c.pos.Line + 1, 1}
		}
	}
}

// open goes to the content: behind anchors and tags, a quote, or the first line of a block.
func (c *cursor) open() {
	for c.rest != "" && strings.IndexByte("&! \t", c.rest[0]) >= 0 {
		c.skip(max(1, strings.IndexAny(c.rest, " \t\n")))
	}
	switch {
	case c.rest == "":
	case c.rest[0] == '"' || c.rest[0] == '\'':
		c.quote = c.rest[0]
		c.skip(1)
	case c.rest[0] == '|' || c.rest[0] == '>':
		c.skip(strings.IndexByte(c.rest+"\n", '\n'))
	}
}

// unit returns the length of what represents the next character, and whether that is white space, or nothing.
func (c *cursor) unit() (size int, space bool) {
	_, size = utf8.DecodeRuneInString(c.rest)
	switch {
	case strings.IndexByte(" \t\n", c.rest[0]) >= 0:
		return size, true
	case c.quote == '\'' && strings.HasPrefix(c.rest, "''"):
		return 2, false
	case c.quote != '"' || c.rest[0] != '\\' || len(c.rest) < 2:
		return size, false
	}
	_, size = utf8.DecodeRuneInString(c.rest[1:])
	if digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c.rest[1]]; digits > 0 && len(c.rest) >= 2+digits {
		r, _ := strconv.ParseUint(c.rest[2:2+digits], 16, 32)
		return 2 + digits, strings.ContainsRune(" \t\n\r", rune(r))
	}
	return 1 + size, strings.IndexByte("tnr \t\n", c.rest[1]) >= 0
}
