// Package sessiontest is the conformance suite of session stores: what every
// [session.Store] has to do, and what sessions do in any of them.
package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

// Run runs the suite. newStore returns an empty store. again returns another store over
// the same data, as another process would have it; nil leaves those tests out.
func Run(t *testing.T, newStore func(t *testing.T, o session.Options) session.Store, again func(t *testing.T, s session.Store) session.Store) {
	for _, tt := range []struct {
		name  string
		test  func(s *suite)
		again bool // needs a second store
	}{
		{"create", (*suite).create, false},
		{"open_or_create", (*suite).openOrCreate, false},
		{"initial_settings_fail", (*suite).initialFails, false},
		{"unknown", (*suite).unknown, false},
		{"scopes", (*suite).scopes, false},
		{"rename", (*suite).rename, false},
		{"rename_before_it_is_stored", (*suite).renameUnstored, false},
		{"delete", (*suite).delete, false},
		{"list", (*suite).list, false},
		{"shared_by_id", (*suite).sharedByID, false},
		{"shared_by_alias", (*suite).sharedByAlias, false},
		{"temporary", (*suite).temporary, false},
		{"temporary_in_one_second", (*suite).temporaryInOneSecond, false},
		{"names_by_itself", (*suite).autoName, false},
		{"written_until_the_user_decides", (*suite).attended, true},
		{"taken_back", (*suite).takenBack, true},
		{"held", (*suite).held, true},
		{"never_saved", (*suite).neverSaved, false},
		{"forced", (*suite).forced, false},
		{"cancelled_context", (*suite).cancelled, false},
		{"concurrent_turns", (*suite).concurrentTurns, false},
		{"acquire", (*suite).acquire, false},
		{"turns_survive", (*suite).turnsSurvive, true},
		{"settings_survive", (*suite).settingsSurvive, true},
		{"continue_and_regenerate", (*suite).replacing, true},
		{"clear", (*suite).clear, true},
		{"undo", (*suite).undo, true},
		{"undo_what_another_went_on_with", (*suite).undoBeside, true},
		{"continuations", (*suite).continuations, true},
		{"fork", (*suite).fork, true},
		{"fork_of_a_compressed_session", (*suite).forkCompressed, true},
		{"fork_without_a_name", (*suite).forkTemporary, true},
		{"move", (*suite).move, true},
		{"owner_of_a_new_session", (*suite).ownerOfNew, true},
		{"claim", (*suite).claim, true},
		{"claimed_by_the_first_change", (*suite).claimedByChange, true},
		{"claimed_by_another_first", (*suite).claimedByAnother, true},
		{"owner_of_a_fork", (*suite).ownerOfFork, true},
		{"two_begin_one_name", (*suite).twoOwnersBegin, true},
		{"compress", (*suite).compress, true},
		{"two_append", (*suite).twoAppend, true},
		{"two_create", (*suite).twoCreate, true},
		{"two_change_settings", (*suite).twoChangeSettings, true},
		{"pending_goes_behind", (*suite).pendingGoesBehind, true},
		{"places", (*suite).places, true},
		{"places_of_older_records", (*suite).olderPlaces, false},
		{"compress_while_another_appends", (*suite).compressBeside, true},
		{"deleted_elsewhere", (*suite).deletedElsewhere, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.again && again == nil {
				t.Skip("the data do not outlive the store")
			}
			s := &suite{T: t, clock: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)}
			s.options = session.Options{
				Now:  func() time.Time { return s.clock },
				Warn: func(_ context.Context, err error) { t.Errorf("warning: %v", err) },
			}
			s.store = newStore(t, s.options)
			s.again = func() session.Store { return again(t, s.store) }
			tt.test(s)
		})
	}
}

type suite struct {
	*testing.T
	clock   time.Time
	options session.Options
	store   session.Store
	again   func() session.Store
}

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) same(what string, got, want any) {
	s.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func (s *suite) is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("the error is %v, want %v", err, want)
	}
}

var role = []chat.Message{chat.Text(chat.System, "Be brief."), chat.Text(chat.User, "1?"), chat.Text(chat.Assistant, "2.")}

