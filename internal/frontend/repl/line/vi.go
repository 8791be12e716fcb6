package line

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// vi is the state of vi bindings. The zero value inserts, as a new text does.
type vi struct {
	normal bool

	count   int    // typed before a command; 0 means none
	over    int    // the count before the operator
	op      string // operator that waits for a motion: d, c or y
	pending string // command that waits for a character: f F t T r g i a

	find, findWhat string // the latest f, F, t or T and its character

	// What "." repeats: the keys since a change began.
	recording []key
	last      []key
	replaying bool
	changed   bool // the command that is under way changes the text
}

func (v *vi) inserts() bool { return !v.normal }

// viCommands are the keys that vi has in both modes, beside the common ones.
var viCommands = map[string]func(*model) outcome{
	"ctrl+z": func(*model) outcome { return suspend },
	"ctrl+u": kills((*buffer).toLineStart),
}

// maxCount is the largest count of a command.
const maxCount = 9999

// note keeps keys for ".".
func (v *vi) note(k key) {
	if !v.replaying {
		v.recording = append(v.recording, k)
	}
}

// settle ends a command: its count and operator are gone, and "." repeats it if it changed the text.
func (m *model) settle() {
	v := m.vi
	v.count, v.over, v.op, v.pending = 0, 0, "", ""
	if v.replaying || v.inserts() { // the command lasts until Esc
		return
	}
	if v.changed {
		v.last = v.recording
	}
	v.recording, v.changed = nil, false
	m.rest()
}

// rest keeps the cursor on a character, as it is in normal mode.
func (m *model) rest() {
	b := &m.buf
	goal := b.goal
	if start := b.lineStart(b.cursor); b.cursor == b.lineEnd(b.cursor) && b.cursor > start {
		b.move(b.before(b.cursor))
	}
	b.goal = goal
}

func (m *model) leaveInsert() {
	b := &m.buf
	if m.vi.normal {
		return
	}
	if b.cursor > b.lineStart(b.cursor) {
		b.move(b.before(b.cursor))
	}
	m.vi.normal = true
	b.begin()
	m.settle()
}

// insertMode begins an insertion, which is one change with what the command did before.
func (m *model) insertMode() {
	m.vi.normal, m.vi.changed = false, true
	m.vi.count, m.vi.over, m.vi.op, m.vi.pending = 0, 0, "", ""
}

// viKey does what a key is for in normal mode: a character, or the name of another key.
func (m *model) viKey(k string) outcome {
	v := m.vi
	switch k {
	case "esc", "ctrl+g":
		m.settle()
		return goOn
	case "ctrl+c":
		return interrupt
	case "enter":
		return m.enter()
	}
	if v.pending != "" {
		m.viPending(k)
		return goOn
	}
	if len(k) == 1 && (k[0] >= '1' && k[0] <= '9' || k == "0" && v.count > 0) {
		v.count = min(v.count*10+int(k[0]-'0'), maxCount)
		return goOn
	}
	if strings.Contains("fFtTrg", k) || strings.Contains("ia", k) && v.op != "" {
		v.pending = k
		return goOn
	}
	if to, kind := m.motion(k); kind != noMotion {
		m.along(to, kind)
		return goOn
	}
	if strings.Contains("dcy", k) {
		m.viOperator(k)
		return goOn
	}
	if v.op != "" { // an operator without a motion
		m.settle()
		return goOn
	}
	return m.viCommand(k)
}

// viOperator begins d, c or y, or does it to whole lines if it is typed twice.
func (m *model) viOperator(k string) {
	v := m.vi
	switch v.op {
	case "":
		v.op, v.over, v.count = k, v.count, 0
	case k:
		b := &m.buf
		m.operate(b.lineStart(b.cursor), m.endOfLines(), wholeLines)
	default:
		m.settle()
	}
}

// endOfLines returns the end of as many lines as the command is for, from that of the cursor on.
func (m *model) endOfLines() int {
	b := &m.buf
	to := b.lineEnd(b.cursor)
	for range m.times() - 1 {
		if to < len(b.text) {
			to = b.lineEnd(to + 1)
		}
	}
	return to
}

// times is how often to repeat a command.
func (m *model) times() int { return min(max(m.vi.count, 1)*max(m.vi.over, 1), maxCount) }

// motionKind says what of the text between the ends of a motion an operator takes.
type motionKind int

const (
	noMotion motionKind = iota
	exclusive
	inclusive // with the character at the end
	wholeLines
	noPlace // there is no such place
)

