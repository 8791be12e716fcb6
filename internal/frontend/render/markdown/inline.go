package markdown

import (
	"bytes"
	"unicode/utf8"
)

// inline is text with the styles and links of its parts.
type inline struct {
	vis   []byte // what is seen
	runs  []run  // cover vis
	links []string
	open  bool // a mark was not closed that later text could close

	// The rest is what scan works with.
	live       bool // marks that are open count as closed
	more       bool // another line follows
	hyperlinks bool
	text       []byte
	at         int
	from       int // where the text begins that is not a node yet
	nodes      []node
	stack      []opener
	brackets   []bracket
	aux        []byte  // the characters that entities mean
	noEnd      [4]bool // for TeX and comments: nothing ends them any more
}

// run is a part of the text with one style: from the end of the run before to end.
type run struct {
	end   int
	style style
	link  int32 // 1 for the first of the links; 0 for none
}

// nodeKind says what a node is.
type nodeKind uint8

const (
	textNode nodeKind = iota // text[from:to]
	auxNode                  // aux[from:to]
	markNode                 // what is left of a run of *, _ or ~: text[from:to]
	codeNode                 // a code span
	htmlNode                 // a tag
	mathNode
	urlNode   // an address that is its own text
	breakNode // a line break
	linkStart
	linkEnd
	goneNode // a mark that is not shown
)

// node is a part of the text. What styles begin and end there is counted, since those
// of the same kind may be nested.
type node struct {
	kind     nodeKind
	from, to int32
	link     int32
	begin    [3]int8 // after the node: emphasis, strong, strike
	end      [3]int8 // before it
}

// opener is a run of marks that may begin an inline.
type opener struct {
	node     int32
	count    int32 // marks that are left
	length   int32 // marks that there were
	char     byte
	canClose bool
}

// bracket is a [ that may begin a link.
type bracket struct {
	node  int32
	marks int // openers there were before
	image bool
	dead  bool // a link cannot begin here, because one is within
}

// reset makes in empty.
func (in *inline) reset(m *machine) {
	in.vis, in.runs, in.links = in.vis[:0], in.runs[:0], in.links[:0]
	in.open, in.live, in.more, in.hyperlinks = false, m.live, false, m.o.Hyperlinks
}

// print adds text that is not Markdown.
func (in *inline) print(text []byte, st style) {
	in.vis = append(in.vis, text...)
	in.cover(st, 0)
}

// cover gives what was added to vis a style.
func (in *inline) cover(st style, link int32) {
	n := len(in.vis)
	if k := len(in.runs); k > 0 {
		last := &in.runs[k-1]
		if last.end == n {
			return
		}
		if last.style == st && last.link == link {
			last.end = n
			return
		}
	} else if n == 0 {
		return
	}
	in.runs = append(in.runs, run{end: n, style: st, link: link})
}

// special marks the bytes at which something may begin.
var special = [256]bool{
	'*': true, '_': true, '~': true, '`': true, '[': true, ']': true, '!': true, '<': true,
	'&': true, '\\': true, '$': true, ':': true,
}

// isAddress reports whether a colon at i follows the scheme of a web address.
func isAddress(text []byte, i int) bool {
	return i+3 < len(text) && text[i+1] == '/' && text[i+2] == '/' && i >= 4 && (text[i-1]|0x20 == 'p' || text[i-1]|0x20 == 's')
}

// scan adds text, which is Markdown.
//
// Source: CommonMark 0.31.2, "An algorithm for parsing nested emphasis and links".
func (in *inline) scan(text []byte) {
	in.text, in.at, in.from = text, 0, 0
	in.nodes, in.stack, in.brackets, in.aux = in.nodes[:0], in.stack[:0], in.brackets[:0], in.aux[:0]
	clear(in.noEnd[:])
	for in.at < len(text) {
		c := text[in.at]
		if !special[c] {
			in.at++
			continue
		}
		in.mark(c)
	}
	in.flush(len(text))
	in.match(0)
	for _, b := range in.brackets {
		in.open = in.open || !b.dead
	}
	in.lay()
}

// flush makes a node of the text up to end, from where the last node ended.
func (in *inline) flush(end int) {
	if end > in.from {
		in.nodes = append(in.nodes, node{kind: textNode, from: int32(in.from), to: int32(end)})
	}
	in.from = end
}