// Turn returns a turn of a question and an answer, with its number in both.
func Turn(n int) session.Turn {
	return session.Turn{Role: role, User: chat.Text(chat.User, fmt.Sprint("question ", n)), Reply: []chat.Message{chat.Text(chat.Assistant, fmt.Sprint("answer ", n))}}
}

// toolTurn returns a turn with two rounds of tool calls.
func toolTurn() session.Turn {
	call := func(id string) chat.ToolCall {
		return chat.ToolCall{ID: id, Name: "ls", Arguments: `{"path":"<a>"}`, Signature: "s" + id}
	}
	result := func(id string, failed bool) chat.Message {
		return chat.Message{Role: chat.ToolRole, ToolCallID: id, ToolName: "ls", Failed: failed, Parts: []chat.Part{{Type: chat.TextPart, Text: "x\ny"}}}
	}
	return session.Turn{
		Role: role,
		User: chat.Message{Role: chat.User, Parts: []chat.Part{{Type: chat.TextPart, Text: "look"}, {Type: chat.ImagePart, URL: "data:image/png;base64,AA=="}}},
		Reply: []chat.Message{
			{Role: chat.Assistant, Parts: []chat.Part{{Type: chat.ReasoningPart, Text: "hm", Signature: "sig"}, {Type: chat.TextPart, Text: "Let me see."}}, ToolCalls: []chat.ToolCall{call("1"), call("2")}},
			result("1", false), result("2", true),
			{Role: chat.Assistant, ToolCalls: []chat.ToolCall{call("3")}},
			result("3", false),
			chat.Text(chat.Assistant, "Two files."),
		},
		DataURLs: map[string]string{session.DataURLHash("data:image/png;base64,AA=="): "/home/me/a b.png"},
	}
}

// messages returns the live messages after turns, begun with the role messages.
func messages(turns ...session.Turn) []chat.Message {
	list := append([]chat.Message(nil), role...)
	for _, t := range turns {
		list = append(append(list, t.User), t.Reply...)
	}
	return list
}

func (s *suite) live(what string, got *session.Session, turns ...session.Turn) {
	s.Helper()
	s.same(what, got.Messages(), messages(turns...))
}

func none() (session.Settings, error) { return session.Settings{}, nil }

func (s *suite) open(store session.Store, alias session.Alias) *session.Session {
	s.Helper()
	got, err := store.OpenOrCreate(s.Context(), "", alias, none)
	s.ok(err)
	return got
}

func (s *suite) aliases(store session.Store, scope session.Scope) []session.Alias {
	s.Helper()
	list, err := store.List(s.Context(), scope)
	s.ok(err)
	aliases := []session.Alias{}
	for _, m := range list {
		aliases = append(aliases, m.Alias)
	}
	return aliases
}

func (s *suite) create() {
	ctx := s.Context()
	a, err := s.store.Create(ctx, "", "a", session.Settings{Settings: chat.Settings{Model: "m"}})
	s.ok(err)
	if !a.Stored() || a.Dirty() || a.Temporary() || a.Name() != "a" || a.Settings().Model != "m" || !a.Empty() {
		s.Errorf("a new session: stored %v, dirty %v, temporary %v, %q, %+v", a.Stored(), a.Dirty(), a.Temporary(), a.Name(), a.Settings())
	}
	_, err = s.store.Create(ctx, "", "a", session.Settings{})
	s.is(err, session.ErrAliasInUse)
	nameless, err := s.store.Create(ctx, "", "", session.Settings{})
	s.ok(err)
	if nameless.ID() == a.ID() || nameless.Name() != string(nameless.ID()) {
		s.Errorf("without an alias a session is called %q, its id is %s", nameless.Name(), nameless.ID())
	}
	s.same("sessions", s.aliases(s.store, ""), []session.Alias{"a", ""})
}

