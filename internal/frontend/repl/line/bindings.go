package line

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// movements are the keys that move the cursor; with Shift they select. Those of the second table are
// for emacs only.
var movements = map[string]func(*buffer) int{
	"left":       func(b *buffer) int { return b.before(b.cursor) },
	"right":      func(b *buffer) int { return b.right(b.cursor) },
	"ctrl+left":  func(b *buffer) int { return b.wordLeft(b.cursor) },
	"ctrl+right": func(b *buffer) int { return b.wordRight(b.cursor) },
	"home":       func(b *buffer) int { return b.lineStart(b.cursor) },
	"end":        func(b *buffer) int { return b.lineEnd(b.cursor) },
	"ctrl+a":     func(b *buffer) int { return b.lineStart(b.cursor) },
	"ctrl+e":     func(b *buffer) int { return b.lineEnd(b.cursor) },
	"ctrl+home":  func(*buffer) int { return 0 },
	"ctrl+end":   func(b *buffer) int { return len(b.text) },
}

var emacsMovements = map[string]func(*buffer) int{
	"ctrl+b":    movements["left"],
	"ctrl+f":    movements["right"],
	"alt+b":     movements["ctrl+left"],
	"alt+f":     movements["ctrl+right"],
	"alt+left":  movements["ctrl+left"],
	"alt+right": movements["ctrl+right"],
	"alt+<":     movements["ctrl+home"],
	"alt+>":     movements["ctrl+end"],
}

// commands are the keys of emacs and of vi's insert mode that do something else; the second table is
// for emacs only.
var commands = map[string]func(*model) outcome{
	"enter":           (*model).enter,
	"ctrl+j":          newline,
	"alt+enter":       newline,
	"shift+enter":     newline,
	"ctrl+enter":      newline,
	"ctrl+c":          func(*model) outcome { return interrupt },
	"ctrl+d":          (*model).deleteOrEnd,
	"ctrl+l":          func(*model) outcome { return clear },
	"ctrl+o":          func(*model) outcome { return edit },
	"ctrl+r":          does((*model).startSearch),
	"tab":             does((*model).openMenu),
	"shift+tab":       func(*model) outcome { return cycle },
	"esc":             does((*model).leave),
	"up":              does((*model).up),
	"down":            does((*model).down),
	"ctrl+p":          does((*model).up),
	"ctrl+n":          does((*model).down),
	"shift+up":        selects(func(b *buffer) { b.selectLine(-1) }),
	"shift+down":      selects(func(b *buffer) { b.selectLine(1) }),
	"ctrl+shift+a":    selects((*buffer).selectAll),
	"backspace":       changes((*buffer).deleteLeft),
	"ctrl+h":          changes((*buffer).deleteLeft),
	"shift+backspace": changes((*buffer).deleteLeft),
	"delete":          changes((*buffer).deleteRight),
	"ctrl+backspace":  kills((*buffer).toWordLeft),
	"ctrl+delete":     kills((*buffer).toWordRight),
	"ctrl+w":          kills((*buffer).toBlankLeft),
}

var emacsCommands = map[string]func(*model) outcome{
	"alt+backspace": kills((*buffer).toWordLeft),
	"alt+d":         kills((*buffer).toWordRight),
	"alt+delete":    kills((*buffer).toWordRight),
	"ctrl+k":        kills((*buffer).toLineEnd),
	"ctrl+u":        kills((*buffer).toLineStart),
	"ctrl+y":        changes(func(b *buffer) { b.insert(b.cut) }),
	"alt+w":         does(func(m *model) { m.buf.copySelection() }),
	"ctrl+z":        does(func(m *model) { m.buf.undo() }),
	"ctrl+_":        does(func(m *model) { m.buf.undo() }),
	"ctrl+g":        does((*model).leaveOrRedo),
	"ctrl+t":        changes((*buffer).transpose),
	"alt+u":         changes(func(b *buffer) { b.changeWord(strings.ToUpper) }),
	"alt+l":         changes(func(b *buffer) { b.changeWord(strings.ToLower) }),
	"alt+c":         changes(func(b *buffer) { b.changeWord(capitalize) }),
}

// bind does what the key called name is for in emacs, or in vi's insert mode.
func (m *model) bind(name string) outcome {
	b := &m.buf
	plainName := strings.Replace(name, "shift+", "", 1)
	for _, table := range m.movements() {
		if f := table[name]; f != nil {
			if from, to := b.selection(); from < to && (name == "left" || name == "right") { // to that end of it
				if name == "left" {
					to = from
				}
				b.move(to)
			} else {
				b.move(f(b))
			}
			return goOn
		}
		if f := table[plainName]; f != nil && commands[name] == nil {
			b.extend(func() { b.move(f(b)) })
			return goOn
		}
	}
	for _, table := range m.commands() {
		if f := table[name]; f != nil {
			return f(m)
		}
	}
	return goOn
}

func (m *model) movements() []map[string]func(*buffer) int {
	if m.vi != nil {
		return []map[string]func(*buffer) int{movements}
	}
	return []map[string]func(*buffer) int{movements, emacsMovements}
}