// add makes a node of the next n bytes.
func (in *inline) add(kind nodeKind, n int) {
	in.flush(in.at)
	in.nodes = append(in.nodes, node{kind: kind, from: int32(in.at), to: int32(in.at + n)})
	in.at += n
	in.from = in.at
}

// skip leaves n bytes out.
func (in *inline) skip(n int) {
	in.flush(in.at)
	in.at += n
	in.from = in.at
}

// mark takes what begins with the special character c.
func (in *inline) mark(c byte) {
	switch c {
	case '*', '_', '~':
		in.emphasis(c)
	case '`':
		in.codeSpan()
	case '\\':
		in.escape()
	case '$':
		in.dollars()
	case '<':
		in.angle()
	case '&':
		in.entity()
	case ':':
		in.bareURL()
	case '!':
		if in.at+1 < len(in.text) && in.text[in.at+1] == '[' {
			in.bracket(2)
			return
		}
		in.at++
	case '[':
		in.bracket(1)
	case ']':
		in.endLink()
	}
}

// emphasis takes a run of marks of emphasis.
func (in *inline) emphasis(c byte) {
	n := runLength(in.text[in.at:], c)
	if c == '~' && n != 2 { // a single tilde often means about
		in.at += n
		return
	}
	before, after := around(in.text, in.at, in.at+n)
	// Outside a mark an ideograph is as good as a space: there are none between words.
	left := after != blank && (after != punctuation || before != letter)
	right := before != blank && (before != punctuation || after != letter)
	canOpen, canClose := left, right
	if c == '_' {
		canOpen = left && (!right || before == punctuation)
		canClose = right && (!left || after == punctuation)
	}
	if in.live && in.at+n == len(in.text) && (!canClose || in.openMarks(c) != n) {
		in.add(goneNode, n) // the rest of the mark, or its text, is about to come
		return
	}
	in.add(markNode, n)
	if canOpen || canClose {
		in.stack = append(in.stack, opener{
			node: int32(len(in.nodes) - 1), count: int32(n), length: int32(n), char: c, canClose: canClose,
		})
		if !canOpen {
			in.stack[len(in.stack)-1].char |= closesOnly
		}
	}
}

// openMarks returns about how many marks c are open.
func (in *inline) openMarks(c byte) int {
	n := int32(0)
	for _, o := range in.stack {
		switch {
		case o.char == c|closesOnly || o.char == c && o.canClose && n > 0:
			n = max(0, n-o.length)
		case o.char == c:
			n += o.length
		}
	}
	return int(n)
}

// closesOnly marks an opener that cannot open.
const closesOnly = 0x80

// match pairs the marks from the first one on, and forgets them.
func (in *inline) match(first int) {
	marks := in.stack[first:]
	open := marks[:0] // marks that may still be paired; it never overtakes the loop
	var floor [3 * 2 * 3]int
	for _, m := range marks {
		opens := m.char&closesOnly == 0
		m.char &^= closesOnly
		for m.canClose && m.count > 0 {
			slot := floorOf(m, opens)
			i := len(open) - 1
			for ; i >= floor[slot]; i-- {
				o := &open[i]
				if o.char != m.char {
					continue
				}
				if m.char == '~' {
					break
				}
				if (o.canClose || opens) && (o.length+m.length)%3 == 0 && (o.length%3 != 0 || m.length%3 != 0) {
					continue
				}
				break
			}
			if i < floor[slot] {
				floor[slot] = len(open)
				break
			}
			in.pair(&open[i], &m)
			keep := i + 1
			if open[i].count == 0 {
				keep = i
			}
			open = open[:keep]
			for s := range floor {
				floor[s] = min(floor[s], keep)
			}
		}
		if opens && m.count > 0 {
			open = append(open, m)
		}
	}
	if len(open) > 0 {
		if in.live {
			in.closeAll(open)
		} else {
			in.open = true
		}
	}
	in.stack = in.stack[:first]
}

