package sessiontest

import (
	"context"
	"strings"

	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

// full has all settings.
func full() session.Settings {
	return session.Settings{
		Settings: chat.Settings{Model: "openai:gpt-4o", Sampling: chat.Sampling{Temperature: new(0.5), TopP: new(1.0), Effort: "high"}, EnabledTools: new("fs_ls, all: x"), EnabledMCPServers: new(""), AutoContinue: new(false), MaxAutoContinues: new(3), InjectTodoInstructions: new(true), ContinuationPrompt: new("go\n  on\n")}, SaveSession: new(true), CompressionThreshold: new(0),
		RoleName: "coder", AgentVariables: []session.Variable{{Name: "z", Value: "1"}, {Name: "a", Value: " \"x\"\n# y "}, {Name: "no", Value: ""}},
		AgentInstructions: new("- be\n- brief"),
	}
}

func (s *suite) turnsSurvive() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, toolTurn()))
	s.ok(a.Append(ctx, Turn(2)))
	b := s.open(s.again(), "a")
	s.same("id", b.ID(), a.ID())
	s.live("messages", b, toolTurn(), Turn(2))
	s.same("tokens", b.Tokens(), a.Tokens())
	s.same("images", b.DataURLs(), toolTurn().DataURLs)
	s.same("question", b.Request(session.Input{Role: role, User: chat.Text(chat.User, "?")}), append(messages(toolTurn(), Turn(2)), chat.Text(chat.User, "?")))
	if b.Dirty() {
		s.Error("a session is dirty when it is opened")
	}
}

func (s *suite) settingsSurvive() {
	ctx := s.Context()
	_, err := s.store.Create(ctx, "", "a", full())
	s.ok(err)
	b := s.open(s.again(), "a")
	s.same("settings", b.Settings(), full())
	b.Set(func(st *session.Settings) { st.Model = "openai:gpt-4o" })
	if b.Dirty() {
		s.Error("a setting that was set to what it is makes the session dirty")
	}
	b.Sync(func(st *session.Settings) { st.AgentVariables = nil })
	if b.Dirty() {
		s.Error("what follows from elsewhere makes the session dirty")
	}
	b.Set(func(st *session.Settings) { *st = session.Settings{Settings: chat.Settings{Model: "m"}} })
	if b.Verdict() != session.Write {
		s.Errorf("verdict %d after a change", b.Verdict())
	}
	s.ok(b.Save(ctx))
	s.same("settings", s.open(s.again(), "a").Settings(), session.Settings{Settings: chat.Settings{Model: "m"}})
}

func (s *suite) replacing() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, Turn(1)))
	s.ok(a.Append(ctx, toolTurn()))
	s.ok(a.Append(ctx, session.Turn{Mode: session.Continue, Reply: []chat.Message{chat.Text(chat.Assistant, " And more.")}}))
	want := messages(Turn(1), toolTurn())
	want[len(want)-1] = chat.Text(chat.Assistant, "Two files. And more.")
	s.same("continued", a.Messages(), want)
	s.same("continued, opened again", s.open(s.again(), "a").Messages(), want)

	other := []chat.Message{chat.Text(chat.Assistant, "None.")}
	s.ok(a.Append(ctx, session.Turn{Mode: session.Regenerate, User: toolTurn().User, Reply: other}))
	want = append(messages(Turn(1)), toolTurn().User, other[0])
	s.same("generated again", a.Messages(), want)
	s.same("generated again, opened again", s.open(s.again(), "a").Messages(), want)

	// A question whose answer was interrupted is not in the session yet.
	s.ok(a.Append(ctx, session.Turn{Mode: session.Regenerate, User: Turn(3).User, Reply: Turn(3).Reply}))
	want = append(append(want, Turn(3).User), Turn(3).Reply...)
	s.same("generated for the first time", a.Messages(), want)
}

func (s *suite) clear() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	a.Set(func(st *session.Settings) { st.Model = "m" })
	s.ok(a.Append(ctx, toolTurn()))
	s.ok(a.Clear(ctx))
	for _, got := range []*session.Session{a, s.open(s.again(), "a")} {
		if !got.Empty() || got.Tokens() != 0 || len(got.DataURLs()) != 0 || got.Settings().Model != "m" {
			s.Errorf("%d messages, %d tokens, images %v, model %q", len(got.Messages()), got.Tokens(), got.DataURLs(), got.Settings().Model)
		}
	}
	s.ok(a.Append(ctx, Turn(2)))
	s.live("begun anew", s.open(s.again(), "a"), Turn(2))
}

func (s *suite) compress() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	for i := range 5 {
		s.ok(a.Append(ctx, Turn(i)))
	}
	compress := func(reply string) {
		_, err := a.Compress(ctx, session.Compaction{Summarize: func(context.Context, []chat.Message) (string, chat.Usage, error) {
			return reply, chat.Usage{InputTokens: 100, OutputTokens: 10}, nil
		}})
		s.ok(err)
	}
	recap := func(text string, turns ...session.Turn) []chat.Message {
		want := messages(turns...)
		want[0] = chat.Text(chat.System, "Be brief.\n\nRecap of the conversation so far:\n"+text)
		return want
	}
	compress("first")
	s.same("compressed", a.Messages(), recap("first", Turn(3), Turn(4)))
	s.ok(a.Append(ctx, Turn(5)))
	compress("second")
	for _, got := range []*session.Session{a, s.open(s.again(), "a")} {
		s.same("usage", got.Usage(), chat.Usage{InputTokens: 200, OutputTokens: 20})
		s.same("compressed twice", got.Messages(), recap("second", Turn(4), Turn(5)))
		s.same("messages that were replaced", got.CompactedMessages(), messages(Turn(0), Turn(1), Turn(2), Turn(3))[len(role):])
	}
}

