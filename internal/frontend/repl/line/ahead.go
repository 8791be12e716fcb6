package line

import (
	"sync"
	"time"
)

// Ahead gets what is typed while the program works, see [Editor.Watch]. Its functions are called one at a time, and must not call
// methods of the watch. Each may be nil.
type Ahead struct {
	// End is called for each Ctrl-D. If it returns true the key is not kept.
	End func() bool
	// Submit takes a text that the user finished: with Alt-Enter if now is set, else with Enter. If it returns false the text stays.
	// Nil keeps Enter for the next Read.
	Submit func(text string, now bool) bool
	// Recall returns the text that the user submitted last, to be edited again, for Up on an empty line; "" for none.
	Recall func() string
	// Show is called when the text that is not submitted has changed. The cursor is an offset in bytes.
	Show func(text string, cursor int)
}

// draft is the text that is typed while the program works. It outlives pauses of the watch, and begins the next Read.
type draft struct {
	mu    sync.Mutex // also guards the keys while there is a watch
	model *model     // nil before something is typed
}

// unbound are keys that do nothing in a draft: they need the screen, the history or the completions of Read.
var unbound = map[string]bool{
	"ctrl+c": true, "ctrl+d": true, "ctrl+l": true, "ctrl+o": true, "ctrl+r": true, "tab": true, "down": true, "ctrl+p": true, "ctrl+n": true, "ctrl+z": true,
}

// press passes the keys that are there to the draft. Late means that the rest of a sequence will not come.
func (w *Watch) press(late bool) {
	e, a := w.editor, &w.ahead
	d := &e.draft
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.Submit == nil {
		return
	}
	changed := false
	for {
		k, ok := e.keys.next(late)
		if !ok {
			break
		}
		if d.model == nil {
			d.model = newModel(&Options{Vi: e.opts.Vi, Incomplete: e.opts.Incomplete}, nil, "")
		}
		changed = true
		m := d.model
		switch text := m.buf.text; {
		case k.name == "alt+enter" && text != "":
			if a.Submit(text, true) {
				d.model = nil
			}
		case k.name == "up" && text == "":
			if a.Recall != nil {
				m.buf.set(a.Recall())
			}
		case unbound[k.name]:
		case m.press(k) == submit && a.Submit(m.buf.text, false):
			d.model = nil
		}
	}
	if changed && a.Show != nil {
		if d.model == nil {
			a.Show("", 0)
		} else {
			a.Show(d.model.buf.text, d.model.buf.cursor)
		}
	}
}

// Draft returns what was typed during a watch and not submitted, once. The next Read does not begin with it.
func (e *Editor) Draft() string { return e.draft.take() }

// take returns the draft and forgets it.
func (d *draft) take() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.model == nil {
		return ""
	}
	text := d.model.buf.text
	d.model = nil
	return text
}

// rest returns when the rest of a sequence will not come any more, nil if none has begun.
func (w *Watch) rest() <-chan time.Time {
	d := &w.editor.draft
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.ahead.Submit == nil || !w.editor.keys.waits() {
		return nil
	}
	return time.After(escapeWait)
}
