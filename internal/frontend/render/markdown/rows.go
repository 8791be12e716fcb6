package markdown

import (
	"bytes"
	"strings"
)

// prefix appends what stands left of the text of a row: bars of quotes, bullets of
// items whose first row this is, and indentation.
func (m *machine) prefix(dst []byte) []byte {
	for i := range m.stack {
		c := &m.stack[i]
		if !c.item {
			dst = append(m.appendStyled(dst, "│", baseBar), ' ')
			continue
		}
		dst = pad(dst, c.pad)
		if !c.fresh {
			dst = pad(dst, c.wide+1)
			continue
		}
		c.fresh = false
		st := baseBullet
		if c.done {
			st = baseDone
		}
		dst = append(m.appendStyled(dst, string(c.bullet[:c.size]), st), ' ')
	}
	return dst
}

// bars appends the prefix of an empty row.
func (m *machine) bars(dst []byte) []byte {
	gap := 0
	for i := range m.stack {
		c := &m.stack[i]
		if c.item {
			gap += c.columns()
			continue
		}
		dst = m.appendStyled(pad(dst, gap), "│", baseBar)
		gap = 1
	}
	return dst
}

// prefixColumns returns the width of the prefix.
func (m *machine) prefixColumns() int {
	n := 0
	for _, c := range m.stack {
		n += c.columns()
	}
	return n
}

// room returns how many columns of limit the prefix leaves, a few at least.
func (m *machine) room(limit int) int {
	return max(limit-m.prefixColumns(), min(limit, 10))
}

func pad(dst []byte, n int) []byte {
	return append(dst, strings.Repeat(" ", max(n, 0))...)
}

// appendStyled appends text in a style.
func (m *machine) appendStyled(dst []byte, text string, st style) []byte {
	on := m.paint.sequence(st)
	if on == "" || text == "" {
		return append(dst, text...)
	}
	return append(append(append(dst, on...), text...), "\x1b[0m"...)
}

// flow appends the rows of m.in, wrapped as text is.
func (m *machine) flow(dst []byte, base style) []byte { return m.appendWrapped(dst, base, m.limit) }

// appendWrapped appends the rows of m.in, wrapped at limit columns unless that is 0.
func (m *machine) appendWrapped(dst []byte, base style, limit int) []byte {
	text := m.in.vis
	if limit > 0 {
		limit = m.room(limit)
	}
	w := painter{m: m, in: &m.in, base: base}
	for from := 0; ; {
		end := len(text)
		if i := bytes.IndexByte(text[from:], '\n'); i >= 0 {
			end = from + i
		}
		for {
			stop, next := end, end
			if limit > 0 {
				stop, next = nextRow(text[from:end], limit)
				stop, next = from+stop, from+next
			}
			if len(m.stack) > 0 {
				dst = m.prefix(dst)
			}
			dst = append(w.paint(dst, from, stop), '\n')
			if from = next; from >= end {
				break
			}
		}
		if from++; from > len(text) {
			return dst
		}
	}
}

// plainRow appends a line that is not wrapped, in a single style.
func (m *machine) plainRow(dst, line []byte, base style) []byte {
	return append(m.appendStyled(m.prefix(dst), string(line), base), '\n')
}

// ruleRow appends a rule across the window.
func (m *machine) ruleRow(dst []byte) []byte {
	n := m.columns
	if m.limit > 0 {
		n = m.limit
	}
	return m.plainRow(dst, bytes.Repeat([]byte("─"), m.room(n)), baseRule)
}

// painter writes parts of an inline, in order.
type painter struct {
	m    *machine
	in   *inline
	base style
	run  int // the first run that is not passed
}

// paint appends the text from one offset to another with its styles and links.
func (w *painter) paint(dst []byte, from, to int) []byte {
	in := w.in
	on, open := "", int32(0)
	for at := from; at < to; {
		for in.runs[w.run].end <= at {
			w.run++
		}
		r := &in.runs[w.run]
		end := min(to, r.end)
		st := w.base | r.style
		if r.style >= baseToken {
			st = r.style
		}
		if seq := w.m.paint.sequence(st); seq != on {
			if on != "" {
				dst = append(dst, "\x1b[0m"...)
			}
			dst = append(dst, seq...)
			on = seq
		}
		if r.link != open {
			dst = w.hyperlink(dst, r.link, open)
			open = r.link
		}
		dst = append(dst, in.vis[at:end]...)
		at = end
	}
	if open != 0 {
		dst = w.hyperlink(dst, 0, open)
	}
	if on != "" {
		dst = append(dst, "\x1b[0m"...)
	}
	return dst
}

// hyperlink ends the link that is open, if it is not 0, and opens another.
func (w *painter) hyperlink(dst []byte, id, open int32) []byte {
	if !w.m.o.Hyperlinks {
		return dst
	}
	if open != 0 && Linkable(w.in.links[open-1]) {
		dst = append(dst, LinkEnd...)
	}
	if id != 0 && Linkable(w.in.links[id-1]) {
		dst = AppendLink(dst, w.in.links[id-1])
	}
	return dst
}