// motion returns where k moves the cursor to.
func (m *model) motion(k string) (to int, kind motionKind) {
	b, v := &m.buf, m.vi
	from, n := b.cursor, m.times()
	repeat := func(f func(int) int) int {
		to := from
		for range n {
			next := f(to)
			if next == to {
				break
			}
			to = next
		}
		return to
	}
	switch k {
	case "h", "left", "backspace", "ctrl+h":
		start := b.lineStart(from)
		return repeat(func(i int) int { return max(b.before(i), start) }), exclusive
	case "l", "right", " ":
		end := b.lineEnd(from)
		return repeat(func(i int) int { return min(b.right(i), end) }), exclusive
	case "0", "home", "ctrl+a":
		return b.lineStart(from), exclusive
	case "^":
		return b.firstWord(from), exclusive
	case "$", "end", "ctrl+e":
		return m.endOfLines(), exclusive
	case "w", "W":
		if v.op == "c" && b.class(from) != 0 { // changes to the end of the word
			return repeat(func(i int) int { return b.viEnd(i, k == "W", i == from) }), inclusive
		}
		to = repeat(func(i int) int { return b.viNext(i, k == "W") })
		if end := b.lineEnd(from); v.op != "" && to > end && strings.TrimSpace(b.text[end:to]) == "" {
			to = max(end, from) // not the line feed
		}
		return to, exclusive
	case "ctrl+right":
		return repeat(func(i int) int { return b.viNext(i, false) }), exclusive
	case "b", "B", "ctrl+left":
		return repeat(func(i int) int { return b.viBack(i, k == "B") }), exclusive
	case "e", "E":
		return repeat(func(i int) int { return b.viEnd(i, k == "E", false) }), inclusive
	case "G":
		return len(b.text), wholeLines
	case "ctrl+home":
		return 0, exclusive
	case "ctrl+end":
		return len(b.text), exclusive
	case ";", ",":
		if v.find == "" {
			return from, noPlace
		}
		find := v.find
		if k == "," {
			find = map[string]string{"f": "F", "F": "f", "t": "T", "T": "t"}[find]
		}
		return m.findMotion(find, v.findWhat, true)
	case "j", "down", "ctrl+n", "k", "up", "ctrl+p":
		if v.op == "" {
			return from, noMotion
		}
		by := 1
		if strings.Contains("k up ctrl+p", k) {
			by = -1
		}
		ahead := *b
		for range n {
			if !ahead.vertical(by) {
				return from, noPlace
			}
		}
		return ahead.cursor, wholeLines
	}
	return from, noMotion
}

// findMotion is the motion of f, F, t or T to the character what on the same line.
func (m *model) findMotion(find, what string, again bool) (to int, kind motionKind) {
	b := &m.buf
	from := b.cursor
	to = from
	start, stop := b.lineStart(from), b.lineEnd(from)
	for n := range m.times() {
		if find == "f" || find == "t" {
			at := b.right(to)
			if find == "t" && again && n == 0 && at < stop && strings.HasPrefix(b.text[at:], what) {
				at = b.right(at)
			}
			if at > stop {
				return from, noPlace
			}
			i := strings.Index(b.text[at:stop], what)
			if i < 0 {
				return from, noPlace
			}
			to = at + i
			continue
		}
		end := to
		if find == "T" && again && n == 0 && end > start && strings.HasSuffix(b.text[start:end], what) {
			end = b.before(end)
		}
		i := strings.LastIndex(b.text[start:end], what)
		if i < 0 {
			return from, noPlace
		}
		to = start + i
	}
	switch find {
	case "t":
		to = b.before(to)
	case "T":
		to = b.right(to)
	}
	if find == "F" || find == "T" {
		return to, exclusive
	}
	return to, inclusive
}

// along moves the cursor, or has the operator that waits take what the motion passes.
func (m *model) along(to int, kind motionKind) {
	b, v := &m.buf, m.vi
	from := b.cursor
	switch {
	case kind == noPlace:
		m.settle()
	case v.op == "":
		b.move(to)
		m.settle()
	default:
		if kind == inclusive && to >= from {
			to = b.right(to)
		}
		from, to = min(from, to), max(from, to)
		if kind == wholeLines {
			from, to = b.lineStart(from), b.lineEnd(to)
		}
		m.operate(from, to, kind)
	}
}

// operate does d, c or y. For whole lines, from and to are the beginning of the first and the end of the
// last one.
func (m *model) operate(from, to int, kind motionKind) {
	b, v := &m.buf, m.vi
	lines := kind == wholeLines
	if from == to && !lines {
		if v.op == "c" {
			b.begin()
			b.move(from)
			m.insertMode()
			return
		}
		m.settle()
		return
	}
	b.cut, b.cutLines = b.text[from:to], lines
	switch v.op {
	case "y":
		if !lines || from < b.lineStart(b.cursor) {
			b.move(from)
		}
	case "c":
		b.begin()
		b.replace(from, to, "")
		m.insertMode()
		return
	case "d":
		b.begin()
		v.changed = true
		if !lines {
			b.replace(from, to, "")
			break
		}
		if to < len(b.text) {
			to++
		} else if from > 0 {
			from--
		}
		b.replace(from, to, "")
		b.move(b.firstWord(min(b.cursor, len(b.text))))
	}
	m.settle()
}