// floorOf returns which floor holds for the marks m: a search that has failed fails
// again for marks of the same kind and length, modulo three.
func floorOf(m opener, opens bool) int {
	slot := 0
	switch m.char {
	case '_':
		slot = 1
	case '~':
		slot = 2
	}
	slot *= 2
	if opens {
		slot++
	}
	return slot*3 + int(m.length%3)
}

// pair makes what is between two marks emphasis: strong if both have two.
func (in *inline) pair(o, c *opener) {
	n, kind := int32(1), 0
	if o.char == '~' {
		n, kind = 2, 2
	} else if o.count >= 2 && c.count >= 2 {
		n, kind = 2, 1
	}
	on, off := &in.nodes[o.node], &in.nodes[c.node]
	on.to -= n
	on.begin[kind]++
	off.from += n
	off.end[kind]++
	o.count -= n
	c.count -= n
}

// closeAll lets the inlines that are open reach to the end of the text.
func (in *inline) closeAll(open []opener) {
	for i := range open {
		o := &open[i]
		on := &in.nodes[o.node]
		for o.count > 0 {
			n, kind := int32(1), 0
			if o.char == '~' {
				n, kind = 2, 2
			} else if o.count >= 2 {
				n, kind = 2, 1
			}
			on.begin[kind]++
			o.count -= n
			on.to -= n
		}
	}
}

// lay adds the nodes to the text that is seen.
func (in *inline) lay() {
	var depth [3]int
	current := int32(0)
	for i := range in.nodes {
		n := &in.nodes[i]
		for k := range depth {
			depth[k] = max(0, depth[k]-int(n.end[k]))
		}
		st := style(0)
		for k := range depth {
			if depth[k] > 0 {
				st |= emphasis << k
			}
		}
		if current != 0 {
			st |= link
		}
		switch n.kind {
		case textNode, markNode, htmlNode, mathNode:
			in.vis = append(in.vis, in.text[n.from:n.to]...)
			in.cover(st|map[nodeKind]style{htmlNode: html, mathNode: math}[n.kind], current)
		case auxNode:
			in.vis = append(in.vis, in.aux[n.from:n.to]...)
			in.cover(st, current)
		case codeNode:
			in.code(in.text[n.from:n.to])
			in.cover(st|code, current)
		case urlNode:
			in.vis = append(in.vis, in.text[n.from:n.to]...)
			in.cover(st|link, max(current, n.link))
		case breakNode:
			in.vis = append(in.vis, '\n')
			in.cover(st, current)
		case linkStart:
			if current == 0 {
				current = n.link
				n.from = int32(len(in.vis))
			}
		case linkEnd:
			if current == n.link {
				in.finishLink(n, st)
				current = 0
			}
		}
		for k := range depth {
			depth[k] += int(n.begin[k])
		}
	}
}

// code adds the content of a code span.
func (in *inline) code(text []byte) {
	if n := len(text); n > 1 && edge(text[0]) && edge(text[n-1]) && len(bytes.Trim(text, " \n")) > 0 {
		text = text[1 : n-1]
	}
	in.vis = append(in.vis, bytes.ReplaceAll(text, []byte("\n"), []byte(" "))...)
}

func edge(c byte) bool { return c == ' ' || c == '\n' }

// codeSpan takes a run of backticks, and what is between it and the next one of the
// same length.
func (in *inline) codeSpan() {
	n := runLength(in.text[in.at:], '`')
	for i := in.at + n; i < len(in.text); {
		j := bytes.IndexByte(in.text[i:], '`')
		if j < 0 {
			break
		}
		i += j
		k := runLength(in.text[i:], '`')
		if k == n {
			in.skip(n)
			in.add(codeNode, i-in.at)
			in.skip(n)
			return
		}
		i += k
	}
	if in.live {
		in.skip(n)
		in.add(codeNode, len(in.text)-in.at)
		return
	}
	in.open = true
	in.at += n
}

// What is beside a mark.
const (
	blank = iota
	punctuation
	letter
	ideograph
)

// around returns what is before and after text[from:to].
func around(text []byte, from, to int) (before, after int) {
	if from > 0 {
		r, _ := utf8.DecodeLastRune(text[:from])
		before = class(r)
	}
	if to < len(text) {
		r, _ := utf8.DecodeRune(text[to:])
		after = class(r)
	}
	return before, after
}
