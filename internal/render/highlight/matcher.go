package highlight

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2/syntax"
)

// matcher runs programs. It is used by one goroutine at a time.
type matcher struct {
	text   []byte
	lo, hi int // the part of text that there is for a program
	regs   []int
	stack  []frame
	budget int // instructions that it may still run; taking characters costs, too
}

// frame is a way that was left open, or the value that a register had.
type frame struct {
	pc  int32 // of the instruction; below 0, ^pc is a register
	pos int32 // the place in the text, or the value
	low int32 // the end of the loop at pc: its limit, or -1 if the frame is another one
}

// match returns where a match of p ends that begins at start, -1 if there is none or the budget is
// spent.
func (m *matcher) match(p *program, start int) int {
	if cap(m.regs) < p.registers {
		m.regs = make([]int, p.registers)
	}
	m.regs = m.regs[:p.registers]
	for i := range 2 * p.groups {
		m.regs[i] = -1
	}
	m.stack = m.stack[:0]
	text, hi := m.text, m.hi
	budget := m.budget
	pc, pos := int32(1), start
	for {
		in := &p.code[pc]
		budget--
		to := -1 // the place behind what in takes
		switch in.op {
		case opMatch:
			m.budget = budget
			return pos
		case opByte:
			if pos < hi && text[pos] == in.char {
				to = pos + 1
			}
		case opText:
			if want := p.texts[in.x]; hi-pos >= len(want) && string(text[pos:pos+len(want)]) == want {
				to = pos + len(want)
			}
		case opClass:
			if pos < hi && text[pos] < utf8.RuneSelf {
				if in.class.hasByte(text[pos]) {
					to = pos + 1
				}
			} else if n := m.take(in, pos); n != pos {
				to = n
			}
		case opSeries:
			to = m.takeEach(p.series[in.x], pos)
		case opKeep:
			to = m.takeAll(in, pos, in.x, in.y)
			budget -= max(0, to-pos, pos-to) >> 3
		case opLoop, opLazy:
			to = m.loop(in, pc, pos)
			budget -= max(0, to-pos, pos-to) >> 3
		case opJump:
			pc = in.x
			continue
		case opSkip:
			pos++
			pc = in.x
			continue
		case opSplit:
			if in.class != nil && (pos == hi || !in.class.has(rune(text[pos]))) {
				pc = in.y
				continue
			}
			m.leave(in.y, pos)
			pc = in.x
			continue
		case opLazySplit:
			if in.class == nil || pos < hi && in.class.has(rune(text[pos])) {
				m.leave(in.x, pos)
			}
			pc = in.y
			continue
		case opSwitch:
			c := jumpEnd
			if pos < hi {
				c = min(int(text[pos]), jumpWide)
			}
			pc = int32(p.jumps[in.x][c])
			continue
		default:
			if next, place := m.control(p, pc, pos); next >= 0 {
				pc, pos = next, place
				continue
			}
		}
		if to >= 0 {
			pos = to
			pc++
			continue
		}
		if pc, pos = m.retreat(p); pc < 0 || budget < 0 {
			m.budget = budget
			return -1
		}
	}
}

// leave leaves a way open: to go on at pc from pos.
func (m *matcher) leave(pc int32, pos int) {
	m.stack = append(m.stack, frame{pc: pc, pos: int32(pos), low: -1})
}

// save notes what a register was, so that it is that again if the matcher goes back.
func (m *matcher) save(register int32) {
	m.stack = append(m.stack, frame{pc: ^register, pos: int32(m.regs[register])})
}

// retreat goes back to the way that was left open last. pc is -1 if there is none.
func (m *matcher) retreat(p *program) (pc int32, pos int) {
	for k := len(m.stack) - 1; k >= 0; k-- {
		f := &m.stack[k]
		m.stack = m.stack[:k]
		switch {
		case f.pc < 0:
			m.regs[^f.pc] = int(f.pos)
			continue
		case f.low < 0:
			return f.pc, int(f.pos)
		}
		in := &p.code[f.pc]
		if in.op == opLazy {
			if pos = m.take(in, int(f.pos)); pos == int(f.pos) {
				continue
			}
			f.low--
		} else if pos = m.giveBack(in, int(f.pos), int(f.low)); pos < 0 {
			continue
		}
		f.pos = int32(pos)
		if in.op == opLazy && f.low > 0 || in.op == opLoop && f.pos != f.low {
			m.stack = m.stack[:k+1] // there is more
		}
		return f.pc + 1, pos
	}
	return -1, 0
}

