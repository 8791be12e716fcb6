package markdown

import (
	"bytes"
)

// opens reports whether a container begins at rest[indent], and returns it with what is
// left of the line within it. An item that interrupts a paragraph has to have text, and
// the number 1 if it has one.
func (m *machine) opens(rest []byte, indent int, interrupts bool) (c container, after []byte, ok bool) {
	mark := rest[indent]
	tail := rest[indent+1:]
	switch {
	case mark == '>':
		return container{}, afterMark(tail), true
	case mark == '-' || mark == '+' || mark == '*':
		if len(tail) > 0 && tail[0] != ' ' || isRule(rest[indent:]) {
			return c, nil, false
		}
		c.size = copy(c.bullet[:], "•")
		c.wide = 1
	case mark >= '0' && mark <= '9':
		n := len(rest) - indent - len(bytes.TrimLeft(rest[indent:], "0123456789"))
		if n > 9 || indent+n >= len(rest) || rest[indent+n] != '.' && rest[indent+n] != ')' {
			return c, nil, false
		}
		number := rest[indent : indent+n+1]
		tail = rest[indent+n+1:]
		if len(tail) > 0 && tail[0] != ' ' || interrupts && string(number[:n]) != "1" {
			return c, nil, false
		}
		c.size = copy(c.bullet[:], number)
		c.wide = n + 1
	default:
		return c, nil, false
	}
	c.item, c.fresh, c.pad = true, true, indent
	gap := spaces(tail)
	empty := gap == len(tail)
	if empty && interrupts {
		return c, nil, false
	}
	if empty || gap > 4 {
		gap = min(1, len(tail))
	}
	after = tail[gap:]
	c.indent = len(rest) - len(after)
	if c.empty = empty; empty {
		c.indent = len(rest) - len(tail) + 1
	}
	c.task(&after)
	return c, after, true
}

// task makes c the item of a task list if its text begins with a box.
func (c *container) task(text *[]byte) {
	t := *text
	if len(t) < 5 || t[0] != '[' || t[2] != ']' || t[3] != ' ' || spaces(t[4:]) == len(t)-4 {
		return
	}
	box := "[ ]"
	switch t[1] {
	case ' ':
	case 'x', 'X':
		box, c.done = "[✓]", true
	default:
		return
	}
	if c.wide == 1 {
		c.size, c.wide = 0, 0
	} else {
		c.bullet[c.size] = ' '
		c.size++
		c.wide++
	}
	c.box = true
	c.size += copy(c.bullet[c.size:], box)
	c.wide += 3
	*text = t[4:]
}

// start begins the block that rest is the first line of, if that is any other than a
// paragraph. n containers are around it.
func (m *machine) start(dst, rest []byte, n int, lazy, opened bool) (out []byte, ok bool) {
	indent := spaces(rest)
	goesOn := m.leaf == paragraph && !opened // the line would continue a paragraph
	if indent >= 4 {
		if goesOn || m.leaf == table && !opened && !lazy {
			return dst, false
		}
		if m.leaf != indented || opened {
			dst = m.endLeaf(dst)
			m.leaf = indented
		}
		return m.codeRow(dst, rest), true
	}
	text := rest[indent:]
	switch text[0] {
	case '#':
		if level := headingLevel(text); level > 0 {
			dst = m.close(dst, n)
			return m.heading(dst, rest, indent, level), true
		}
	case '`', '~':
		if f, ok := opensFence(rest, indent); ok {
			dst = m.close(dst, n)
			return m.beginFence(dst, rest, f), true
		}
	case '<':
		if end := opensHTML(text); end != "" {
			dst = m.close(dst, n)
			m.leaf, m.html = rawHTML, []byte(end)
			return m.htmlLine(dst, rest), true
		}
	case '=':
		if goesOn && !lazy && isRun(text, '=') {
			return m.underline(dst, rest, 1), true
		}
	case '-':
		if goesOn && !lazy && isRun(text, '-') {
			return m.underline(dst, rest, 2), true
		}
	}
	if isRule(text) {
		dst = m.close(dst, n)
		return m.ruleRow(dst), true
	}
	if goesOn && !lazy && m.lines > 0 && m.beginTable(&dst, rest) {
		return dst, true
	}
	return dst, false
}

// headingLevel returns the level of the heading that text is, 0 if it is none.
func headingLevel(text []byte) int {
	n := runLength(text, '#')
	if n > 6 || n < len(text) && text[n] != ' ' {
		return 0
	}
	return n
}

// heading renders a heading with its number signs.
func (m *machine) heading(dst, rest []byte, indent, level int) []byte {
	text := bytes.TrimRight(rest[indent+level:], " ")
	closing := bytes.TrimRight(text, "#")
	if len(closing) == 0 || closing[len(closing)-1] == ' ' {
		text = bytes.TrimRight(closing, " ")
	}
	m.in.reset(m)
	m.in.print(rest[:indent+level], mark)
	if len(text) > 0 {
		m.in.print([]byte(" "), 0)
		m.in.scan(bytes.TrimLeft(text, " "))
	}
	return m.flow(dst, baseHeading1+style(level-1)<<9)
}

// underline makes a heading of the paragraph that ends with this line.
func (m *machine) underline(dst, rest []byte, level int) []byte {
	dst = m.inlines(dst, m.heldLines(), baseHeading1+style(level-1)<<9)
	m.release()
	m.leaf = noLeaf
	return m.plainRow(dst, bytes.TrimRight(rest, " "), baseMark)
}

// isRun reports whether text is c again and again, and spaces at the end.
func isRun(text []byte, c byte) bool {
	return runLength(bytes.TrimRight(text, " "), c) == len(bytes.TrimRight(text, " "))
}

// isRule reports whether text is a thematic break: three or more of the same of *, -
// and _, with nothing but spaces between them.
func isRule(text []byte) bool {
	if len(text) < 3 || text[0] != '*' && text[0] != '-' && text[0] != '_' {
		return false
	}
	marks := bytes.ReplaceAll(text, []byte(" "), nil)
	return len(marks) >= 3 && isRun(marks, marks[0])
}

// opensHTML returns what ends the HTML block that begins with text, the empty string if
// none begins. Only what may hold anything until its end counts as a block; other tags
// are inlines.
func opensHTML(text []byte) string {
	for _, b := range []struct{ start, end string }{
		{"<!--", "-->"},
		{"<?", "?>"},
		{"<![CDATA[", "]]>"},
		{"<script", "</script>"},
		{"<pre", "</pre>"},
		{"<style", "</style>"},
		{"<textarea", "</textarea>"},
	} {
		n := len(b.start)
		if len(text) < n || !bytes.EqualFold(text[:n], []byte(b.start)) {
			continue
		}
		if b.end[0] == '<' && len(text) > n && text[n] != ' ' && text[n] != '>' {
			continue
		}
		return b.end
	}
	return ""
}

// htmlLine prints a line of HTML as it is.
func (m *machine) htmlLine(dst, rest []byte) []byte {
	dst = m.plainRow(dst, rest, baseHTML)
	if bytes.Contains(bytes.ToLower(rest), m.html) {
		m.leaf = noLeaf
	}
	return dst
}
