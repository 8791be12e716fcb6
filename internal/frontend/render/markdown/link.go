package markdown

import (
	"bytes"
	"fmt"
	stdhtml "html"
	"strings"
	"unicode/utf8"

	"loki/internal/base/text"
)

const (
	maxTitle = 1 << 10 // bytes of the title of a link
	maxTag   = 4 << 10 // bytes of a tag
)

// bracket takes [ or ![, which may begin a link.
func (in *inline) bracket(n int) {
	in.add(textNode, n)
	in.brackets = append(in.brackets, bracket{node: int32(len(in.nodes) - 1), marks: len(in.stack), image: n == 2})
}

// endLink takes ], which ends the text of a link if an address follows.
func (in *inline) endLink() {
	k := len(in.brackets) - 1
	if k < 0 {
		in.at++
		return
	}
	b := in.brackets[k]
	in.brackets = in.brackets[:k]
	if b.dead {
		in.at++
		return
	}
	dest, n, ok := target(in.text[in.at+1:], in.live)
	if !ok {
		in.at++
		return
	}
	in.flush(in.at)
	in.match(b.marks)
	in.links = append(in.links, unescape(dest))
	id := int32(len(in.links))
	in.nodes[b.node].kind = linkStart
	in.nodes[b.node].link = id
	in.nodes = append(in.nodes, node{kind: linkEnd, link: id, from: b.node})
	in.at += 1 + n
	in.from = in.at
	if !b.image {
		for i := range in.brackets {
			in.brackets[i].dead = in.brackets[i].dead || !in.brackets[i].image
		}
	}
}

// target returns the address between the parentheses that text begins with, as it is
// written, and how many bytes that takes, with the title if there is one. If half is set
// the end may be missing.
func target(text []byte, half bool) (dest []byte, n int, ok bool) {
	if len(text) == 0 || text[0] != '(' {
		return nil, 0, false
	}
	i := skipBlank(text, 1)
	if i < len(text) && text[i] == '<' {
		for j := i + 1; j < len(text); j++ {
			switch text[j] {
			case '\\':
				j++
			case '<', '\n':
				return nil, 0, false
			case '>':
				ok = finish(text, j+1, half, &n)
				return text[i+1 : j], n, ok
			}
		}
		return text[i+1:], len(text), half
	}
	depth, j := 0, i
loop:
	for ; j < len(text); j++ {
		switch c := text[j]; {
		case c == '\\' && j+1 < len(text) && isPunctuation(text[j+1]):
			j++
		case edge(c):
			break loop
		case c == '(':
			if depth++; depth > 32 {
				return nil, 0, false
			}
		case c == ')':
			if depth == 0 {
				break loop
			}
			depth--
		}
	}
	if j == len(text) {
		return text[i:], len(text), half
	}
	if depth != 0 {
		return nil, 0, false
	}
	ok = finish(text, j, half, &n)
	return text[i:j], n, ok
}

// finish finds the end of a target whose address ends at i: a title, perhaps, and a
// parenthesis.
func finish(text []byte, i int, half bool, n *int) bool {
	j := skipBlank(text, i)
	if j < len(text) && j > i {
		closing := byte(0)
		switch text[j] {
		case '"', '\'':
			closing = text[j]
		case '(':
			closing = ')'
		}
		if closing != 0 {
			start := j
			for j++; j < len(text) && text[j] != closing; j++ {
				if text[j] == '\\' {
					j++
				}
				if j > start+maxTitle {
					return false
				}
			}
			j = skipBlank(text, min(j+1, len(text)))
		}
	}
	*n = min(j+1, len(text))
	if j >= len(text) {
		return half
	}
	return text[j] == ')'
}

func skipBlank(text []byte, i int) int { return len(text) - len(bytes.TrimLeft(text[i:], " \n")) }

// unescape returns what an address in a link means.
func unescape(dest []byte) string {
	if !bytes.ContainsAny(dest, `\&`) {
		return string(dest)
	}
	out := make([]byte, 0, len(dest))
	for i := 0; i < len(dest); i++ {
		if dest[i] == '\\' && i+1 < len(dest) && isPunctuation(dest[i+1]) {
			i++
		}
		out = append(out, dest[i])
	}
	return text.Printable(stdhtml.UnescapeString(string(out)))
}

