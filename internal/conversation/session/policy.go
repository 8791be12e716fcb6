package session

import "time"

// Verdict says what to do with unsaved changes.
type Verdict int

// The verdicts.
const (
	Discard Verdict = iota // there is nothing to save, or it is not wanted
	Write                  // save it, and write turns as they come
	Query                  // turns are written as they come, and the user decides when leaving the session, see [Session.TakeBack]
)

// ForceSave has the session saved whatever its settings say. The settings do not
// change.
func (s *Session) ForceSave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.force = true
}

// KeepNothing has all further changes stay in memory, whatever else is said of saving, until [Session.KeepAgain] is called.
func (s *Session) KeepNothing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unkept = true
}

// KeepAgain ends what [Session.KeepNothing] began: changes are written again. The ones made meanwhile stay in memory and
// are written only if the session is saved under a name.
func (s *Session) KeepAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unkept {
		s.partial = s.partial || len(s.pending) > 0
		s.unkept, s.dirty, s.pending = false, false, nil
	}
}

// Dirty reports whether there is something that has not been saved, or that the user has yet to
// decide about.
func (s *Session) Dirty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dirty
}

// Verdict says what is to become of the session when it is left:
//
//	dirty  save_session  named           temporary
//	no     any           Discard         Discard
//	yes    false         Discard         Discard
//	yes    true          Write           Write
//	yes    not set       Write           Discard    no user attends
//	yes    not set       Write           Query      a user attends
//
// A temporary session that a user has saved counts as a named one.
// With [Session.ForceSave] or [Session.KeepUnnamed] save_session counts as true. With [Session.KeepNothing] it is always Discard.
func (s *Session) Verdict() Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verdict()
}

func (s *Session) verdict() Verdict {
	if !s.dirty {
		return Discard
	}
	return s.intent()
}

// intent is the verdict on a session that is dirty.
func (s *Session) intent() Verdict {
	save := s.state.Settings.SaveSession
	switch {
	case s.unkept:
		return Discard
	case s.force || s.unnamed():
		return Write
	case save != nil && *save:
		return Write
	case save != nil:
		return Discard
	case !s.temp || s.attended && s.settled.stored:
		return Write
	case s.attended:
		return Query
	}
	return Discard
}

// unnamed reports whether the session is kept without an alias.
func (s *Session) unnamed() bool { return s.state.Unnamed && s.state.Alias == "" }

// now returns the time as marks have it.
func (s *Session) now() time.Time { return s.options.Now().UTC().Truncate(time.Second) }