func (m *model) commands() []map[string]func(*model) outcome {
	if m.vi != nil {
		return []map[string]func(*model) outcome{commands, viCommands}
	}
	return []map[string]func(*model) outcome{commands, emacsCommands}
}

// bound reports whether the key called name does something.
func (m *model) bound(name string) bool {
	for _, table := range m.commands() {
		if table[name] != nil {
			return true
		}
	}
	return false
}

func does(f func(*model)) func(*model) outcome {
	return func(m *model) outcome { f(m); return goOn }
}

// changes is a change of the text that is undone by itself; in vi's insert mode, with all others.
func changes(f func(*buffer)) func(*model) outcome {
	return func(m *model) outcome {
		m.step()
		f(&m.buf)
		return goOn
	}
}

func selects(f func(*buffer)) func(*model) outcome {
	return func(m *model) outcome { f(&m.buf); return goOn }
}

// kills cuts the selection or what f returns. What several such keys cut in turn is pasted as one.
func kills(f func(*buffer) (from, to int)) func(*model) outcome {
	return func(m *model) outcome {
		m.step()
		b := &m.buf
		from, to := b.selection()
		if from == to {
			from, to = f(b)
		}
		cut, at := b.cut, b.cursor
		b.kill(from, to)
		if from < to && m.before == killing {
			if to <= at && from < at {
				b.cut += cut
			} else {
				b.cut = cut + b.cut
			}
		}
		m.action = killing
		return goOn
	}
}

// step begins a group of changes, except while vi inserts.
func (m *model) step() {
	if m.vi == nil {
		m.buf.begin()
	}
}

func newline(m *model) outcome {
	m.step()
	m.buf.insert("\n")
	return goOn
}

func (m *model) deleteOrEnd() outcome {
	if m.buf.text == "" {
		return end
	}
	m.step()
	m.buf.deleteRight()
	return goOn
}

// leave ends a selection, and in vi the insert mode.
func (m *model) leave() {
	m.buf.anchor = none
	if m.vi != nil {
		m.leaveInsert()
	}
}

func (m *model) leaveOrRedo() {
	if m.buf.anchor != none {
		m.buf.anchor = none
		return
	}
	m.buf.redo()
}

// extend selects what move passes.
func (b *buffer) extend(move func()) {
	anchor := b.anchor
	if anchor == none {
		anchor = b.cursor
	}
	move()
	b.anchor = anchor
}

// selectLine selects up to the line above (-1) or below (1), or to that end of the text.
func (b *buffer) selectLine(by int) {
	b.extend(func() {
		switch {
		case b.vertical(by):
		case by < 0:
			b.cursor = 0
		default:
			b.cursor = len(b.text)
		}
	})
}

func (b *buffer) selectAll() {
	b.move(len(b.text))
	b.anchor = 0
}

func (b *buffer) copySelection() {
	if from, to := b.selection(); from < to {
		b.cut, b.cutLines = b.text[from:to], false
		b.anchor = none
	}
}

func (b *buffer) deleteLeft() {
	from, to := b.selection()
	if from == to {
		from = b.before(to)
	}
	b.replace(from, to, "")
}

func (b *buffer) deleteRight() {
	from, to := b.selection()
	if from == to {
		to = b.right(from)
	}
	b.replace(from, to, "")
}

func (b *buffer) toWordLeft() (from, to int)  { return b.wordLeft(b.cursor), b.cursor }
func (b *buffer) toWordRight() (from, to int) { return b.cursor, b.wordRight(b.cursor) }
func (b *buffer) toBlankLeft() (from, to int) { return b.blankLeft(b.cursor), b.cursor }

// toLineEnd returns what is after the cursor on its line, or the line's end if nothing is.
func (b *buffer) toLineEnd() (from, to int) {
	if to = b.lineEnd(b.cursor); to == b.cursor {
		to = b.right(to)
	}
	return b.cursor, to
}

func (b *buffer) toLineStart() (from, to int) {
	if from = b.lineStart(b.cursor); from == b.cursor {
		from = b.before(from)
	}
	return from, b.cursor
}

// transpose exchanges the characters before and after the cursor; at the end of a line, the last two.
func (b *buffer) transpose() {
	middle := b.cursor
	start := b.lineStart(middle)
	if middle == b.lineEnd(middle) {
		middle = b.before(middle)
	}
	from, to := b.before(middle), b.right(middle)
	if middle <= start || from < start || middle == to {
		return
	}
	b.replace(from, to, b.text[middle:to]+b.text[from:middle])
}

// changeWord puts f of the rest of the word in its place, and the cursor behind it.
func (b *buffer) changeWord(f func(string) string) {
	to := b.wordRight(b.cursor)
	b.replace(b.cursor, to, f(b.text[b.cursor:to]))
}

// capitalize returns s in lower case, with a capital at the beginning of its word.
func capitalize(s string) string {
	s = strings.ToLower(s)
	at := strings.IndexFunc(s, unicode.IsLetter)
	if at < 0 {
		return s
	}
	first, size := utf8.DecodeRuneInString(s[at:])
	return s[:at] + string(unicode.ToTitle(first)) + s[at+size:]
}