// viPending does a command that waited for the character k.
func (m *model) viPending(k string) {
	b, v := &m.buf, m.vi
	command := v.pending
	v.pending = ""
	if utf8.RuneCountInString(k) != 1 {
		m.settle()
		return
	}
	switch command {
	case "f", "F", "t", "T":
		v.find, v.findWhat = command, k
		m.along(m.findMotion(command, k, false))
	case "r":
		to := b.cursor
		for range m.times() {
			if to >= b.lineEnd(b.cursor) {
				m.settle()
				return
			}
			to = b.right(to)
		}
		b.begin()
		b.replace(b.cursor, to, strings.Repeat(k, m.times()))
		b.move(b.before(b.cursor))
		v.changed = true
		m.settle()
	case "g":
		if k == "g" {
			m.along(0, wholeLines)
		} else {
			m.settle()
		}
	case "i", "a":
		if from, to := b.object(k, command == "a"); from == none {
			m.settle()
		} else {
			m.operate(from, to, exclusive)
		}
	}
}

// insertions are the commands that insert: each moves the cursor to the place.
var insertions = map[string]func(*buffer){
	"i":      func(*buffer) {},
	"insert": func(*buffer) {},
	"a":      func(b *buffer) { b.move(min(b.right(b.cursor), b.lineEnd(b.cursor))) },
	"I":      func(b *buffer) { b.move(b.firstWord(b.cursor)) },
	"A":      func(b *buffer) { b.move(b.lineEnd(b.cursor)) },
	"o": func(b *buffer) {
		end := b.lineEnd(b.cursor)
		b.replace(end, end, "\n")
	},
	"O": func(b *buffer) {
		start := b.lineStart(b.cursor)
		b.replace(start, start, "\n")
		b.move(start)
	},
}

// shorthands are the commands that are short for an operator and a motion.
var shorthands = map[string][2]string{
	"x": {"d", "l"}, "delete": {"d", "l"}, "X": {"d", "h"}, "D": {"d", "$"}, "C": {"c", "$"}, "s": {"c", "l"}, "S": {"c", "c"}, "Y": {"y", "y"},
}

// viCommand does what k is for in normal mode.
func (m *model) viCommand(k string) outcome {
	b, v := &m.buf, m.vi
	b.begin()
	b.anchor = none
	if place := insertions[k]; place != nil {
		place(b)
		m.insertMode()
		return goOn
	}
	if short, ok := shorthands[k]; ok {
		return m.viAs(short[0], short[1])
	}
	switch k {
	case "j", "down", "ctrl+n", "k", "up", "ctrl+p":
		for range m.times() {
			if strings.Contains("k up ctrl+p", k) {
				m.up()
			} else {
				m.down()
			}
		}
	case "p", "P":
		m.put(k == "P")
	case "u":
		for range m.times() {
			b.undo()
		}
	case "U":
		for range m.times() {
			b.redo()
		}
	case "~":
		to := b.cursor
		for range m.times() {
			to = min(b.right(to), b.lineEnd(b.cursor))
		}
		b.replace(b.cursor, to, swapCase(b.text[b.cursor:to]))
		v.changed = true
	case ".":
		m.repeat()
	case "/":
		m.startSearch()
	case "shift+tab":
		return cycle
	case "tab", "ctrl+j", "ctrl+w", "ctrl+backspace", "ctrl+delete": // for inserting only
	default:
		if f := viCommands[k]; f != nil && k != "ctrl+u" {
			m.settle()
			return f(m)
		}
		for _, name := range []string{"ctrl+d", "ctrl+l", "ctrl+o", "ctrl+r"} {
			if k == name {
				m.settle()
				return m.bind(k)
			}
		}
	}
	m.settle()
	return goOn
}

// viAs does a command that is short for an operator and a motion.
func (m *model) viAs(op, motion string) outcome {
	v := m.vi
	v.op, v.over, v.count = op, v.count, 0
	if motion == op {
		m.viOperator(op)
		return goOn
	}
	m.along(m.motion(motion))
	return goOn
}

// maxPut is how many bytes a count can make of what was cut last.
const maxPut = 1 << 16

