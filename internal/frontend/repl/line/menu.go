package line

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// menu is the list of candidates below the text.
type menu struct {
	completion Completion
	at         int // the candidate that is selected
	columns    int
	cell       int  // width of a value in columns, without the gap
	described  bool // each candidate has a row of its own, with its description
}

// openMenu offers what completes the text before the cursor. A single candidate is inserted at once;
// what several have in common is inserted first.
func (m *model) openMenu() {
	if m.complete == nil {
		return
	}
	c, ok := m.candidates()
	if !ok {
		return
	}
	m.step()
	if len(c.Candidates) == 1 {
		m.choose(c, 0)
		return
	}
	if prefix := commonPrefix(c.Candidates); extends(prefix, m.buf.text[c.From:m.buf.cursor]) {
		m.buf.replace(c.From, m.buf.cursor, prefix)
		if c, ok = m.candidates(); !ok {
			return
		}
	}
	m.setMenu(c)
}

// candidates returns the candidates for the text before the cursor, if any.
func (m *model) candidates() (Completion, bool) {
	m.buf.anchor = none
	c := m.complete(m.buf.text[:m.buf.cursor])
	ok := len(c.Candidates) > 0 && c.From >= 0 && c.From <= m.buf.cursor && m.buf.border(c.From) == c.From
	return c, ok
}

// setMenu lays a menu out for the width of the terminal.
func (m *model) setMenu(c Completion) {
	n := &menu{completion: c, columns: 1}
	for _, candidate := range c.Candidates {
		n.cell = max(n.cell, ansi.StringWidth(candidate.Value))
		n.described = n.described || candidate.Description != ""
	}
	n.cell = min(n.cell, max(m.width-1, 1))
	if !n.described {
		n.columns = max(1, (m.width+1)/(n.cell+2))
	}
	m.menu = n
}

// refreshMenu looks for candidates again after the text has changed, and closes the menu if there are
// none or if only the cursor has moved.
func (m *model) refreshMenu(changed bool) {
	m.menu = nil
	if !changed || m.search != nil {
		return
	}
	if c, ok := m.candidates(); ok {
		m.setMenu(c)
	}
}

// menuKey passes a key to the menu. It returns false for keys that are not the menu's.
func (m *model) menuKey(name string) bool {
	n := m.menu
	count := len(n.completion.Candidates)
	switch name {
	case "tab", "right", "ctrl+f":
		n.at = (n.at + 1) % count
	case "shift+tab", "left", "ctrl+b":
		n.at = (n.at + count - 1) % count
	case "down", "ctrl+n":
		n.down()
	case "up", "ctrl+p":
		n.up()
	case "pgdown":
		n.at = min(n.at+menuRows*n.columns, count-1)
	case "pgup":
		n.at = max(n.at-menuRows*n.columns, 0)
	case "enter":
		m.step()
		m.choose(n.completion, n.at)
	case "esc", "ctrl+g":
		m.menu = nil
	default:
		return false
	}
	return true
}

// down selects the candidate below. After the last row comes the first one of the next column.
func (n *menu) down() {
	count := len(n.completion.Candidates)
	if n.at += n.columns; n.at >= count {
		n.at = (n.at%n.columns + 1) % n.columns % count
	}
}

func (n *menu) up() {
	count := len(n.completion.Candidates)
	if n.at -= n.columns; n.at < 0 {
		column := (n.at + n.columns + n.columns - 1) % n.columns
		last := (count-1)/n.columns*n.columns + column
		if last >= count {
			last -= n.columns
		}
		n.at = max(last, 0)
	}
}

// choose puts a candidate in the text and closes the menu.
func (m *model) choose(c Completion, at int) {
	candidate := c.Candidates[at]
	value := plain(candidate.Value)
	if candidate.Space {
		if strings.HasPrefix(m.buf.text[m.buf.cursor:], " ") {
			m.buf.cursor++
		}
		value += " "
	}
	m.buf.replace(c.From, m.buf.cursor, value)
	m.menu = nil
}

// commonPrefix returns what all values begin with, in whole characters.
func commonPrefix(candidates []Candidate) string {
	prefix := plain(candidates[0].Value)
	for _, c := range candidates[1:] {
		n := 0
		for n < len(prefix) && n < len(c.Value) && prefix[n] == c.Value[n] {
			n++
		}
		prefix = prefix[:n]
	}
	for n := len(prefix); n > 0 && !utf8.ValidString(prefix); n-- {
		prefix = prefix[:n-1]
	}
	// A mark that follows in one of them would be lost from its letter.
	for _, c := range candidates {
		if r, _ := utf8.DecodeRuneInString(strings.TrimPrefix(c.Value, prefix)); unicode.Is(unicode.Mark, r) || r == '\u200d' {
			return ""
		}
	}
	return prefix
}

// extends reports whether prefix is typed with more behind it, whatever the case of letters.
func extends(prefix, typed string) bool {
	return len(prefix) > len(typed) && strings.HasPrefix(strings.ToLower(prefix), strings.ToLower(typed))
}
