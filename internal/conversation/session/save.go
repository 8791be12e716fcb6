package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"loki/internal/base/fault"
)

// Append records a turn. Unless the session will be discarded ([Session.Verdict]), or is held,
// the turn is written at once, even if ctx is canceled: it has been paid
// for. Otherwise it waits for [Session.Save]. A turn that could not be written is kept
// in memory and written with the next one.
func (s *Session) Append(ctx context.Context, t Turn) error {
	return s.append(ctx, t, func(*turnOp) {})
}

// append records a turn that adjust makes known more of.
func (s *Session) append(ctx context.Context, t Turn, adjust func(*turnOp)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteSources(t.DataURLs)
	if t.InPlaceOf.Role != "" {
		s.remember(&undoOp{user: t.InPlaceOf, at: s.now()}) // written together with the turn
	}
	o := newTurn(&s.view.history, t, s.now())
	adjust(&o)
	return s.change(ctx, o)
}

// noteSources notes where images came from.
func (s *Session) noteSources(sources map[string]string) {
	for hash, source := range sources {
		if s.state.DataURLs[hash] != source {
			urls := maps.Clone(s.state.DataURLs)
			if urls == nil {
				urls = make(map[string]string)
			}
			urls[hash] = source
			s.state.DataURLs, s.stale = urls, true
		}
	}
}

// Clear takes all messages out of the conversation and forgets its title. Settings
// stay. It is written when a turn would be.
func (s *Session) Clear(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.DataURLs, s.state.Title, s.state.Summary = nil, "", ""
	s.state.Settings.Todo = ""
	s.stale, s.forget = true, true
	return s.change(ctx, emptyOp{s.now()})
}

// Save writes what has not been written yet, whatever the settings say. A temporary
// session gets an alias made from the time and its title. Turns that were taken back before they were written are not
// written. Saving what is saved costs nothing.
func (s *Session) Save(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.partial && s.state.Alias != "" || !s.stored && slices.ContainsFunc(s.pending, entry.removes) {
		s.pending, s.partial = s.visibleChanges(), false
	}
	if err := s.commit(ctx, nil); err != nil {
		return err
	}
	s.dirty, s.held = false, nil
	s.settle()
	return nil
}

// Rename gives the session another alias, at once if it is stored. It is an
// [ErrAliasInUse] if another session has it. The session is no longer temporary.
func (s *Session) Rename(ctx context.Context, alias Alias) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.own(ctx); err != nil {
		return err
	}
	if s.stored && s.state.Alias != alias {
		if err := s.log.Rename(ctx, alias); err != nil {
			return err
		}
	}
	if s.state.Alias != alias {
		s.state.Alias, s.adopt = alias, false
	}
	s.temp = false
	return nil
}

// noteAlias notes an alias that the session was given through its store.
func (s *Session) noteAlias(alias Alias) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Alias, s.temp = alias, false
}

// change makes a change of the conversation, and writes it if that is due. The caller
// holds mu, as in all functions below.
func (s *Session) change(ctx context.Context, o op) error {
	s.dirty = true
	due := s.due()
	if due && s.stored && len(s.pending) == 0 {
		err := s.commit(ctx, o)
		if err != nil {
			s.remember(o)
		}
		return err
	}
	s.remember(o)
	if !due {
		return nil
	}
	return s.commit(ctx, nil)
}

// remember makes a change in memory.
func (s *Session) remember(o op) {
	h := &s.view.history
	if g, ok := o.group(h); ok {
		h.apply(g)
		s.pending = append(s.pending, entry{o, g})
	}
}

// removes reports whether the change takes messages out of the conversation.
func (e entry) removes() bool { return e.group.Replaces > 0 || e.group.Mark == markEmpty }

// visibleChanges returns the changes that make any log one of what the session shows, and of what it cost.
func (s *Session) visibleChanges() []entry {
	list := []entry{{op: emptyOp{s.now()}}}
	if !s.stored {
		list = []entry{{op: usageOp{s.view.history.usage, s.now()}}}
	}
	for _, g := range s.view.history.groups(s.now()) {
		list = append(list, entry{op: groupOp{g}})
	}
	for i := range list {
		list[i].group, _ = list[i].op.group(nil)
	}
	return list
}