func (s *suite) openOrCreate() {
	a := s.open(s.store, "a")
	if a.Stored() || a.Name() != "a" || a.Temporary() {
		s.Errorf("stored %v, name %q, temporary %v", a.Stored(), a.Name(), a.Temporary())
	}
	s.same("sessions before the first turn", s.aliases(s.store, ""), []session.Alias{})
	s.ok(a.Append(s.Context(), Turn(1)))
	if !a.Stored() || a.Dirty() {
		s.Errorf("after a turn: stored %v, dirty %v", a.Stored(), a.Dirty())
	}
	s.same("sessions", s.aliases(s.store, ""), []session.Alias{"a"})
	id, err := s.store.Resolve(s.Context(), "", "a")
	s.ok(err)
	s.same("id", id, a.ID())
	if s.open(s.store, "a") != a {
		s.Error("an open session was opened a second time")
	}
	s.live("messages", a, Turn(1))
}

func (s *suite) initialFails() {
	sorry := errors.New("sorry")
	_, err := s.store.OpenOrCreate(s.Context(), "", "a", func() (session.Settings, error) { return session.Settings{}, sorry })
	s.is(err, sorry)
	if s.open(s.store, "a") == nil {
		s.Error("the alias cannot be used any more")
	}
}

func (s *suite) unknown() {
	ctx, id := s.Context(), session.NewID()
	_, err := s.store.Open(ctx, "", id)
	s.is(err, session.ErrNotFound)
	if fault.CodeOf(err) != fault.NotFound {
		s.Errorf("the code is %s", fault.CodeOf(err))
	}
	_, err = s.store.Resolve(ctx, "", "a")
	s.is(err, session.ErrNotFound)
	s.is(s.store.Delete(ctx, "", id), session.ErrNotFound)
	s.is(s.store.Rename(ctx, "", id, "a"), session.ErrNotFound)
	s.same("sessions of nobody", s.aliases(s.store, "nobody"), []session.Alias{})
}

func (s *suite) scopes() {
	ctx := s.Context()
	a, err := s.store.Create(ctx, "", "work", session.Settings{})
	s.ok(err)
	b, err := s.store.Create(ctx, "coder", "work", session.Settings{})
	s.ok(err)
	s.ok(b.Append(ctx, Turn(1)))
	if !a.Empty() || a.ID() == b.ID() || b.Scope() != "coder" {
		s.Error("sessions of two scopes are one")
	}
	_, err = s.store.Open(ctx, "", b.ID())
	s.is(err, session.ErrNotFound)
	s.ok(s.store.Delete(ctx, "", a.ID()))
	s.same("global sessions", s.aliases(s.store, ""), []session.Alias{})
	s.same("sessions of the agent", s.aliases(s.store, "coder"), []session.Alias{"work"})
}

func (s *suite) rename() {
	ctx := s.Context()
	a, err := s.store.Create(ctx, "", "a", session.Settings{})
	s.ok(err)
	_, err = s.store.Create(ctx, "", "b", session.Settings{})
	s.ok(err)
	s.is(s.store.Rename(ctx, "", a.ID(), "b"), session.ErrAliasInUse)
	s.is(a.Rename(ctx, "b"), session.ErrAliasInUse)
	s.same("name", a.Name(), "a")
	s.ok(s.store.Rename(ctx, "", a.ID(), "c"))
	s.same("name", a.Name(), "c")
	s.ok(a.Rename(ctx, "d"))
	s.ok(a.Rename(ctx, "d"))
	s.same("sessions", s.aliases(s.store, ""), []session.Alias{"b", "d"})
	for _, gone := range []session.Alias{"a", "c"} {
		_, err = s.store.Resolve(ctx, "", gone)
		s.is(err, session.ErrNotFound)
	}
	id, err := s.store.Resolve(ctx, "", "d")
	s.ok(err)
	s.same("id", id, a.ID())
}

func (s *suite) renameUnstored() {
	ctx := s.Context()
	_, err := s.store.Create(ctx, "", "taken", session.Settings{})
	s.ok(err)
	a := s.open(s.store, "a")
	s.ok(a.Rename(ctx, "taken"))
	s.is(a.Append(ctx, Turn(1)), session.ErrAliasInUse) // it was asked for by name: it must not end up elsewhere
	s.ok(a.Rename(ctx, "free"))
	s.ok(a.Save(ctx))
	s.live("messages", a, Turn(1))
	s.same("sessions", s.aliases(s.store, ""), []session.Alias{"free", "taken"})
	if s.open(s.store, "a") == a {
		s.Error("a session is still found under the name it had before it was stored")
	}
}