// put inserts what was cut last, after the cursor or before it.
func (m *model) put(before bool) {
	b := &m.buf
	if b.cut == "" {
		return
	}
	m.vi.changed = true
	n := min(m.times(), 1+maxPut/len(b.cut))
	switch {
	case b.cutLines && before:
		at := b.lineStart(b.cursor)
		b.replace(at, at, strings.Repeat(b.cut+"\n", n))
		b.move(b.firstWord(at))
	case b.cutLines:
		at := b.lineEnd(b.cursor)
		b.replace(at, at, strings.Repeat("\n"+b.cut, n))
		b.move(b.firstWord(at + 1))
	default:
		at := b.cursor
		if !before {
			at = min(b.right(at), b.lineEnd(at))
		}
		b.replace(at, at, strings.Repeat(b.cut, n))
		b.move(b.before(b.cursor))
	}
}

// repeat does the latest change again.
func (m *model) repeat() {
	v := m.vi
	keys, times := v.last, m.times()
	v.count = 0
	if len(keys) == 0 || v.replaying {
		return
	}
	v.replaying = true
	for range min(times, 100) {
		for _, k := range keys {
			if k.name == "enter" || k.name == "tab" { // would submit, or open a menu
				continue
			}
			m.key(k)
		}
	}
	v.replaying, v.changed = false, false
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// kind is [buffer.class], where big words have punctuation in them.
func (b *buffer) kind(i int, big bool) int {
	if c := b.class(i); c == 0 || !big {
		return c
	}
	return 1
}

// firstWord returns where the line of i has its first character that is not blank.
func (b *buffer) firstWord(i int) int {
	end := b.lineEnd(i)
	return b.rightWhile(b.lineStart(i), func(at int) bool { return at < end && b.class(at) == 0 })
}

// isKind returns whether the character at a position is of a kind.
func (b *buffer) isKind(k int, big bool) func(at int) bool {
	return func(at int) bool { return b.kind(at, big) == k }
}

// viNext returns where the next word begins.
func (b *buffer) viNext(i int, big bool) int {
	if k := b.kind(i, big); k != 0 {
		i = b.rightWhile(i, b.isKind(k, big))
	}
	return b.rightWhile(i, b.isKind(0, big))
}

// viBack returns where the word before i begins.
func (b *buffer) viBack(i int, big bool) int {
	if i = b.leftWhile(i, b.isKind(0, big)); i == 0 {
		return 0
	}
	return b.leftWhile(i, b.isKind(b.kind(b.before(i), big), big))
}

// viEnd returns the last character of the next word, or, with stay, of the word at i.
func (b *buffer) viEnd(i int, big, stay bool) int {
	if !stay {
		i = b.right(i)
	}
	i = b.rightWhile(i, b.isKind(0, big))
	for k := b.kind(i, big); i < len(b.text); {
		next := b.right(i)
		if next >= len(b.text) || b.kind(next, big) != k {
			break
		}
		i = next
	}
	if i >= len(b.text) && b.text != "" {
		return b.before(len(b.text))
	}
	return i
}

// object returns the ends of the word or quoted text around the cursor; from is none if there is no such
// thing. With around, blanks or the quotes belong to it.
func (b *buffer) object(k string, around bool) (from, to int) {
	switch k {
	case "w", "W":
		return b.word(b.cursor, k == "W", around)
	case "\"", "'", "`":
		return b.quotedRange(b.cursor, k, around)
	}
	return none, none
}

func (b *buffer) word(i int, big, around bool) (from, to int) {
	if b.lineStart(i) == b.lineEnd(i) {
		return none, none
	}
	start, end := b.lineStart(i), b.lineEnd(i)
	run := func(i int) int {
		same := b.isKind(b.kind(i, big), big)
		return b.rightWhile(i, func(at int) bool { return at < end && same(at) })
	}
	same := b.isKind(b.kind(i, big), big)
	from = b.leftWhile(i, func(at int) bool { return at >= start && same(at) })
	to = run(i)
	if !around {
		return from, to
	}
	if to < end && (b.class(to) == 0 || b.class(i) == 0) {
		return from, run(to)
	}
	return b.leftWhile(from, func(at int) bool { return at >= start && b.class(at) == 0 }), to
}

func (b *buffer) quotedRange(i int, quote string, around bool) (from, to int) {
	end := b.lineEnd(i)
	for at := b.lineStart(i); at < end; {
		open := strings.Index(b.text[at:end], quote)
		if open < 0 {
			break
		}
		open += at
		shut := strings.Index(b.text[open+1:end], quote)
		if shut < 0 {
			break
		}
		shut += open + 1
		if i <= shut {
			if around {
				return open, shut + 1
			}
			return open + 1, shut
		}
		at = shut + 1
	}
	return none, none
}
