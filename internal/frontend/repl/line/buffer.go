package line

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// buffer is a text that is being changed. Positions are byte offsets at the borders of graphemes,
// which are what a user takes for a character.
type buffer struct {
	text   string
	cursor int
	anchor int // the other end of the selection, or none

	done, undone []change
	group        int // changes of one group are undone together

	cut      string // what was cut or copied last
	cutLines bool   // whole lines, in vi
	goal     int    // column that the cursor keeps when it moves between lines, or none
}

// none is the position of what is not there.
const none = -1

// change is the replacement of old by new.
type change struct {
	at       int
	old, new string
	group    int
	cursor   int // before the change
}

func newBuffer(text string) buffer {
	text = plain(text)
	return buffer{text: text, cursor: len(text), anchor: none, goal: none}
}

// maxText is how long a text can be made, in bytes.
const maxText = 4 << 20

// replace puts s in the place of what is between from and to, and the cursor behind it. It does nothing
// if the text would be too long.
func (b *buffer) replace(from, to int, s string) {
	if from == to && s == "" || len(b.text)+len(s) > maxText {
		return
	}
	b.undone = nil
	if n := len(b.done); n > 0 && from == to {
		if last := &b.done[n-1]; last.group == b.group && last.old == "" && last.at+len(last.new) == from {
			last.new += s
			b.apply(from, to, s)
			return
		}
	}
	b.done = append(b.done, change{at: from, old: b.text[from:to], new: s, group: b.group, cursor: b.cursor})
	b.apply(from, to, s)
}

func (b *buffer) apply(from, to int, s string) {
	b.text = b.text[:from] + s + b.text[to:]
	b.cursor, b.anchor, b.goal = b.border(from+len(s)), none, none
}

// border returns i, or the border of the grapheme that i is within: what is inserted may join what is
// before or after it.
func (b *buffer) border(i int) int {
	if i <= 0 || i >= len(b.text) || b.text[i-1] < utf8.RuneSelf && b.text[i] < utf8.RuneSelf {
		return i
	}
	for at := b.safe(i); ; {
		next := b.right(at)
		if next >= i {
			return next
		}
		at = next
	}
}

// set replaces the whole text, which cannot be undone.
func (b *buffer) set(text string) {
	cut, lines := b.cut, b.cutLines
	*b = newBuffer(text)
	b.cut, b.cutLines = cut, lines
}

// begin begins a group of changes.
func (b *buffer) begin() { b.group++ }

func (b *buffer) undo() {
	b.takeBack(&b.done, &b.undone, func(c change) {
		b.apply(c.at, c.at+len(c.new), c.old)
		b.cursor = c.cursor
	})
}

func (b *buffer) redo() {
	b.takeBack(&b.undone, &b.done, func(c change) { b.apply(c.at, c.at+len(c.old), c.new) })
}

// takeBack calls apply for the last group of changes in from, the last one first, and puts them into to.
func (b *buffer) takeBack(from, to *[]change, apply func(change)) {
	for n := len(*from); n > 0; n = len(*from) {
		c := (*from)[n-1]
		*from, *to = (*from)[:n-1], append(*to, c)
		apply(c)
		if n == 1 || (*from)[n-2].group != c.group {
			break
		}
	}
	b.begin()
}

// selection returns what is selected; from equals to if nothing is.
func (b *buffer) selection() (from, to int) {
	if b.anchor == none {
		return b.cursor, b.cursor
	}
	return min(b.anchor, b.cursor), max(b.anchor, b.cursor)
}

// move puts the cursor at i. The selection ends.
func (b *buffer) move(i int) { b.cursor, b.anchor, b.goal = i, none, none }

// insert puts s in the place of the selection.
func (b *buffer) insert(s string) {
	from, to := b.selection()
	b.replace(from, to, s)
}

// kill cuts what is between from and to.
func (b *buffer) kill(from, to int) {
	if from == to {
		return
	}
	b.cut, b.cutLines = b.text[from:to], false
	b.replace(from, to, "")
}

