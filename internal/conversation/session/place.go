package session

import (
	"encoding/json"
	"slices"
	"time"

	"loki/internal/llm/chat"
)

// Place returns the number of changes of the conversation so far: turns, undos and clearings. A number never
// repeats in a session, and stays the same when older turns are compressed. It is 0 if nothing was said yet.
func (s *Session) Place() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.history.number()
}

// Trace is what a session has of a turn. The zero value is nothing.
type Trace struct {
	Found    bool
	Place    int            // the number of changes of the conversation with the turn
	Last     bool           // the turn is the last of them
	Answered bool           // the turn is complete; else it was interrupted
	Messages int            // of an interrupted turn that is the last one: how many live messages it has, its question included
	Reply    []chat.Message // of an answered turn
	Usage    chat.Usage     // likewise
}

// Trace returns what the session has of the turn with an id, see [Turn].
func (s *Session) Trace(id string) (t Trace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.view.history
	c := h.last.ofTurn(id)
	if c == nil {
		return Trace{}
	}
	t = Trace{Found: true, Place: c.number, Last: c == h.last, Answered: !c.cut, Reply: slices.Clip(c.reply), Usage: c.usage}
	if last := h.lastTurn(); t.Last && !t.Answered && last >= 0 {
		t.Messages = len(h.live) - last
	}
	return t
}

// TraceSince is [Session.Trace] for the record of an older version, which has no id of its turn: it looks for one
// that asked user and was interrupted. unchanged reports whether nothing else changed the conversation after begin.
func (s *Session) TraceSince(begin time.Time, user chat.Message) (t Trace, unchanged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.view.history
	c := h.last
	if c == nil || !c.at.After(begin) {
		return Trace{}, true
	}
	last := h.lastTurn()
	if !c.cut || last < 0 || s.storedText(h.live[last]) != s.storedText(user) {
		return Trace{}, false
	}
	return Trace{Found: true, Place: c.number, Last: true, Messages: len(h.live) - last}, c.earlier == nil || !c.earlier.at.After(begin)
}

// storedText returns m as it is stored.
func (s *Session) storedText(m chat.Message) string {
	text, _ := json.Marshal(m) // what cannot be encoded cannot be stored
	return s.options.hide(string(text))
}
