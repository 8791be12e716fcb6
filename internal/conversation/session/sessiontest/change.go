package sessiontest

import (
	"context"
	"slices"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

func (s *suite) undo() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	_, err := a.Undo(ctx)
	s.same("code without a turn", fault.CodeOf(err), fault.Usage)
	first, second := Turn(1), toolTurn()
	second.Usage = chat.Usage{InputTokens: 7, OutputTokens: 1}
	s.ok(a.Append(ctx, first))
	s.ok(a.Append(ctx, second))
	tokens := s.open(s.again(), "a").Tokens()
	s.ok(a.Append(ctx, Turn(3)))
	undone, err := a.Undo(ctx)
	s.ok(err)
	s.same("what is taken back", undone, messages(Turn(3))[len(role):])
	s.live("messages", a, first, second)
	s.live("messages, opened again", s.open(s.again(), "a"), first, second)
	s.same("tokens", a.Tokens(), tokens)
	undone, err = a.Undo(ctx)
	s.ok(err)
	s.same("what is taken back with tools", undone, messages(second)[len(role):])
	s.same("what it cost stays", s.open(s.again(), "a").Usage(), second.Usage)
	_, err = a.Undo(ctx)
	s.ok(err)
	for _, got := range []*session.Session{a, s.open(s.again(), "a")} {
		if !got.Empty() || got.Tokens() != 0 {
			s.Errorf("after the first turn was taken back there are %v", got.Messages())
		}
	}
	s.ok(a.Append(ctx, Turn(4)))
	s.live("begun anew", s.open(s.again(), "a"), Turn(4))
}

// continuations are part of the turn before them, also for what opens the session again.
func (s *suite) continuations() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	long := Turn(3)
	more := chat.Text(chat.User, "go on with the list")
	more.Continuation = true
	long.Reply = append(long.Reply, more, chat.Text(chat.Assistant, "done"))
	for _, t := range []session.Turn{Turn(1), Turn(2), long} {
		s.ok(a.Append(ctx, t))
	}
	recap := session.Compaction{Summarize: func(context.Context, []chat.Message) (string, chat.Usage, error) { return "one", chat.Usage{}, nil }}
	b := s.open(s.again(), "a")
	done, err := b.Compress(ctx, recap)
	s.ok(err)
	s.same("messages that stay", done.Kept, 6)

	again := long
	again.Mode, again.Reply = session.Regenerate, []chat.Message{chat.Text(chat.Assistant, "other")}
	s.ok(b.Append(ctx, again))
	turn, err := s.open(s.again(), "a").LastTurn()
	s.ok(err)
	s.same("answered again", turn, append([]chat.Message{long.User}, again.Reply...))

	other := Turn(4)
	other.InPlaceOf = long.User
	s.ok(b.Append(ctx, other))
	c := s.open(s.again(), "a")
	undone, err := c.Undo(ctx)
	s.ok(err)
	s.same("what took the place of a turn", undone, messages(other)[len(role):])
	undone, err = c.Undo(ctx)
	s.ok(err)
	s.same("what was before it", undone, messages(Turn(2))[len(role):])
}

func (s *suite) undoBeside() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, Turn(1)))
	s.ok(s.open(s.again(), "a").Append(ctx, Turn(2)))
	_, err := a.Undo(ctx)
	s.same("code", fault.CodeOf(err), fault.Usage)
	s.live("messages, opened again", s.open(s.again(), "a"), Turn(1), Turn(2))

	// What waits to be written goes on with what is there then.
	b := s.open(s.again(), "a")
	b.Hold()
	s.ok(b.Append(ctx, Turn(3)))
	_, err = b.Undo(ctx)
	s.ok(err)
	s.ok(b.Save(ctx))
	s.live("taken back before it was written", s.open(s.again(), "a"), Turn(1), Turn(2))
}

