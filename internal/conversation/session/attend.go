package session

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"

	"loki/internal/base/fault"
)

// settled is what a session was when a user began to attend to it, or when that was last settled.
type settled struct {
	stored  bool
	history history
	state   State
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
func (s *Session) settle() {
	s.settled = settled{stored: s.stored, history: s.view.history, state: s.state}
	s.settled.state.DataURLs = maps.Clone(s.state.DataURLs)
}

// asks reports whether the user decides whether to keep what is written now.
func (s *Session) asks() bool { return s.attended && s.intent() == Query }

// due reports whether a change is written at once.
func (s *Session) due() bool {
	return s.held == nil && s.intent() != Discard
}

// written notes that something was.
func (s *Session) written() {
	switch {
	case !s.attended:
	case s.asks():
		s.settled.wrote = true
	default:
		s.settle()
	}
	s.dirty = s.dirty && s.asks()
}

// joined notes what another process has written. Before anything was written here, that is as if it had
// been there from the start.
func (s *Session) joined(h history) {
	if s.settled.wrote {
		s.settled.foreign = true
		return
	}
	s.settled.history = h
}

// TakeBack undoes what was written since a user attends to the session, or since it was saved at the user's
// wish: a session that was not stored then is removed; else its messages are what they were, by a mark behind
// the messages that do not count any more, and so are its settings. What was not written yet is dropped. If another process
// has continued the session, it is an error with code Usage, and everything stays.
func (s *Session) TakeBack(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	if !s.attended || !s.settled.wrote {
		return nil
	}
	foreign := fault.New(fault.Usage, "session %s was continued elsewhere, so nothing is undone", s.name()).
		WithHint("look at it first: loki --info -s %s", s.name())
	if s.settled.foreign {
		return foreign
	}
	if !s.settled.stored {
		gone, err := s.log.Withdraw(ctx, s.view.offset)
		if err == nil && !gone {
			err = foreign
		}
		if err == nil {
			s.stored, s.pending, s.dirty, s.settled.wrote = false, nil, false, false
		}
		return err
	}
	err := s.update(ctx, func(tx Tx) error {
		size, err := tx.Size()
		if err != nil {
			return err
		}
		if size != s.view.offset {
			return foreign
		}
		st, err := tx.State()
		if err != nil {
			return err
		}
		then := s.settled.state
		st.Settings = merge(s.base, then.Settings, st.Settings)
		st.Title, st.Summary, st.DataURLs = then.Title, then.Summary, then.DataURLs
		if err := tx.SetState(st); err != nil {
			return err
		}
		s.setState(st)
		return s.restore(ctx, tx)
	})
	if err != nil {
		return err
	}
	s.pending, s.dirty = nil, false
	s.settle()
	return nil
}

// restore appends what makes the messages what they were.
func (s *Session) restore(ctx context.Context, tx Tx) error {
	v := s.view
	if len(s.pending) > 0 { // which is in that view, but not in the log
		log, err := tx.Tail(0)
		if err != nil {
			return err
		}
		v = view{history: history{counter: s.view.history.counter}}
		s.read(ctx, &v, log)
	}
	var data bytes.Buffer
	for _, g := range s.back(&v.history) {
		lines, err := s.options.encode(g)
		if err != nil {
			return err
		}
		data.Write(lines)
		v.history.apply(g)
	}
	if err := tx.Append(v.offset, data.Bytes()); err != nil {
		return err
	}
	v.offset += int64(data.Len())
	s.view = v
	return nil
}

// back returns what brings h to the messages that it had.
func (s *Session) back(h *history) []group {
	then := &s.settled.history
	more := len(h.live) - len(then.live)
	switch {
	case more == 0 && len(h.compacted) == len(then.compacted) && reflect.DeepEqual(h.live, then.live):
		return nil
	case more > 0 && len(h.compacted) == len(then.compacted) && reflect.DeepEqual(h.live[:len(then.live)], then.live):
		return []group{{mark: mark{Mark: markUndo, Replaces: more, At: s.now()}}}
	}
	return append([]group{{mark: mark{Mark: markEmpty, At: s.now()}}}, then.groups(s.now())...)
}
