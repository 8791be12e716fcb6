package markdown

import (
	"bytes"
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
	for i := range m.stack {
		n += m.stack[i].columns()
	}
	return n
}

// room returns how many columns of limit the prefix leaves, a few at least.
func (m *machine) room(limit int) int {
	return max(limit-m.prefixColumns(), min(limit, 10))
}

func pad(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, ' ')
	}
	return dst
}

// appendStyled appends text in a style.
func (m *machine) appendStyled(dst []byte, text string, st style) []byte {
	on := m.paint.sequence(st)
	if on == "" {
		return append(dst, text...)
	}
	return append(append(append(dst, on...), text...), "\x1b[0m"...)
}

// flow appends the rows of in, wrapped as text is.
func (m *machine) flow(dst []byte, in *inline, base style) []byte {
	return m.appendWrapped(dst, in, base, m.limit)
}

// appendWrapped appends the rows of in, wrapped at limit columns unless that is 0.
func (m *machine) appendWrapped(dst []byte, in *inline, base style, limit int) []byte {
	text := in.visible()
	if limit > 0 {
		limit = m.room(limit)
	}
	w := painter{m: m, in: in, base: base}
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
	dst = m.prefix(dst)
	on := m.paint.sequence(base)
	if on == "" || len(line) == 0 {
		return append(append(dst, line...), '\n')
	}
	return append(append(append(dst, on...), line...), "\x1b[0m\n"...)
}

// ruleRow appends a rule across the window.
func (m *machine) ruleRow(dst []byte) []byte {
	n := m.columns
	if m.limit > 0 {
		n = m.limit
	}
	m.rule = m.rule[:0]
	for range m.room(n) {
		m.rule = append(m.rule, "─"...)
	}
	return m.plainRow(dst, m.rule, baseRule)
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
	if len(in.runs) == 0 {
		return w.piece(dst, in.visible()[from:to])
	}
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

// piece appends text in the base style.
func (w *painter) piece(dst, text []byte) []byte {
	on := w.m.paint.sequence(w.base)
	if on == "" || len(text) == 0 {
		return append(dst, text...)
	}
	return append(append(append(dst, on...), text...), "\x1b[0m"...)
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
