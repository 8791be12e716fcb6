package session

import (
	"context"
	"reflect"
	"slices"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
)

// Undo takes the last turn out of the conversation, an interrupted one too, and returns its
// messages: the question and what came after it, also with the error that this could not be written. The log keeps them; what they cost stays in
// [Session.Usage]. After the first turn of a conversation its role messages go too. It is written when a turn would be. A
// session without a turn, also because compactions have replaced all of them, is an error with
// code Usage, and so is one that another process has continued.
func (s *Session) Undo(ctx context.Context) ([]chat.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn, err := s.lastTurn()
	if err != nil {
		return nil, err
	}
	o := &undoOp{user: turn[0], at: s.now()}
	if err := s.change(ctx, o); err != nil {
		return turn, err // it is taken out in memory
	}
	if !o.done {
		return nil, fault.New(fault.Usage, "session %s was continued elsewhere, so nothing is undone", s.name()).
			WithHint("look at it first: loki --info -s %s", s.name())
	}
	return turn, nil
}

// LastTurn returns the messages of the last turn: the question and what came after it. A session
// without one is an error, as for [Session.Undo].
func (s *Session) LastTurn() ([]chat.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastTurn()
}

func (s *Session) lastTurn() ([]chat.Message, error) {
	h := &s.view.history
	last := h.lastTurn()
	if last < 0 {
		err := fault.New(fault.Usage, "there is no question to take back")
		if len(h.compacted) > 0 {
			err = err.WithHint("all turns are part of the recap; begin anew with --empty-session, or .empty session in the REPL")
		}
		return nil, err
	}
	return slices.Clone(h.live[last:]), nil
}

// Earlier returns the live messages without the last turn, as they are after [Session.Undo]. The
// list is the caller's, what is in it is not to be changed.
func (s *Session) Earlier() []chat.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.view.history
	if last := h.lastTurn(); last >= 0 {
		h.undo(len(h.live) - last)
	}
	return h.messages()
}

// undoOp takes the last turn away, if its question is user still.
type undoOp struct {
	user chat.Message
	at   time.Time
	done bool
}

func (o *undoOp) group(h *history) (group, bool) {
	last := h.lastTurn()
	o.done = last >= 0 && reflect.DeepEqual(h.live[last], o.user)
	if !o.done {
		return group{}, false
	}
	return group{mark: mark{Mark: markUndo, Replaces: len(h.live) - last, At: o.at}}, true
}

// undo takes the last n live messages away. If nothing of the conversation is left, its role
// messages go too: the next turn may begin under another role.
func (h *history) undo(n int) {
	h.drop(n)
	if len(h.live) == h.lead && len(h.compacted) == 0 {
		h.begin(group{})
		h.live, h.sizes, h.sum = nil, nil, 0
	}
}