func (s *suite) fork() {
	ctx := s.Context()
	a, err := s.store.Create(ctx, "", "a", full())
	s.ok(err)
	first, second := Turn(1), toolTurn()
	second.Usage = chat.Usage{InputTokens: 7, OutputTokens: 1}
	s.ok(a.Append(ctx, first))
	s.ok(a.Append(ctx, second))
	b, err := s.store.Fork(ctx, a, "b")
	s.ok(err)
	if b.ID() == a.ID() || b.Name() != "b" || !b.Stored() || b.Dirty() || b.Temporary() {
		s.Errorf("the fork: %q, stored %v, dirty %v, temporary %v", b.Name(), b.Stored(), b.Dirty(), b.Temporary())
	}
	_, err = s.store.Fork(ctx, a, "b")
	s.is(err, session.ErrAliasInUse)
	s.ok(b.Append(ctx, Turn(3)))
	s.ok(a.Append(ctx, Turn(4)))
	s.live("the session", s.open(s.again(), "a"), first, second, Turn(4))
	again := s.open(s.again(), "b")
	s.live("the fork", again, first, second, Turn(3))
	s.same("settings", again.Settings(), full())
	s.same("pictures", again.DataURLs(), a.DataURLs())
	s.same("what the fork cost", again.Usage(), chat.Usage{})
}

func (s *suite) forkCompressed() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	for i := range 5 {
		s.ok(a.Append(ctx, Turn(i)))
	}
	for _, recap := range []string{"first", "second"} {
		_, err := a.Compress(ctx, session.Compaction{Keep: 1, Summarize: func(context.Context, []chat.Message) (string, chat.Usage, error) {
			return recap, chat.Usage{InputTokens: 100}, nil
		}})
		s.ok(err)
		s.ok(a.Append(ctx, Turn(5)))
	}
	_, err := s.store.Fork(ctx, a, "b")
	s.ok(err)
	b := s.open(s.again(), "b")
	s.same("messages", b.Messages(), a.Messages())
	s.same("messages that were replaced", b.CompactedMessages(), a.CompactedMessages())
	s.same("tokens", b.Tokens(), a.Tokens())
	for _, got := range []*session.Session{a, b} {
		for range 2 {
			_, err := got.Undo(ctx)
			s.ok(err)
		}
		_, err = got.Undo(ctx)
		s.same("code of taking a recap back", fault.CodeOf(err), fault.Usage)
	}
	s.same("after both were taken back", s.open(s.again(), "b").Messages(), s.open(s.again(), "a").Messages())
}

func (s *suite) forkTemporary() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, Turn(1)))
	b, err := s.store.Fork(ctx, a, "")
	s.ok(err)
	if b.Stored() || !b.Temporary() || !b.Dirty() {
		s.Errorf("the fork: stored %v, temporary %v, dirty %v", b.Stored(), b.Temporary(), b.Dirty())
	}
	s.ok(b.Append(ctx, Turn(2)))
	s.live("the fork", b, Turn(1), Turn(2))
	s.same("sessions", s.aliases(s.store, ""), []session.Alias{"a"})
	s.ok(b.Save(ctx))
	list := s.aliases(s.again(), "")
	i := slices.IndexFunc(list, session.Alias.AutoSaved)
	if i < 0 {
		s.Fatalf("the fork is not among %v", list)
	}
	s.live("the fork, opened again", s.open(s.again(), list[i]), Turn(1), Turn(2))
}

func (s *suite) move() {
	ctx := s.Context()
	a, other := s.open(s.store, "a"), s.open(s.store, "b")
	s.ok(a.Append(ctx, Turn(1)))
	s.ok(other.Save(ctx))
	_, err := s.store.Create(ctx, "coder", "b", session.Settings{})
	s.ok(err)
	s.is(s.store.Move(ctx, "", other.ID(), "coder"), session.ErrAliasInUse)
	s.is(s.store.Move(ctx, "", session.NewID(), "coder"), session.ErrNotFound)
	s.ok(s.store.Move(ctx, "", a.ID(), "coder"))
	s.is(a.Append(ctx, Turn(2)), session.ErrNotFound)
	_, err = s.store.Resolve(ctx, "", "a")
	s.is(err, session.ErrNotFound)
	_, err = s.store.Open(ctx, "", a.ID())
	s.is(err, session.ErrNotFound)
	for _, store := range []session.Store{s.store, s.again()} {
		id, err := store.Resolve(ctx, "coder", "a")
		s.ok(err)
		s.same("id", id, a.ID())
		moved, err := store.Open(ctx, "coder", id)
		s.ok(err)
		s.live("messages", moved, Turn(1))
		s.same("alias", moved.Alias(), session.Alias("a"))
	}
}
