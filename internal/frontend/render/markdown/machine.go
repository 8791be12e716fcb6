package markdown

import (
	"bytes"
	"slices"

	"loki/internal/frontend/render/highlight"
)

// leaf is the kind of block that the next line may belong to.
type leaf uint8

const (
	noLeaf    leaf = iota
	paragraph      // machine.text holds its lines
	table          // machine.text holds its rows
	indented       // code; nothing is held
	fenced         // code; machine.text holds lines if they are highlighted
	rawHTML
)

// maxDepth is how many containers may be within each other; what would be a deeper one
// is text.
const maxDepth = 24

// container is a quote or an item of a list.
type container struct {
	item   bool
	indent int // columns that lines of an item are indented by
	pad    int // columns left of the item's bullet

	bullet [16]byte // as it is printed
	size   int      // bytes of bullet
	wide   int      // columns of bullet
	box    bool     // bullet is the box of a task
	done   bool     // that is ticked
	fresh  bool     // bullet is not printed yet
	empty  bool     // there was nothing on the line of the bullet
}

// columns returns how many columns of a row the container takes.
func (c *container) columns() int {
	if c.item {
		return c.pad + c.wide + 1
	}
	return 2
}

// machine turns lines of source into rows.
type machine struct {
	o       *Options
	paint   palette
	columns int  // of the window
	limit   int  // columns at which text is wrapped; 0 for not at all
	live    bool // what is rendered is a tail
	severed bool // the next line is the rest of one that was cut

	stack []container
	leaf  leaf
	text  []byte // lines that are held, each with a line feed
	lines int    // how many

	fence fence
	code  codeState
	spans []highlight.Span // of code that is printed
	html  []byte           // what ends the HTML block
	tbl   layout
	in    inline
	cells []inline // of a row that is laid out
	tabs  []byte
}

// from makes m a copy of src.
func (m *machine) from(src *machine) {
	m.stack = append(m.stack[:0], src.stack...)
	m.text = append(m.text[:0], src.text...)
	m.leaf, m.lines, m.severed = src.leaf, src.lines, src.severed
	m.fence, m.html = src.fence, src.html
	m.code, m.tbl = src.code, src.tbl // the slices of a layout are never changed once they are set
	m.code.state = src.code.state.Clone()
}

func (m *machine) reset() {
	m.stack, m.text = m.stack[:0], m.text[:0]
	m.leaf, m.lines, m.severed = noLeaf, 0, false
	m.code, m.tbl = codeState{}, layout{}
}

// resize notes the width of the window.
func (m *machine) resize(columns int) {
	if columns <= 0 {
		columns = 80
	}
	m.columns = columns
	switch m.limit = m.o.Wrap; {
	case m.limit == Auto:
		m.limit = columns
	case m.limit > 0:
		m.limit = min(m.limit, columns)
	}
	m.paint.s = m.o.Styles
}

// line takes a line of source, without its line feed, and appends the rows that become
// final.
func (m *machine) line(dst, line []byte) []byte {
	if m.o.Styles == nil {
		return m.source(dst, line)
	}
	line = m.expand(line)
	if m.severed {
		return m.sequel(dst, line)
	}
	rest, n := m.enter(line)
	switch {
	case n < len(m.stack):
		if m.leaf != paragraph { // a paragraph may continue without the marks of its containers
			dst = m.close(dst, n)
		}
	case m.leaf == fenced:
		return m.fencedLine(dst, rest)
	case m.leaf == rawHTML:
		return m.htmlLine(dst, rest)
	}
	lazy := n < len(m.stack)
	opened := false
	for len(m.stack) < maxDepth || lazy {
		indent := spaces(rest)
		if indent == len(rest) || indent >= 4 {
			break
		}
		c, after, ok := m.opens(rest, indent, (m.leaf == paragraph || m.leaf == table) && !lazy)
		if !ok {
			break
		}
		dst = m.close(dst, n)
		m.stack = append(m.stack, c)
		n++
		rest, lazy, opened = after, false, true
		if c.box {
			return m.textLine(dst, rest) // what follows a box is text
		}
	}
	if spaces(rest) == len(rest) {
		return m.blankLine(dst, n, opened)
	}
	for i := range m.stack[:n] {
		m.stack[i].empty = false
	}
	if out, ok := m.start(dst, rest, n, lazy, opened); ok {
		return out
	}
	return m.textLine(dst, rest)
}

// sequel takes what follows a cut: text or code of the same block.
func (m *machine) sequel(dst, line []byte) []byte {
	switch m.leaf {
	case fenced:
		return m.codeLine(dst, line)
	case rawHTML:
		return m.htmlLine(dst, line)
	case paragraph:
		return m.textLine(dst, line)
	}
	dst = m.endLeaf(dst)
	return m.textLine(dst, line)
}