func (s *suite) delete() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, Turn(1)))
	s.ok(s.store.Delete(ctx, "", a.ID()))
	s.same("sessions", s.aliases(s.store, ""), []session.Alias{})
	s.is(s.store.Delete(ctx, "", a.ID()), session.ErrNotFound)
	s.is(a.Append(ctx, Turn(2)), session.ErrNotFound)
	s.live("what is still in memory", a, Turn(1), Turn(2))
	b := s.open(s.store, "a")
	if b == a || !b.Empty() || b.ID() == a.ID() {
		s.Error("a deleted session is back")
	}
	s.ok(b.Append(ctx, Turn(3)))
	s.live("messages", b, Turn(3))
}

func (s *suite) list() {
	ctx := s.Context()
	for _, alias := range []session.Alias{"b", "Z", "ä c", "a.b"} {
		_, err := s.store.Create(ctx, "", alias, session.Settings{})
		s.ok(err)
	}
	s.same("sessions", s.aliases(s.store, ""), []session.Alias{"Z", "a.b", "b", "ä c"})
	list, err := s.store.List(ctx, "")
	s.ok(err)
	for _, m := range list {
		got, err := s.store.Open(ctx, "", m.ID)
		s.ok(err)
		s.same("alias", got.Alias(), m.Alias)
		if m.Modified.IsZero() {
			s.Errorf("%q has no time", m.Alias)
		}
	}
}

func (s *suite) sharedByID() {
	a, err := s.store.Create(s.Context(), "", "a", session.Settings{})
	s.ok(err)
	var wg sync.WaitGroup
	opened := make([]*session.Session, 8)
	for i := range opened {
		wg.Go(func() { opened[i], _ = s.store.Open(context.WithoutCancel(s.Context()), "", a.ID()) })
	}
	wg.Wait()
	for _, o := range opened {
		if o != a {
			s.Fatal("an open session was opened a second time")
		}
	}
}

func (s *suite) sharedByAlias() {
	var wg sync.WaitGroup
	opened := make([]*session.Session, 8)
	for i := range opened {
		wg.Go(func() {
			opened[i], _ = s.store.OpenOrCreate(context.WithoutCancel(s.Context()), "", "new", none)
		})
	}
	wg.Wait()
	for _, o := range opened {
		if o != opened[0] || o == nil {
			s.Fatal("a new session was made several times")
		}
	}
}

func (s *suite) temporary() {
	ctx := s.Context()
	a := s.store.Temp("", session.Settings{})
	s.ok(a.Append(ctx, Turn(1)))
	if a.Verdict() != session.Discard || a.Stored() || !a.Dirty() || a.Name() != session.TempName || !a.Temporary() {
		s.Errorf("verdict %d, stored %v, dirty %v, name %q", a.Verdict(), a.Stored(), a.Dirty(), a.Name())
	}
	b := s.store.Temp("", session.Settings{SaveSession: new(true)})
	s.ok(b.Append(ctx, Turn(2)))
	if !b.Stored() || b.Dirty() || b.Name() != session.TempName {
		s.Errorf("stored %v, dirty %v, name %q", b.Stored(), b.Dirty(), b.Name())
	}
	alias := session.Alias(s.clock.Local().Format("20060102T150405"))
	s.same("sessions", s.aliases(s.store, ""), []session.Alias{alias})
	if !alias.AutoSaved() {
		s.Errorf("%q does not look as if Loki had made it", alias)
	}
	s.ok(b.Rename(ctx, "kept"))
	if b.Temporary() || b.Name() != "kept" {
		s.Errorf("renamed: temporary %v, name %q", b.Temporary(), b.Name())
	}
	s.ok(a.Save(ctx))
	s.same("sessions", s.aliases(s.store, ""), []session.Alias{alias, "kept"})
}