// grapheme returns the length in bytes and the width in columns of the first grapheme of s.
func grapheme(s string) (size, width int) {
	if len(s) == 1 || s[0] < utf8.RuneSelf && s[1] < utf8.RuneSelf {
		return 1, 1
	}
	first, width := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	return len(first), width
}

// safe returns a position at or before i that is certainly the border of a grapheme.
func (b *buffer) safe(i int) int {
	for i = min(i, len(b.text)); i > 0; i-- {
		if b.text[i-1] == '\n' || i < len(b.text) && b.text[i-1] < utf8.RuneSelf && b.text[i] < utf8.RuneSelf {
			return i
		}
	}
	return 0
}

// right returns the position after the grapheme at i.
func (b *buffer) right(i int) int {
	if i >= len(b.text) {
		return len(b.text)
	}
	size, _ := grapheme(b.text[i:])
	return i + size
}

// before returns the position of the grapheme before i.
func (b *buffer) before(i int) int {
	if i <= 0 {
		return 0
	}
	at := b.safe(i - 1)
	for {
		next := b.right(at)
		if next >= i {
			return at
		}
		at = next
	}
}

func (b *buffer) lineStart(i int) int { return strings.LastIndexByte(b.text[:i], '\n') + 1 }

func (b *buffer) lineEnd(i int) int {
	if n := strings.IndexByte(b.text[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(b.text)
}

// vertical moves the cursor to the line above (-1) or below (1), where it keeps its column. It returns
// false if there is none.
func (b *buffer) vertical(by int) bool {
	start := b.lineStart(b.cursor)
	goal := b.goal
	if goal == none {
		goal = ansi.StringWidth(b.text[start:b.cursor])
	}
	var to int
	if by < 0 {
		if start == 0 {
			return false
		}
		to = b.lineStart(start - 1)
	} else {
		end := b.lineEnd(b.cursor)
		if end == len(b.text) {
			return false
		}
		to = end + 1
	}
	for column, end := 0, b.lineEnd(to); to < end; {
		size, width := grapheme(b.text[to:])
		if column += width; column > goal {
			break
		}
		to += size
	}
	b.cursor, b.goal = to, goal
	return true
}

// class says what kind of character is at i: 0 for blanks and the end, 1 for words, 2 for the rest.
func (b *buffer) class(i int) int {
	if i >= len(b.text) {
		return 0
	}
	switch r, _ := utf8.DecodeRuneInString(b.text[i:]); {
	case unicode.IsSpace(r):
		return 0
	case r == '_' || unicode.In(r, unicode.Letter, unicode.Digit, unicode.Mark):
		return 1
	}
	return 2
}

// leftWhile returns where the characters before i begin for which ok returns true.
func (b *buffer) leftWhile(i int, ok func(at int) bool) int {
	for i > 0 && ok(b.before(i)) {
		i = b.before(i)
	}
	return i
}

// rightWhile returns where the characters from i on end for which ok returns true.
func (b *buffer) rightWhile(i int, ok func(at int) bool) int {
	for i < len(b.text) && ok(i) {
		i = b.right(i)
	}
	return i
}

// wordLeft returns where the word before i begins. Punctuation is between words.
func (b *buffer) wordLeft(i int) int {
	i = b.leftWhile(i, func(at int) bool { return b.class(at) != 1 })
	return b.leftWhile(i, func(at int) bool { return b.class(at) == 1 })
}

// wordRight returns where the word at or after i ends.
func (b *buffer) wordRight(i int) int {
	i = b.rightWhile(i, func(at int) bool { return b.class(at) != 1 })
	return b.rightWhile(i, func(at int) bool { return b.class(at) == 1 })
}

// blankLeft returns where what is between blanks before i begins.
func (b *buffer) blankLeft(i int) int {
	i = b.leftWhile(i, func(at int) bool { return b.class(at) == 0 })
	return b.leftWhile(i, func(at int) bool { return b.class(at) != 0 })
}
