package session

import (
	"context"
	"slices"

	"loki/internal/base/fault"
)

// settled says what is decided of a session that a user attends to.
type settled struct {
	stored  bool // it was stored when that began, or when it was last saved at the user's wish
	wrote   bool // more was written since
	foreign bool // since then another process has continued the session
}

// Attend sets whether a user decides about unsaved changes when the session is left, as in a REPL. At first
// no user does, as in one-shot use and in a service. In a session that is held it only adds a user.
func (s *Session) Attend(attended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		s.attended = s.attended || attended
		return
	}
	s.attended = attended
	s.settle()
}

// held is what a session was before its changes had to wait.
type held struct {
	state           State
	base            Settings
	stale, forget   bool
	view            view
	pending         []entry
	dirty, attended bool
}

// Hold has changes wait for [Session.Save], whatever the settings say, until that or [Session.Drop] is called.
func (s *Session) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = &held{
			state: s.state, base: s.base, stale: s.stale, forget: s.forget, view: s.view, pending: slices.Clip(s.pending), dirty: s.dirty, attended: s.attended,
		}
	}
}

// Drop undoes what waits since [Session.Hold]. In a session that is not held it does nothing.
func (s *Session) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held; h != nil {
		s.state, s.base, s.stale, s.forget, s.view, s.pending, s.dirty, s.attended = h.state, h.base, h.stale, h.forget, h.view, h.pending, h.dirty, h.attended
		s.held = nil
		s.count()
	}
}

// Undecided reports whether the session is stored only until the user decides, who has not done so yet.
func (s *Session) Undecided() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attended && s.stored && !s.settled.stored
}

// settle notes that what is written is to stay. The caller holds mu, as in all functions below.
func (s *Session) settle() { s.settled = settled{stored: s.stored} }

// asks reports whether the user decides whether to keep what is written now.
func (s *Session) asks() bool { return s.attended && s.intent() == Query }

// due reports whether a change is written at once.
func (s *Session) due() bool {
	return s.held == nil && s.intent() != Discard
}

// noteWrite notes that something was.
func (s *Session) noteWrite() {
	switch {
	case !s.attended:
	case s.asks():
		s.settled.wrote = true
	default:
		s.settle()
	}
	s.dirty = s.dirty && s.asks()
}

// noteForeignWrite notes what another process has written.
func (s *Session) noteForeignWrite() { s.settled.foreign = s.settled.foreign || s.settled.wrote }

// TakeBack removes a session that was not stored when a user began to attend to it, and that the user does not
// keep. What was not written yet is dropped. A session that stays is not changed. If another process has continued
// the session, it is an error with code Usage, and everything stays.
func (s *Session) TakeBack(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asks() || !s.settled.wrote {
		return nil
	}
	gone := false
	if !s.settled.foreign {
		var err error
		if gone, err = s.log.Withdraw(context.WithoutCancel(ctx), s.view.offset); err != nil {
			return err
		}
	}
	if !gone {
		return fault.New(fault.Usage, "session %s was continued elsewhere, so nothing is undone", s.name()).
			WithHint("look at it first: loki --info -s %s", s.name())
	}
	s.stored, s.pending, s.dirty, s.settled.wrote = false, nil, false, false
	return nil
}
