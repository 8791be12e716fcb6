package line

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// model is what a user sees and changes, without the terminal. Keys change it; nothing else does while
// a text is read.
type model struct {
	complete   func(text string) Completion
	incomplete func(text string) bool
	width      int // columns of the terminal

	buf     buffer
	vi      *vi // nil with emacs bindings
	menu    *menu
	search  *search
	message string // shown below the text until the next key

	history []string
	place   int            // in the history; its length means the text that is not in it
	edited  map[int]string // texts of other places that were changed

	action, before action // of this key and of the one before
}

// outcome is what a key asks for beyond the model.
type outcome int

const (
	goOn outcome = iota
	submit
	interrupt
	end     // of the input
	edit    // in another program
	suspend // the process
	clear   // the screen
	cycle   // what the prompt shows
)

// action is what a key did, where the next key has to know.
type action int

const (
	other action = iota
	typing
	killing
)

// newModel returns a model of the text initial.
func newModel(o *Options, history []string, initial string) *model {
	m := &model{
		complete: o.Complete, incomplete: o.Incomplete, width: 80,
		buf: newBuffer(initial), history: history, place: len(history), edited: make(map[int]string),
	}
	if o.Vi {
		m.vi = new(vi)
	}
	return m
}

// press does what a key is for. In vi's normal mode each character is a key.
func (m *model) press(k key) outcome {
	if m.vi != nil && strings.Contains(k.name, "alt+") && !m.bound(k.name) { // Esc and a key, typed fast
		m.press(key{name: "esc"})
		k = withoutAlt(k.name)
	}
	for m.vi != nil && !m.vi.inserts() && m.search == nil && !k.paste {
		_, size := utf8.DecodeRuneInString(k.text)
		if size == len(k.text) {
			break
		}
		m.press(key{text: k.text[:size]})
		k.text = k.text[size:]
	}
	m.message = ""
	m.before, m.action = m.action, other
	if m.vi != nil {
		m.vi.note(k)
	}
	if m.search != nil {
		if done, what := m.searchKey(k); done {
			return what
		}
	}
	if k.name != "" && m.menu != nil && m.menuKey(k.name) {
		return goOn
	}
	text, open := m.buf.text, m.menu != nil
	what := m.key(k)
	if open {
		m.refreshMenu(m.buf.text != text)
	}
	return what
}

// key is press without a menu and a search.
func (m *model) key(k key) outcome {
	switch {
	case k.paste:
		m.buf.begin()
		if m.buf.insert(k.text); len(m.buf.text) < len(k.text) {
			m.message = "What was pasted is too long. Attach it as a file, with .file."
		}
		return goOn
	case k.text != "" && m.vi != nil && !m.vi.inserts():
		return m.viKey(k.text)
	case k.text != "":
		m.insertTyped(k.text)
		return goOn
	case m.vi != nil && !m.vi.inserts():
		return m.viKey(k.name)
	}
	return m.bind(k.name)
}

// withoutAlt returns the key called name as it is when Alt is not held.
func withoutAlt(name string) key {
	name = strings.Replace(name, "alt+", "", 1)
	if letter := strings.TrimPrefix(name, "shift+"); utf8.RuneCountInString(letter) == 1 {
		if letter != name {
			letter = strings.ToUpper(letter)
		}
		return key{text: letter}
	}
	return key{name: name}
}

// insertTyped inserts text that was typed. Words are undone one by one, in vi all that was typed at once.
func (m *model) insertTyped(text string) {
	m.action = typing
	if m.vi == nil {
		at := m.buf.before(m.buf.cursor)
		if m.before != typing || m.buf.class(at) == 0 && !unicode.IsSpace(rune(text[0])) {
			m.buf.begin()
		}
	}
	m.buf.insert(text)
}

// up moves to the line above, or to the entry before in the history.
func (m *model) up() {
	if !m.buf.vertical(-1) {
		m.recall(m.place - 1)
	}
}

func (m *model) down() {
	if !m.buf.vertical(1) {
		m.recall(m.place + 1)
	}
}

// recall shows the entry at place. What was changed at another place is still there.
func (m *model) recall(place int) {
	if place < 0 || place > len(m.history) {
		return
	}
	if m.place == len(m.history) || m.buf.text != m.history[m.place] {
		m.edited[m.place] = m.buf.text
	}
	m.place = place
	text, ok := m.edited[place]
	if !ok {
		text = m.history[place]
	}
	m.buf.set(text)
}

// enter submits, or begins another line in a text that is not complete.
func (m *model) enter() outcome {
	if m.incomplete != nil && m.incomplete(m.buf.text) {
		m.buf.begin()
		m.buf.insert("\n")
		return goOn
	}
	return submit
}

// search looks for earlier entries.
type search struct {
	term    string
	found   int // index in the history
	failing bool
	text    string // before the search
	cursor  int
}

// find shows the next entry with the term, from index from on towards older (-1) or newer (1) ones.
func (m *model) find(from, by int) {
	s := m.search
	if s.failing = true; s.term == "" {
		s.failing = false
		return
	}
	fold := strings.ToLower(s.term) == s.term
	for i := from; i >= 0 && i < len(m.history); i += by {
		entry := m.history[i]
		if fold {
			entry = strings.ToLower(entry)
		}
		at := strings.LastIndex(entry, s.term)
		if at < 0 || m.history[i] == m.buf.text && i != s.found && s.found < len(m.history) { // or again the same
			continue
		}
		s.found, s.failing = i, false
		m.buf.set(m.history[i])
		if len(entry) == len(m.buf.text) { // the lower case of a few letters has another length
			m.buf.cursor = m.buf.border(at)
			m.buf.anchor = m.buf.border(at + len(s.term))
		}
		return
	}
}

// searchKey passes a key to the search. It returns false if the key ends the search and means what it
// means without one.
func (m *model) searchKey(k key) (done bool, what outcome) {
	s := m.search
	if k.text != "" {
		s.term += strings.ReplaceAll(k.text, "\n", " ")
		m.find(min(s.found, len(m.history)-1), -1)
		return true, goOn
	}
	switch k.name {
	case "ctrl+r", "up", "ctrl+p":
		m.find(s.found-1, -1)
	case "ctrl+s", "down", "ctrl+n":
		m.find(s.found+1, 1)
	case "backspace", "ctrl+h":
		b := buffer{text: s.term}
		s.term, s.found = s.term[:b.before(len(s.term))], len(m.history)
		m.buf.set(s.text)
		m.buf.cursor = s.cursor
		m.find(len(m.history)-1, -1)
	case "esc", "ctrl+g":
		m.buf.set(s.text)
		m.buf.cursor = s.cursor
		m.search = nil
	default:
		if s.failing || s.term != "" {
			m.place = min(s.found, len(m.history))
		}
		m.buf.anchor, m.search = none, nil
		return k.name == "tab", goOn // which only accepts what was found
	}
	return true, goOn
}

func (m *model) startSearch() {
	m.search = &search{found: len(m.history), text: m.buf.text, cursor: m.buf.cursor}
	m.edited[m.place] = m.buf.text
}