// loop begins a loop over characters and returns the place behind what it takes at first, -1 if
// that is not enough.
func (m *matcher) loop(in *inst, pc int32, pos int) int {
	low := pos
	if in.x > 0 {
		low = m.takeAll(in, pos, in.x, in.x)
	}
	if low < 0 || in.x == in.y {
		return low
	}
	if in.op == opLazy {
		m.stack = append(m.stack, frame{pc: pc, pos: int32(low), low: in.y - in.x})
		return low
	}
	end := m.takeAll(in, low, 0, in.y-in.x)
	if end != low {
		m.stack = append(m.stack, frame{pc: pc, pos: int32(end), low: int32(low)})
	}
	return end
}

// control runs an instruction that takes no text. It returns where to go on; next is -1 if it failed.
func (m *matcher) control(p *program, pc int32, pos int) (next int32, place int) {
	in := &p.code[pc]
	next, place = pc+1, pos
	switch in.op {
	case opBack:
		if place = m.takeBack(p, in, pos); place < 0 {
			next = -1
		}
	case opRef:
		if place = m.again(in, pos); place < 0 {
			next = -1
		}
	case opMark, opUnmark, opOpen:
		if in.undo {
			m.save(in.x)
		}
		m.regs[in.x] = pos
		if in.op == opUnmark {
			m.regs[in.x] = -1
		}
	case opAgain:
		if m.regs[in.x] != pos {
			m.leave(next, pos)
			m.save(in.x)
			m.regs[in.x] = pos
			next = in.y
		}
	case opLazyAgain:
		if m.regs[in.x] != pos {
			m.leave(in.y, pos)
		}
	case opMoved:
		if m.regs[in.x] == pos {
			next = in.y
		}
	case opClose:
		from, to := m.regs[in.y], pos
		if in.undo {
			m.save(2 * in.x)
			m.save(2*in.x + 1)
		}
		m.regs[2*in.x], m.regs[2*in.x+1] = min(from, to), max(from, to)
	case opBegin:
		m.regs[in.x] = len(m.stack)
	case opLook:
		m.regs[in.x], m.regs[in.x+1] = len(m.stack), pos
	case opCut, opLooked:
		m.cut(m.regs[in.x])
		if in.op == opLooked {
			place = m.regs[in.x+1]
		}
	case opNot:
		m.regs[in.x] = len(m.stack)
		m.leave(in.y, pos)
	case opNotted:
		height := m.regs[in.x]
		for i := len(m.stack) - 1; i >= height; i-- {
			if f := &m.stack[i]; f.pc < 0 {
				m.regs[^f.pc] = int(f.pos)
			}
		}
		m.stack = m.stack[:height]
		next = -1
	default:
		if !m.holds(in.op, pos) {
			next = -1
		}
	}
	return next, place
}

// holds reports whether a condition is met.
func (m *matcher) holds(o op, pos int) bool {
	switch o {
	case opLineStart:
		return pos == m.lo || m.text[pos-1] == '\n'
	case opLineEnd:
		return pos == m.hi || m.text[pos] == '\n'
	case opTextStart:
		return pos == m.lo
	case opTextEnd:
		return pos == m.hi
	case opLastLine:
		return pos == m.hi || pos == m.hi-1 && m.text[pos] == '\n'
	case opWord:
		return m.boundary(pos)
	case opNoWord:
		return !m.boundary(pos)
	}
	return false // opFail
}

// cut takes the ways away that are above a height. What registers were stays.
func (m *matcher) cut(height int) {
	n := height
	for i := height; i < len(m.stack); i++ {
		if m.stack[i].pc < 0 {
			m.stack[n] = m.stack[i]
			n++
		}
	}
	m.stack = m.stack[:n]
}

// take returns the place behind a character of in.class at pos, pos if there is none.
func (m *matcher) take(in *inst, pos int) int {
	if in.back {
		if pos == m.lo {
			return pos
		}
		r, n := utf8.DecodeLastRune(m.text[m.lo:pos])
		if in.class.has(r) {
			return pos - n
		}
		return pos
	}
	if pos == m.hi {
		return pos
	}
	if c := m.text[pos]; c < utf8.RuneSelf {
		if in.class.hasByte(c) {
			return pos + 1
		}
		return pos
	}
	r, n := utf8.DecodeRune(m.text[pos:m.hi])
	if in.class.has(r) {
		return pos + n
	}
	return pos
}