// enter returns what is left of the line within the containers that it continues, and how
// many these are.
func (m *machine) enter(line []byte) (rest []byte, n int) {
	for n = range m.stack {
		c := &m.stack[n]
		indent := spaces(line)
		switch {
		case !c.item:
			if indent > 3 || indent == len(line) || line[indent] != '>' {
				return line, n
			}
			line = afterMark(line[indent+1:])
		case indent == len(line):
			line = line[indent:]
		case indent >= c.indent:
			line = line[c.indent:]
		default:
			return line, n
		}
	}
	return line, len(m.stack)
}

// afterMark drops the one space that may follow the mark of a quote.
func afterMark(line []byte) []byte { return bytes.TrimPrefix(line, []byte(" ")) }

// blankLine takes a line with nothing in it but containers.
func (m *machine) blankLine(dst []byte, n int, opened bool) []byte {
	if m.leaf != indented || n < len(m.stack) {
		dst = m.close(dst, n)
	}
	if opened {
		return append(bytes.TrimRight(m.prefix(dst), " "), '\n')
	}
	if k := len(m.stack) - 1; k >= 0 && m.stack[k].empty { // an item of nothing
		m.stack = m.stack[:k]
	}
	return append(m.bars(dst), '\n')
}

// textLine takes a line of a paragraph or a table.
func (m *machine) textLine(dst, rest []byte) []byte {
	if m.leaf == table {
		return m.tableLine(dst, rest)
	}
	if m.leaf != paragraph {
		dst = m.endLeaf(dst)
		m.leaf = paragraph
	}
	dst = m.settle(dst)
	m.hold(bytes.TrimRight(rest, " "))
	return dst
}

// hold keeps a line.
func (m *machine) hold(line []byte) {
	m.text = append(append(m.text, line...), '\n')
	m.lines++
}

// heldLines returns the lines that are held, without the last line feed.
func (m *machine) heldLines() []byte { return m.text[:max(0, len(m.text)-1)] }

func (m *machine) release() { m.text, m.lines = m.text[:0], 0 }

// settle makes the lines of a paragraph final that another line has followed, unless an
// inline is open in them.
func (m *machine) settle(dst []byte) []byte {
	if m.lines == 0 || m.live {
		return dst
	}
	m.in.reset(m)
	m.in.more = true
	m.in.scan(m.heldLines())
	if m.in.open && m.lines < maxRows && len(m.text) < maxHeld {
		return dst
	}
	dst = m.flow(dst, m.textBase())
	m.release()
	return dst
}

// inlines appends the rows of text, which is Markdown.
func (m *machine) inlines(dst, text []byte, base style) []byte {
	m.in.reset(m)
	m.in.scan(text)
	return m.flow(dst, base)
}

// textBase returns the style of paragraphs.
func (m *machine) textBase() style {
	if slices.ContainsFunc(m.stack, func(c container) bool { return !c.item }) {
		return baseQuote
	}
	return baseText
}

// close ends the block and all containers but the first n.
func (m *machine) close(dst []byte, n int) []byte {
	dst = m.endLeaf(dst)
	n = min(n, len(m.stack))
	if slices.ContainsFunc(m.stack[n:], func(c container) bool { return c.fresh }) { // an item of nothing
		dst = append(bytes.TrimRight(m.prefix(dst), " "), '\n')
	}
	m.stack = m.stack[:n]
	return dst
}

// endLeaf ends the block.
func (m *machine) endLeaf(dst []byte) []byte {
	switch m.leaf {
	case paragraph:
		if m.lines > 0 {
			dst = m.inlines(dst, m.heldLines(), m.textBase())
		}
	case table:
		dst = m.endTable(dst)
	case fenced:
		dst = m.flushCode(dst, m.lines)
		m.code = codeState{}
	}
	m.release()
	m.leaf = noLeaf
	return dst
}

// expand replaces tabs by spaces up to the next multiple of four columns.
func (m *machine) expand(line []byte) []byte {
	i := bytes.IndexByte(line, '\t')
	if i < 0 {
		return line
	}
	out := append(m.tabs[:0], line[:i]...)
	col := width(line[:i])
	for _, c := range line[i:] {
		if c != '\t' {
			out = append(out, c)
			if c < 0x80 || c >= 0xc0 {
				col++
			}
			continue
		}
		for {
			out = append(out, ' ')
			if col++; col%4 == 0 {
				break
			}
		}
	}
	m.tabs = out
	return out
}

// spaces returns the number of spaces that line begins with.
func spaces(line []byte) int { return runLength(line, ' ') }

// runLength returns how many times c stands at the beginning of text.
func runLength(text []byte, c byte) int { return len(text) - len(bytes.TrimLeft(text, string(c))) }

// tokenStyle returns the base style of a kind of token.
func tokenStyle(k highlight.Kind) style { return baseToken + style(k)<<9 }
