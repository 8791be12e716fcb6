package markdown

import (
	"bytes"
	"strings"

	"loki/internal/frontend/render/highlight"
)

const (
	window  = 32       // lines that code is printed late, so that what follows can color them
	maxCode = 32 << 10 // bytes of code that are held
)

// fence is what code began with.
type fence struct {
	char   byte
	n      int
	indent int
}

// codeState is how far the code of a fence has been highlighted.
type codeState struct {
	lexer   *highlight.Lexer // nil means that code is not highlighted
	state   highlight.State  // at the beginning of machine.text
	printed int              // bytes of machine.text that are rows already
	guess   bool             // the next line may name the language
}

// opensFence returns the fence that rest begins with after its indentation.
func opensFence(rest []byte, indent int) (fence, bool) {
	text := rest[indent:]
	n := runLength(text, text[0])
	if n < 3 || text[0] == '`' && bytes.IndexByte(text[n:], '`') >= 0 {
		return fence{}, false
	}
	return fence{char: text[0], n: n, indent: indent}, true
}

// closedBy reports whether rest ends what f began.
func (f *fence) closedBy(rest []byte) bool {
	indent := spaces(rest)
	text := bytes.TrimRight(rest[indent:], " ")
	return indent < 4 && len(text) >= f.n && isRun(text, f.char)
}

// language returns the name of the language in the info string of a fence: the first word,
// as far as it is a name. ```{.python}, ```rust,ignore and ```go:main.go name one as well.
func language(info []byte) string {
	s := strings.TrimLeft(string(info), " {.")
	if i := strings.IndexAny(s, " ,:;{}("); i >= 0 {
		s = s[:i]
	}
	return strings.TrimPrefix(s, "language-")
}

// beginFence prints the first line of fenced code.
func (m *machine) beginFence(dst, rest []byte, f fence) []byte {
	m.leaf, m.fence = fenced, f
	m.code = codeState{}
	if m.o.Styles.Token != nil {
		info := bytes.TrimSpace(rest[f.indent+f.n:])
		m.code.guess = len(info) == 0
		m.code.lexer = highlight.Find(language(info))
	}
	return m.plainRow(dst, bytes.TrimRight(rest, " "), baseMark)
}

// fencedLine takes a line between fences, or the second one.
func (m *machine) fencedLine(dst, rest []byte) []byte {
	if m.fence.closedBy(rest) {
		dst = m.endLeaf(dst)
		return m.plainRow(dst, bytes.TrimRight(rest, " "), baseMark)
	}
	return m.codeLine(dst, rest[min(spaces(rest), m.fence.indent):])
}

// codeLine takes a line of code.
func (m *machine) codeLine(dst, line []byte) []byte {
	if m.code.guess {
		m.code.guess = false
		m.code.lexer = highlight.Detect(string(line))
	}
	if m.code.lexer == nil {
		return m.codeRow(dst, line)
	}
	m.hold(line)
	switch {
	case len(m.text) > maxCode:
		return m.flushCode(dst, m.lines)
	case m.lines >= 2*window:
		return m.flushCode(dst, window)
	}
	return dst
}

// flushCode prints the first n of the lines that are held. What a token needs that reaches
// over their end stays.
func (m *machine) flushCode(dst []byte, n int) []byte {
	if n == 0 {
		return dst
	}
	c := &m.code
	end := c.printed
	for range n {
		end += bytes.IndexByte(m.text[end:], '\n') + 1
	}
	resume := 0
	m.spans, resume = c.lexer.Lex(m.spans[:0], m.text, end, &c.state)
	spans := m.spans
	for at := c.printed; at < end; {
		stop := at + bytes.IndexByte(m.text[at:end], '\n')
		for len(spans) > 0 && spans[0].End <= at {
			spans = spans[1:]
		}
		dst = m.tokenRow(dst, at, stop, spans)
		at = stop + 1
	}
	if end-resume > maxCode/2 { // such a token is none
		resume = end
	}
	m.text = m.text[:copy(m.text, m.text[resume:])]
	c.printed = end - resume
	m.lines -= n
	return dst
}

// tokenRow prints the line of code at m.text[from:to], whose tokens spans begins with.
func (m *machine) tokenRow(dst []byte, from, to int, spans []highlight.Span) []byte {
	m.in.reset(m)
	for at := from; at < to && len(spans) > 0; spans = spans[1:] {
		end := min(to, spans[0].End)
		m.in.print(m.text[at:end], tokenStyle(spans[0].Kind))
		at = end
	}
	return m.codeFlow(dst)
}

// codeRow prints a line of code that is not highlighted.
func (m *machine) codeRow(dst, line []byte) []byte {
	m.in.reset(m)
	m.in.print(line, 0)
	return m.codeFlow(dst)
}

func (m *machine) codeFlow(dst []byte) []byte {
	limit := 0
	if m.o.WrapCode {
		limit = m.limit
	}
	return m.appendWrapped(dst, baseBlock, limit)
}