func (s *suite) temporaryInOneSecond() {
	for range 3 {
		s.ok(s.store.Temp("", session.Settings{SaveSession: new(true)}).Append(s.Context(), Turn(1)))
	}
	seen := make(map[session.Alias]bool)
	for _, alias := range s.aliases(s.store, "") {
		if !alias.AutoSaved() {
			s.Errorf("alias %q", alias)
		}
		seen[alias] = true
	}
	if len(seen) != 3 {
		s.Errorf("%d of three sessions are stored", len(seen))
	}
}

func (s *suite) autoName() {
	ctx := s.Context()
	a := s.store.Temp("", session.Settings{SaveSession: new(true)})
	if a.NeedsName() {
		s.Error("an empty session needs a name")
	}
	s.ok(a.Append(ctx, Turn(1)))
	sorry := errors.New("sorry")
	s.is(a.AutoName(ctx, func(context.Context, string) (string, chat.Usage, error) { return "", chat.Usage{}, sorry }), sorry)
	if !a.NeedsName() {
		s.Error("after a failure no name is needed any more")
	}
	s.ok(a.AutoName(ctx, func(_ context.Context, text string) (string, chat.Usage, error) {
		s.same("what the model is asked", text, "USER: question 1\nASSISTANT: answer 1")
		return "<think>hm</think> Garden plans!\n", chat.Usage{InputTokens: 20, OutputTokens: 3}, nil
	}))
	if a.NeedsName() || a.Title() != "Garden-plans" || a.Name() != session.TempName {
		s.Errorf("needs a name: %v, title %q, name %q", a.NeedsName(), a.Title(), a.Name())
	}
	s.ok(a.AutoName(ctx, func(context.Context, string) (string, chat.Usage, error) {
		s.Error("the model is asked again")
		return "", chat.Usage{}, nil
	}))
	s.same("usage", a.Usage(), chat.Usage{InputTokens: 20, OutputTokens: 3})
	s.same("sessions", s.aliases(s.store, ""), []session.Alias{session.Alias(s.clock.Local().Format("20060102T150405") + "-Garden-plans")})
	named := s.open(s.store, "named")
	s.ok(named.Append(ctx, Turn(1)))
	if named.NeedsName() {
		s.Error("a session with a name needs one")
	}
}

func (s *suite) attended() {
	ctx := s.Context()
	a := s.store.Temp("", session.Settings{})
	a.Attend(true)
	s.ok(a.Append(ctx, Turn(1)))
	s.ok(a.Append(ctx, toolTurn()))
	if a.Verdict() != session.Query || !a.Stored() || !a.Undecided() {
		s.Errorf("verdict %d, stored %v, undecided %v", a.Verdict(), a.Stored(), a.Undecided())
	}
	s.live("messages of a process that died", s.open(s.again(), a.Alias()), Turn(1), toolTurn())
	s.ok(a.Save(ctx))
	if a.Verdict() != session.Discard || !a.Stored() || a.Undecided() {
		s.Errorf("after saving: verdict %d, stored %v, undecided %v", a.Verdict(), a.Stored(), a.Undecided())
	}
	s.ok(a.Append(ctx, Turn(3)))
	s.live("messages", s.open(s.again(), a.Alias()), Turn(1), toolTurn(), Turn(3))

	b := s.open(s.store, "b")
	b.Attend(true)
	s.ok(b.Append(ctx, Turn(1)))
	if b.Verdict() != session.Discard || !b.Stored() || b.Dirty() {
		s.Errorf("with a name: verdict %d, stored %v, dirty %v", b.Verdict(), b.Stored(), b.Dirty())
	}
}