// commit writes the state, what is pending, and the change fresh, which is not in the
// history yet; nil is none.
func (s *Session) commit(ctx context.Context, fresh op) error {
	if s.stored && !s.stale && len(s.pending) == 0 && fresh == nil {
		s.dirty = s.dirty && s.asks()
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.own(ctx); err != nil {
		return err
	}
	if !s.stored {
		if err := s.create(ctx); err != nil {
			return err
		}
		if !s.stale && len(s.pending) == 0 && fresh == nil {
			s.noteWrite()
			return nil
		}
	}
	err := s.update(ctx, func(tx Tx) error {
		if s.stale {
			if err := s.writeState(tx); err != nil {
				return err
			}
		}
		if len(s.pending) == 0 && fresh == nil {
			return nil
		}
		if s.partial {
			return s.writePart(ctx, tx, fresh)
		}
		return s.writeLog(ctx, tx, fresh)
	})
	if err != nil {
		return err
	}
	s.noteWrite()
	return nil
}

// update changes what is stored. If that fails, nothing of what change took for written counts as written.
func (s *Session) update(ctx context.Context, change func(Tx) error) error {
	state, base, stale, forget, v, pending := s.state, s.base, s.stale, s.forget, s.view, s.pending
	err := s.log.Update(ctx, change)
	if err != nil {
		s.state, s.base, s.stale, s.forget, s.view, s.pending = state, base, stale, forget, v, pending
		s.count()
	}
	return err
}

// create stores the session.
func (s *Session) create(ctx context.Context) error {
	st := s.state
	if s.claim != nil && st.Owner == nil {
		st.Owner = s.claim
	}
	var err error
	if s.temp && st.Alias == "" && !st.Unnamed {
		first := stamp(s.options.Now(), st.Title)
		st.Alias = first
		err = s.log.Create(ctx, st)
		for n := 2; errors.Is(err, ErrAliasInUse) && n <= 60; n++ { // of the same second
			st.Alias = Alias(fmt.Sprintf("%s-%d", first, n))
			err = s.log.Create(ctx, st)
		}
	} else {
		err = s.log.Create(ctx, st)
	}
	if errors.Is(err, ErrAliasInUse) && s.adopt && st.Owner == nil {
		id, err := s.log.Adopt(ctx, st.Alias)
		if err != nil {
			return err
		}
		// Its settings count, except the ones that were changed here meanwhile.
		s.id, s.stored, s.adopt, s.stale = id, true, false, true
		return nil
	}
	if err != nil {
		return err
	}
	s.stored, s.adopt = true, false
	s.setState(st)
	return nil
}

// writeState stores the state, with what others have changed in it.
func (s *Session) writeState(tx Tx) error {
	st, err := tx.State()
	if err != nil {
		return err
	}
	st.Settings = merge(s.base, s.state.Settings, st.Settings)
	if s.forget {
		st.DataURLs, st.Title, st.Summary = nil, "", ""
	}
	if s.state.Title != "" {
		st.Title = s.options.hide(s.state.Title)
	}
	if s.state.Summary != "" {
		st.Summary = s.options.hide(s.state.Summary)
	}
	if len(s.state.DataURLs) > 0 {
		urls := make(map[string]string)
		maps.Copy(urls, st.DataURLs)
		maps.Copy(urls, s.state.DataURLs)
		st.DataURLs = urls
	}
	if err := tx.SetState(st); err != nil {
		return err
	}
	s.setState(st)
	return nil
}

// writeLog appends what is pending and fresh, behind what others have appended.
func (s *Session) writeLog(ctx context.Context, tx Tx, fresh op) error {
	size, err := tx.Size()
	if err != nil {
		return err
	}
	// What others appended belongs in front of what is pending: begin anew.
	again := size < s.view.offset || size > s.view.offset && len(s.pending) > 0
	v := s.view
	if again {
		v = view{history: history{counter: s.view.history.counter}}
	}
	var torn *Damage
	if size > v.offset {
		tail, err := tx.Tail(v.offset)
		if err != nil {
			return err
		}
		before := v.offset
		if torn = s.read(ctx, &v, tail); v.offset > before && !again || again && v.offset > s.view.offset {
			s.noteForeignWrite()
		}
	}
	var data bytes.Buffer
	add := func(g group) error {
		lines, err := s.options.encode(g)
		if err != nil {
			return fmt.Errorf("session %s: %w", s.id, err)
		}
		data.Write(lines)
		return nil
	}
	for _, e := range s.pending {
		g, ok := e.group, true
		if again {
			if g, ok = e.op.group(&v.history); ok {
				v.history.apply(g)
			}
		}
		if ok {
			err = errors.Join(err, add(g))
		}
	}
	if fresh != nil {
		if g, ok := fresh.group(&v.history); ok {
			v.history.apply(g)
			err = errors.Join(err, add(g))
		}
	}
	if err != nil {
		return err
	}
	if err := tx.Append(v.offset, data.Bytes()); err != nil {
		return err
	}
	if torn != nil {
		s.options.Warn(ctx, torn)
	}
	v.offset += int64(data.Len())
	s.view, s.pending = v, nil
	return nil
}

// writePart appends what is pending and fresh to a log that lacks a part of what is in memory.
func (s *Session) writePart(ctx context.Context, tx Tx, fresh op) error {
	memory := s.view.history
	s.view = view{history: history{counter: memory.counter}}
	if fresh != nil {
		if g, ok := fresh.group(&memory); ok {
			memory.apply(g)
		}
	}
	err := s.writeLog(ctx, tx, fresh)
	s.view.history = memory
	return err
}

// AliasInUse returns the [ErrAliasInUse] for an alias. It is for stores.
func AliasInUse(alias Alias) error {
	return fault.Wrap(fault.Usage, ErrAliasInUse, "session %q", alias).WithHint("choose another name, or delete that session first")
}

// NotFound returns the [ErrNotFound] for an id or alias. It is for stores.
func NotFound[T ID | Alias](session T) error {
	return fault.Wrap(fault.NotFound, ErrNotFound, "session %q", session).ThatMisses("session").WithHint("loki --list sessions lists the sessions")
}

// Store stores a new session as it is, and does not become another one of the same
// alias. It is for stores.
func (s *Session) Store(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adopt = false
	return s.commit(ctx, nil)
}

// Reload reads the settings again, after they were edited where they are stored.
// Changes of settings that were not saved are lost; what was said is not.
func (s *Session) Reload(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stored {
		return nil
	}
	st, _, err := s.log.Load(ctx)
	if err != nil {
		return err
	}
	s.setState(st)
	s.dirty = len(s.pending) > 0
	return nil
}
