package sessiontest

import (
	"context"
	"time"

	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

// places changes a conversation in all ways, with texts that repeat: each change has a place of its own.
func (s *suite) places() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	said := func(id, question string) session.Turn {
		return session.Turn{ID: id, User: chat.Text(chat.User, question), Reply: []chat.Message{chat.Text(chat.Assistant, "ok")}}
	}
	interrupt := func(id, question string) {
		d, err := a.Begin(ctx, session.Turn{ID: id, User: chat.Text(chat.User, question)})
		s.ok(err)
		s.ok(d.Interrupt(ctx, "", chat.Usage{}))
	}
	at := func(what string, place int, id string, want session.Trace) {
		s.Helper()
		for _, seen := range []*session.Session{a, s.open(s.again(), "a")} {
			got := seen.Trace(id)
			if n := len(got.Reply); got.Answered && n != 1 {
				s.Fatalf("%s: %d messages of the reply", what, n)
			}
			got.Reply = nil
			s.same(what, got, want)
			s.same(what+": the place", seen.Place(), place)
		}
	}
	s.same("the place of an empty session", a.Place(), 0)
	s.ok(a.Append(ctx, said("t1", "go")))
	at("an answered turn", 1, "t1", session.Trace{Found: true, Place: 1, Last: true, Answered: true})
	at("a turn without an id", 1, "", session.Trace{})
	interrupt("t2", "go")
	at("an interrupted turn", 2, "t2", session.Trace{Found: true, Place: 2, Last: true, Messages: 2})
	s.ok(a.Append(ctx, said("t3", "go")))
	at("an interrupted turn before another one", 3, "t2", session.Trace{Found: true, Place: 2})
	_, err := a.Undo(ctx)
	s.ok(err)
	at("an interrupted turn before one that was undone", 4, "t2", session.Trace{Found: true, Place: 2})
	s.ok(a.Append(ctx, session.Turn{ID: "t2", Mode: session.Regenerate, Reply: []chat.Message{chat.Text(chat.Assistant, "ok")}}))
	at("a turn that was answered later", 5, "t2", session.Trace{Found: true, Place: 5, Last: true, Answered: true})
	for range 3 {
		s.ok(a.Append(ctx, said("", "go")))
	}
	_, err = a.Compress(ctx, session.Compaction{Summarize: func(context.Context, []chat.Message) (string, chat.Usage, error) { return "recap", chat.Usage{}, nil }})
	s.ok(err)
	at("a compressed session", 8, "t1", session.Trace{Found: true, Place: 1, Answered: true})
	s.ok(a.Clear(ctx))
	at("an empty session in which something was said", 9, "t2", session.Trace{Found: true, Place: 5, Answered: true})
}

// olderPlaces looks for turns of which no id is on record.
func (s *suite) olderPlaces() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	question, other := chat.Text(chat.User, "go"), chat.Text(chat.User, "stop")
	is := func(what string, user chat.Message, messages int, unchanged bool) {
		s.Helper()
		t, same := a.TraceSince(s.clock.Add(-time.Second), user)
		s.same(what, []any{t.Messages, same}, []any{messages, unchanged})
	}
	s.ok(a.Append(ctx, session.Turn{User: question, Reply: []chat.Message{chat.Text(chat.Assistant, "ok")}}))
	s.clock = s.clock.Add(time.Hour)
	is("nothing since", question, 0, true)
	d, err := a.Begin(ctx, session.Turn{User: question})
	s.ok(err)
	s.ok(d.Interrupt(ctx, "", chat.Usage{}))
	is("interrupted", question, 2, true)
	is("another question interrupted", other, 0, false)
	s.ok(a.Append(ctx, session.Turn{User: other, Reply: []chat.Message{chat.Text(chat.Assistant, "ok")}}))
	is("continued", question, 0, false)
	d, err = a.Begin(ctx, session.Turn{User: question})
	s.ok(err)
	s.ok(d.Interrupt(ctx, "", chat.Usage{}))
	is("interrupted after another turn", question, 2, false)
}