func (s *suite) takenBack() {
	ctx := s.Context()
	a := s.store.Temp("", session.Settings{})
	a.Attend(true)
	s.ok(a.TakeBack(ctx)) // nothing
	s.ok(a.Append(ctx, Turn(1)))
	if !a.Stored() || !a.Dirty() {
		s.Errorf("stored %v, dirty %v", a.Stored(), a.Dirty())
	}
	s.ok(a.TakeBack(ctx))
	s.same("sessions", s.aliases(s.store, ""), []session.Alias{})

	// What has a name stays, and so does what was saved at the user's wish.
	b := s.open(s.store, "b")
	b.Attend(true)
	s.ok(b.Append(ctx, Turn(1)))
	s.ok(b.TakeBack(ctx))
	s.live("with a name", s.open(s.again(), "b"), Turn(1))
	c := s.store.Temp("", session.Settings{})
	c.Attend(true)
	s.ok(c.Append(ctx, Turn(1)))
	s.ok(c.Save(ctx))
	s.ok(c.Append(ctx, Turn(2)))
	s.ok(c.TakeBack(ctx))
	s.live("saved before", s.open(s.again(), c.Alias()), Turn(1), Turn(2))

	// What another process has continued stays, too.
	d := s.store.Temp("", session.Settings{})
	d.Attend(true)
	s.ok(d.Append(ctx, Turn(1)))
	s.ok(s.open(s.again(), d.Alias()).Append(ctx, Turn(3)))
	s.same("code", fault.CodeOf(d.TakeBack(ctx)), fault.Usage)
	s.live("continued", s.open(s.again(), d.Alias()), Turn(1), Turn(3))
}

func (s *suite) held() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	a.Set(func(st *session.Settings) { st.SaveSession = new(true) })
	a.Hold()
	s.ok(a.Append(ctx, Turn(1)))
	if a.Stored() || a.Verdict() != session.Write {
		s.Errorf("stored %v, verdict %d", a.Stored(), a.Verdict())
	}
	s.ok(a.Save(ctx))
	s.live("saved", s.open(s.again(), "a"), Turn(1))
	a.Hold()
	s.ok(a.Append(ctx, Turn(2)))
	a.Drop()
	s.live("dropped", a, Turn(1))
	s.ok(a.Append(ctx, Turn(3)))
	s.live("not held any more", s.open(s.again(), "a"), Turn(1), Turn(3))
}

func (s *suite) neverSaved() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	a.Set(func(st *session.Settings) { st.SaveSession = new(false) })
	s.ok(a.Append(ctx, Turn(1)))
	if a.Verdict() != session.Discard || a.Stored() {
		s.Errorf("verdict %d, stored %v", a.Verdict(), a.Stored())
	}
	s.live("messages in memory", a, Turn(1))
}

func (s *suite) forced() {
	ctx := s.Context()
	a := s.open(s.store, "a")
	a.Set(func(st *session.Settings) { st.SaveSession = new(false) })
	a.ForceSave()
	s.ok(a.Append(ctx, Turn(1)))
	if !a.Stored() || *a.Settings().SaveSession {
		s.Errorf("stored %v, save_session %v", a.Stored(), *a.Settings().SaveSession)
	}
}

func (s *suite) cancelled() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	a := s.open(s.store, "a")
	s.ok(a.Append(ctx, Turn(1)))
	s.ok(a.Append(ctx, Turn(2)))
	if a.Dirty() {
		s.Error("a turn that was paid for has not been saved")
	}
}

func (s *suite) concurrentTurns() {
	ctx := s.Context()
	a, err := s.store.Create(ctx, "", "a", session.Settings{})
	s.ok(err)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			one, err := s.store.Open(ctx, "", a.ID())
			if err == nil {
				err = one.Append(ctx, session.Turn{User: Turn(i).User, Reply: Turn(i).Reply})
			}
			if err != nil {
				s.Error(err)
			}
		})
	}
	wg.Wait()
	list := a.Messages()
	if len(list) != 200 {
		s.Fatalf("%d messages, want 200", len(list))
	}
	for i := 0; i < len(list); i += 2 {
		var q, r int
		_, _ = fmt.Sscanf(list[i].Text(), "question %d", &q)
		_, _ = fmt.Sscanf(list[i+1].Text(), "answer %d", &r)
		if q != r {
			s.Fatalf("a turn was torn: %q, %q", list[i].Text(), list[i+1].Text())
		}
	}
}

func (s *suite) acquire() {
	synctest.Test(s.T, func(t *testing.T) {
		a := s.store.Temp("", session.Settings{})
		release, err := a.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("somebody else has it, but the error is %v", err)
		}
		got := make(chan error)
		go func() {
			second, err := a.Acquire(t.Context())
			if err == nil {
				second()
			}
			got <- err
		}()
		synctest.Wait()
		release()
		release() // harmless
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	})
}
