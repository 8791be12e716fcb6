package sessiontest

import (
	"sync"

	"loki/internal/conversation/session"
	"loki/internal/service/auth"
)

var ada, bob = &auth.Owner{Subject: "ada", KeyID: "a1"}, &auth.Owner{Subject: "bob", KeyID: "b1"}

// owns compares the owner of a session with what all ways of asking for it say.
func (s *suite) owns(what string, got *session.Session, want *auth.Owner) {
	s.Helper()
	owner, err := got.Owner(s.Context())
	s.ok(err)
	s.same(what, owner, want)
	if !got.Stored() {
		return
	}
	for _, store := range []session.Store{s.store, s.again()} {
		owner, err := store.Owner(s.Context(), got.Scope(), got.ID())
		s.ok(err)
		s.same(what, owner, want)
		list, err := store.List(s.Context(), got.Scope())
		s.ok(err)
		for _, m := range list {
			if m.ID == got.ID() {
				s.same(what+", listed", m.Owner, want)
			}
		}
	}
}

func (s *suite) ownerOfNew() {
	ctx := s.Context()
	plain := s.open(s.store, "plain")
	s.ok(plain.Append(ctx, Turn(1)))
	s.owns("a session of no owner", plain, nil)

	temp := s.store.Temp("", session.Settings{})
	temp.ActFor(ada)
	s.owns("a session that is not stored", temp, ada)
	s.ok(temp.Rename(ctx, "hers"))
	s.ok(temp.Save(ctx))
	s.owns("a session that was named", temp, ada)
	temp.ActFor(nil)
	temp.Set(func(st *session.Settings) { st.Model = "m" })
	s.ok(temp.Save(ctx))
	s.owns("her session that another changed", temp, ada)
	s.ok(s.store.Rename(ctx, "", temp.ID(), "still-hers"))
	s.owns("her session that was renamed", temp, ada)

	begun := s.open(s.store, "begun")
	begun.ActFor(bob)
	d, err := begun.Begin(ctx, session.Turn{User: Turn(1).User})
	s.ok(err)
	s.owns("a session in which a question is answered", begun, bob)
	s.ok(d.Discard(ctx))

	s.ok(s.store.Delete(ctx, "", temp.ID()))
	_, err = s.store.Owner(ctx, "", temp.ID())
	s.is(err, session.ErrNotFound)
	_, err = s.store.Owner(ctx, "coder", plain.ID())
	s.is(err, session.ErrNotFound)
}

func (s *suite) claim() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, Turn(1)))
	var wg sync.WaitGroup
	owners := make([]*auth.Owner, 8) // goroutine i writes owners[i] only
	stores := []session.Store{s.store, s.again()}
	for i := range owners {
		wg.Go(func() {
			var err error
			owners[i], err = stores[i/2%2].Claim(ctx, "", a.ID(), []auth.Owner{*ada, *bob}[i%2])
			if err != nil {
				s.Error(err)
			}
		})
	}
	wg.Wait()
	for _, o := range owners {
		s.owns("of many who claim a session", a, o)
	}
	_, err := s.store.Claim(ctx, "", session.NewID(), *ada)
	s.is(err, session.ErrNotFound)
}

func (s *suite) claimedByChange() {
	ctx := s.Context()
	for name, change := range map[session.Alias]func(a *session.Session) error{
		"turn":  func(a *session.Session) error { return a.Append(ctx, Turn(2)) },
		"clear": func(a *session.Session) error { return a.Clear(ctx) },
		"settings": func(a *session.Session) error {
			a.Set(func(st *session.Settings) { st.Model = "m" })
			return a.Save(ctx)
		},
		"rename":   func(a *session.Session) error { return a.Rename(ctx, "renamed") },
		"question": func(a *session.Session) error { _, err := a.Begin(ctx, session.Turn{User: Turn(2).User}); return err },
	} {
		a := s.open(s.store, name)
		s.ok(a.Append(ctx, Turn(1)))
		b, err := s.again().Open(ctx, "", a.ID())
		s.ok(err)
		b.ActFor(ada)
		s.ok(b.Refresh(ctx))
		_ = b.Messages()
		s.owns("after reading", a, nil)
		s.ok(change(b))
		s.owns("after "+string(name), a, ada)
	}
}

func (s *suite) claimedByAnother() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, Turn(1)))
	b, err := s.again().Open(ctx, "", a.ID())
	s.ok(err)
	b.ActFor(bob)
	_, err = s.store.Claim(ctx, "", a.ID(), *ada)
	s.ok(err)
	for range 2 {
		s.is(b.Append(ctx, Turn(2)), session.ErrNotFound)
		_, err = b.Begin(ctx, session.Turn{User: Turn(2).User})
		s.is(err, session.ErrNotFound)
		s.is(b.Rename(ctx, "bobs"), session.ErrNotFound)
	}
	s.owns("a session that was claimed by another", a, ada)
	s.live("messages", s.open(s.again(), "a"), Turn(1))
}

func (s *suite) ownerOfFork() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, Turn(1)))
	_, err := s.again().Claim(ctx, "", a.ID(), *ada)
	s.ok(err)
	f, err := s.store.Fork(ctx, a, "fork")
	s.ok(err)
	s.owns("a fork", f, ada)
}

// twoOwnersBegin has two subjects begin a session of the same name: the second does not get
// into the session of the first.
func (s *suite) twoOwnersBegin() {
	ctx := s.Context()
	other := s.again()
	a, b := s.open(s.store, "a"), s.open(other, "a")
	a.ActFor(ada)
	b.ActFor(bob)
	s.ok(a.Append(ctx, Turn(1)))
	s.is(b.Append(ctx, Turn(2)), session.ErrAliasInUse)
	s.owns("the session", a, ada)
	s.live("messages", a, Turn(1))
}