func (s *suite) twoAppend() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, Turn(1)))
	b := s.open(s.again(), "a")
	s.ok(b.Append(ctx, Turn(2)))
	s.ok(a.Append(ctx, Turn(3)))
	s.live("messages", a, Turn(1), Turn(2), Turn(3))
	s.live("what the other one knows", b, Turn(1), Turn(2))
	release, err := b.Acquire(ctx)
	s.ok(err)
	defer release()
	s.live("what it knows when it goes on", b, Turn(1), Turn(2), Turn(3))
	s.same("tokens", b.Tokens(), a.Tokens())
}

// twoCreate: the second process goes on with the session of the first.
func (s *suite) twoCreate() {
	ctx := s.Context()
	store := s.again()
	a := s.open(s.store, "a")
	b, err := store.OpenOrCreate(ctx, "", "a", func() (session.Settings, error) { return full(), nil })
	s.ok(err)
	b.Set(func(st *session.Settings) { st.Model = "other" })
	s.ok(a.Append(ctx, Turn(1)))
	s.ok(b.Append(ctx, Turn(2)))
	s.same("id", b.ID(), a.ID())
	s.live("messages", b, Turn(1), Turn(2))
	s.live("messages, opened again", s.open(s.again(), "a"), Turn(1), Turn(2))
	s.same("settings", s.open(s.again(), "a").Settings(), session.Settings{Settings: chat.Settings{Model: "other"}})
	s.same("sessions", s.aliases(store, ""), []session.Alias{"a"})
	if s.open(store, "a") != b {
		s.Error("the session is open twice")
	}
}

func (s *suite) twoChangeSettings() {
	ctx := s.Context()
	_, err := s.store.Create(ctx, "", "a", full())
	s.ok(err)
	a, b := s.open(s.store, "a"), s.open(s.again(), "a")
	a.Set(func(st *session.Settings) { st.Model, st.TopP = "a", nil })
	b.Set(func(st *session.Settings) { st.Temperature = new(0.1) })
	s.ok(a.Save(ctx))
	s.ok(b.Save(ctx))
	want := full()
	want.Model, want.TopP, want.Temperature = "a", nil, new(0.1)
	s.same("settings", s.open(s.again(), "a").Settings(), want)
	s.same("settings of the second", b.Settings(), want)
}

func (s *suite) pendingGoesBehind() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, Turn(1)))
	b := s.open(s.again(), "a")
	b.Hold()
	s.ok(b.Append(ctx, Turn(3)))
	s.ok(b.Append(ctx, session.Turn{Mode: session.Continue, Reply: []chat.Message{chat.Text(chat.Assistant, "!")}}))
	s.ok(a.Append(ctx, Turn(2)))
	s.ok(b.Save(ctx))
	want := messages(Turn(1), Turn(2), Turn(3))
	want[len(want)-1] = chat.Text(chat.Assistant, "answer 3!")
	s.same("messages", b.Messages(), want)
	s.same("messages, opened again", s.open(s.again(), "a").Messages(), want)
	s.same("tokens", b.Tokens(), s.open(s.again(), "a").Tokens())
}

func (s *suite) compressBeside() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	for i := range 4 {
		s.ok(a.Append(ctx, Turn(i)))
	}
	other := s.again()
	_, err := a.Compress(ctx, session.Compaction{Keep: 1, Summarize: func(_ context.Context, list []chat.Message) (string, chat.Usage, error) {
		s.ok(a.Append(ctx, Turn(4)))
		b := s.open(other, "a")
		s.ok(b.Append(ctx, Turn(5)))
		return "recap", chat.Usage{}, nil
	}})
	s.ok(err)
	for _, got := range []*session.Session{a, s.open(s.again(), "a")} {
		list := got.Messages()
		if !strings.HasSuffix(list[0].Text(), "\nrecap") {
			s.Errorf("instructions %q", list[0].Text())
		}
		s.same("what stays", list[len(role):], messages(Turn(3), Turn(4), Turn(5))[len(role):])
	}
}

func (s *suite) deletedElsewhere() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, Turn(1)))
	s.ok(s.again().Delete(ctx, "", a.ID()))
	_, err := a.Acquire(ctx)
	s.is(err, session.ErrNotFound)
	_, err = s.store.Open(ctx, "", a.ID())
	s.is(err, session.ErrNotFound)
	b := s.open(s.store, "a")
	if b == a || !b.Empty() {
		s.Error("a deleted session is back")
	}
	s.ok(b.Append(ctx, Turn(2)))
	s.live("messages", s.open(s.again(), "a"), Turn(2))
}