// takeBack takes a character or text before pos, -1 if it is not there.
func (m *matcher) takeBack(p *program, in *inst, pos int) int {
	if in.class != nil {
		if to := m.take(in, pos); to != pos {
			return to
		}
		return -1
	}
	want := p.texts[in.x]
	if to := pos - len(want); to >= m.lo && string(m.text[to:pos]) == want {
		return to
	}
	return -1
}

// takeEach returns the place behind a character of each class of list, -1 if they are not there.
func (m *matcher) takeEach(list []*class, pos int) int {
	for _, c := range list {
		if pos == m.hi {
			return -1
		}
		r, n := rune(m.text[pos]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(m.text[pos:m.hi])
		}
		if !c.has(r) {
			return -1
		}
		pos += n
	}
	return pos
}

// takeAll returns the place behind as many characters of in.class as there are, least to most, -1
// if there are fewer.
func (m *matcher) takeAll(in *inst, pos int, least, most int32) int {
	c := in.class
	if !in.back && most > 1<<30 && c.wide == nil && c.not && c.only < utf8.RuneSelf { // to the end of a line, most often
		n := bytes.IndexByte(m.text[pos:m.hi], byte(c.only))
		if n < 0 {
			n = m.hi - pos
		}
		if least > 1 && utf8.RuneCount(m.text[pos:pos+n]) < int(least) || n == 0 && least > 0 {
			return -1
		}
		return pos + n
	}
	n := int32(0)
	if !in.back {
		for _, b := range m.text[pos:m.hi] {
			if n == most || b >= utf8.RuneSelf || !c.hasByte(b) {
				break
			}
			pos++
			n++
		}
	}
	for n < most {
		next := m.take(in, pos)
		if next == pos {
			break
		}
		pos = next
		n++
	}
	if n < least {
		return -1
	}
	return pos
}

// giveBack returns the place before the last character that a loop took, which is at pos now, or
// before one further back if only there can be what has to follow. It is -1 if there is none.
func (m *matcher) giveBack(in *inst, pos, low int) int {
	if in.back {
		_, n := utf8.DecodeRune(m.text[pos:low])
		return pos + n
	}
	if in.next != 0 {
		i := bytes.LastIndexByte(m.text[low:pos], in.next)
		if i < 0 {
			return -1
		}
		return low + i
	}
	_, n := utf8.DecodeLastRune(m.text[low:pos])
	return pos - n
}

// again returns the place behind what a group matched, if it comes again at pos, otherwise -1.
func (m *matcher) again(in *inst, pos int) int {
	from, to := m.regs[2*in.x], m.regs[2*in.x+1]
	if to < 0 {
		return -1
	}
	group, at := m.text[from:to], pos
	if in.fold {
		return m.foldAgain(in, string(group), pos)
	}
	if in.back {
		at = pos - len(group)
		pos = at
	} else {
		pos += len(group)
	}
	if at < m.lo || at+len(group) > m.hi || !bytes.Equal(m.text[at:at+len(group)], group) {
		return -1
	}
	return pos
}

// foldAgain is again without regard to case.
func (m *matcher) foldAgain(in *inst, group string, pos int) int {
	count := utf8.RuneCountInString(group)
	from := pos
	for range count {
		if in.back {
			_, n := utf8.DecodeLastRune(m.text[m.lo:from])
			from -= n
		} else {
			_, n := utf8.DecodeRune(m.text[pos:m.hi])
			pos += n
		}
	}
	lower := func(s string) string { return strings.Map(unicode.ToLower, s) }
	text := string(m.text[from:pos])
	if utf8.RuneCountInString(text) != count || lower(text) != lower(group) {
		return -1
	}
	if in.back {
		return from
	}
	return pos
}

// boundary reports whether a word begins or ends at pos.
func (m *matcher) boundary(pos int) bool {
	before, after := false, false
	if pos > m.lo {
		if c := m.text[pos-1]; c < utf8.RuneSelf {
			before = isWord(c)
		} else {
			r, _ := utf8.DecodeLastRune(m.text[m.lo:pos])
			before = syntax.IsWordChar(r)
		}
	}
	if pos < m.hi {
		if c := m.text[pos]; c < utf8.RuneSelf {
			after = isWord(c)
		} else {
			r, _ := utf8.DecodeRune(m.text[pos:m.hi])
			after = syntax.IsWordChar(r)
		}
	}
	return before != after
}

func isWord(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_'
}
