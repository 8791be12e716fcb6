package markdown

// source takes a line that is shown as it is: wrapped, if anything is, but for code.
func (m *machine) source(dst, line []byte) []byte {
	if m.limit == 0 {
		return append(append(dst, line...), '\n')
	}
	line = m.expand(line)
	isCode := m.leaf == fenced
	indent := spaces(line)
	switch {
	case m.severed:
	case isCode && m.fence.closedBy(line):
		m.leaf, isCode = noLeaf, false
	case !isCode && indent < len(line) && indent < 4 && (line[indent] == '`' || line[indent] == '~'):
		if f, ok := opensFence(line, indent); ok {
			m.leaf, m.fence = fenced, f
		}
	}
	if isCode && !m.o.WrapCode {
		return append(append(dst, line...), '\n')
	}
	for {
		end, next := nextRow(line, m.limit)
		dst = append(append(dst, line[:end]...), '\n')
		if line = line[next:]; len(line) == 0 {
			return dst
		}
	}
}