// finishLink adds the address of the link whose text began at n.from, unless the text says
// it or the terminal can follow it.
func (in *inline) finishLink(n *node, st style) {
	url := in.links[n.link-1]
	text := string(in.vis[in.nodes[n.from].from:])
	if url == "" || text == url || in.hyperlinks && Linkable(url) && !disguises(text, url) {
		if text == "" && url != "" {
			in.vis = append(in.vis, url...)
			in.cover(st|link, n.link)
		}
		return
	}
	st &^= link
	if text != "" {
		in.print([]byte(" ("), st|address)
	}
	in.vis = append(in.vis, url...)
	in.cover(st|address, n.link)
	if text != "" {
		in.print([]byte(")"), st|address)
	}
}

// Linkable reports whether a terminal may follow url: an address that leads to
// the web or to a mailbox. Others can start programs.
func Linkable(url string) bool {
	scheme, _, ok := strings.Cut(url, ":")
	if !ok || len(url) > 2048 {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto":
		return true
	}
	return false
}

// disguises reports whether the text of a link looks like an address other than the
// one it leads to.
func disguises(text, url string) bool {
	text = strings.TrimSpace(text)
	i := strings.IndexByte(text, '.')
	if i < 1 || i+1 == len(text) || !wordy(text[i-1]) || !wordy(text[i+1]) || strings.ContainsAny(text, " \n()") {
		return false
	}
	return !strings.Contains(strings.ToLower(url), strings.ToLower(text))
}

// LinkEnd ends a link that [AppendLink] began.
const LinkEnd = "\x1b]8;;\x1b\\"

// AppendLink appends the sequence from which on text is a link to url.
//
// Source: Koblinger, Hyperlinks in terminal emulators (OSC 8).
func AppendLink(dst []byte, url string) []byte {
	dst = escapeURL(append(dst, "\x1b]8;;"...), url)
	return append(dst, "\x1b\\"...)
}

// escapeURL appends url as an escape sequence may contain it: printable ASCII.
func escapeURL(dst []byte, url string) []byte {
	for _, c := range []byte(url) {
		if c > ' ' && c < 0x7f {
			dst = append(dst, c)
		} else {
			dst = fmt.Appendf(dst, "%%%02X", c)
		}
	}
	return dst
}

// bareURL takes a web address without any brackets, at its colon.
//
// Source: GitHub Flavored Markdown 0.29, extended autolinks.
func (in *inline) bareURL() {
	if !isAddress(in.text, in.at) {
		in.at++
		return
	}
	start := in.at - 4
	if in.text[in.at-1]|0x20 == 's' {
		start--
	}
	if start < in.from || !strings.EqualFold(string(in.text[start:start+4]), "http") || start > 0 && isAlnum(in.text[start-1]) {
		in.at++
		return
	}
	end := trimURL(in.text, in.at+3, endURL(in.text, in.at+3))
	if end == in.at+3 || !isAlnum(in.text[in.at+3]) && in.text[in.at+3] < utf8.RuneSelf {
		in.at++
		return
	}
	in.flush(start)
	in.at = start
	in.links = append(in.links, string(in.text[start:end]))
	in.add(urlNode, end-start)
	in.nodes[len(in.nodes)-1].link = int32(len(in.links))
}

// endURL returns where an address ends at the latest: at a space, at brackets other than
// pairs of parentheses, at a quotation mark, and at ideographs and their punctuation.
func endURL(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c <= ' ', bytes.IndexByte([]byte("<>[]{}`\"|\\"), c) >= 0, c >= 0xe3 && c <= 0xed, c == 0xef:
			return i
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return i
}

// trimURL returns where an address that reaches to end at most does end: punctuation
// after it does not belong to it.
func trimURL(text []byte, start, end int) int {
	return start + len(bytes.TrimRight(text[start:end], "?!.,:*_~';$"))
}
