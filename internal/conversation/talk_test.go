package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"loki/internal/agent/role"
	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/conversation/session/memstore"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

// actor is a model that plays replies, one a call, and keeps the requests. A reply is a text, calls, an
// error, or a text that the user interrupts, see [stopped]. Without replies it says ok.
type actor struct {
	replies  []any
	requests []provider.Request
	stop     context.CancelFunc // of the user
}

// stopped is a text after which the user interrupts.
type stopped string

func (a *actor) ChatModel(_ context.Context, id string) (engine.Model, error) {
	if !strings.HasPrefix(id, "test:") {
		return engine.Model{}, fault.New(fault.NotFound, "no model %s", id)
	}
	return engine.Model{ID: id, Provider: a, SupportsTools: true}, nil
}

func (a *actor) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	a.requests = append(a.requests, req)
	next := any("ok")
	if len(a.replies) > 0 {
		next, a.replies = a.replies[0], a.replies[1:]
	}
	return func(yield func(provider.Chunk, error) bool) {
		if err, ok := next.(error); ok {
			yield(provider.Chunk{}, err)
			return
		}
		if calls, ok := next.([]chat.ToolCall); ok {
			for _, call := range calls {
				yield(provider.Chunk{Kind: provider.ToolCall, ToolCall: call}, nil)
			}
			yield(provider.Chunk{Kind: provider.End, Stop: chat.StopToolCalls}, nil)
			return
		}
		text, complete := next.(string)
		if !complete {
			text = string(next.(stopped))
		}
		if !yield(provider.Chunk{Kind: provider.Text, Text: text}, nil) {
			return
		}
		if !complete {
			a.stop()
			yield(provider.Chunk{}, context.Cause(ctx))
			return
		}
		yield(provider.Chunk{Kind: provider.End, Stop: chat.StopEnd, Usage: chat.Usage{InputTokens: 10, OutputTokens: 1}}, nil)
	}
}

// sent returns the messages of request n, from 0; negative numbers count from the last.
func (a *actor) sent(n int) string {
	if n < 0 {
		n += len(a.requests)
	}
	return said(a.requests[n].Messages)
}

// said returns messages as one line.
func said(messages []chat.Message) string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, string(m.Role)+" "+m.Text())
	}
	return strings.Join(texts, " | ")
}

// room is where a user talks with an actor.
type room struct {
	*conversation.Conversation
	t       *testing.T
	actor   *actor
	events  *eventtest.Collector
	service *conversation.Service
	asker   *asktest.Scripted
}

// roles are those of the tests.
var roles = fstest.MapFS{
	"create-title.md": {Data: []byte("Make a title.")},
	"poet.md":         {Data: []byte("Answer in verse.")},
	"cook.md":         {Data: []byte("---\ntemperature: 0.2\n---\nCook.")},
}

// enter begins an interactive conversation with an actor. The user gives answers.
func enter(t *testing.T, a *actor, answers ...string) *room {
	t.Helper()
	e, err := engine.New(engine.Options{Models: a})
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(session.Options{})
	r := &room{t: t, actor: a, events: new(eventtest.Collector), asker: asktest.NewScripted(answers...), service: &conversation.Service{
		Engine: e, Sessions: func() (session.Store, error) { return store, nil },
		Roles:    func() role.Library { return role.Library{Dir: t.TempDir(), Bundled: roles} },
		Settings: chat.Settings{Model: "test:a"}, InputLimit: func(string) int { return 0 },
		Tools: func(context.Context, conversation.Wanted) (conversation.Kit, func(), error) {
			return conversation.Kit{Calling: true}, func() {}, nil
		},
	}}
	r.Conversation = r.begin()
	return r
}

// begin begins another conversation of the same service.
func (r *room) begin() *conversation.Conversation {
	return r.service.Begin(conversation.Options{
		Interactive: true, Caller: conversation.Caller{Events: event.NewScope(r.events, event.Source{}, nil), Asker: r.asker},
	})
}

// tell tells a line, of which an interruption is no failure.
func (r *room) tell(text string) conversation.Answer {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	r.actor.stop = cancel
	q := question(text)
	q.Text = text
	a, err := r.Tell(ctx, q)
	if err != nil && fault.CodeOf(err) != fault.Canceled {
		r.t.Fatal(err)
	}
	return a
}

// enterSession enters a session.
func (r *room) enterSession(name string) {
	r.t.Helper()
	if err := r.UseSession(r.t.Context(), name); err != nil {
		r.t.Fatal(err)
	}
}

// has checks the messages of the session.
func (r *room) has(want string) {
	r.t.Helper()
	if got := said(r.Session().Messages()); got != want {
		r.t.Errorf("the session has\n%s\nwant\n%s", got, want)
	}
}

// sends checks the last request.
func (r *room) sends(want string) {
	r.t.Helper()
	if got := r.actor.sent(-1); got != want {
		r.t.Errorf("sent\n%s\nwant\n%s", got, want)
	}
}

const mark = "\n\n" + session.Interrupted

func TestEachLineStandsAlone(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{replies: []any{"one", "two"}})
	r.tell("first")
	r.tell("second")
	r.sends("user second")
	last, ok := r.Last()
	if !ok || last.Text != "second" || last.Reply != "two" || !last.Continuous || *r.LastReply() != "two" {
		t.Errorf("%+v, %v", last, ok)
	}
	turn, all := r.Spending()
	if turn.InputTokens != 10 || all.InputTokens != 20 {
		t.Errorf("spent %+v and %+v", turn, all)
	}
}

func TestContinueOutsideOfSessions(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{replies: []any{"one ", "two ", "three"}})
	if _, err := r.Continue(t.Context()); fault.CodeOf(err) != fault.Usage {
		t.Errorf("before the first question: %v", err)
	}
	r.tell("count")
	for _, want := range []string{"user count | assistant one ", "user count | assistant one two "} {
		if _, err := r.Continue(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.sends(want)
	}
	if got := *r.LastReply(); got != "three" {
		t.Errorf("the last reply is %q", got)
	}
}

func TestContinueInASession(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{replies: []any{stopped("one"), " two", "done"}})
	r.enterSession("s")
	r.tell("count")
	r.has("user count | assistant one" + mark)
	if _, err := r.Continue(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.sends("user count | assistant one")
	r.has("user count | assistant one two")
	r.tell("more")
	r.sends("user count | assistant one two | user more")
}

// TestInterruptedAnswer: what came stays, and the next line goes on from it.
func TestInterruptedAnswer(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{replies: []any{stopped("half"), "again", "next"}})
	if a := r.tell("write"); a.Text != "half" {
		t.Errorf("answer %q", a.Text)
	}
	if last, _ := r.Last(); last.Reply != "half" || !last.Continuous {
		t.Errorf("%+v", last)
	}
	if _, err := r.Regenerate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.sends("user write")

	r = enter(t, &actor{replies: []any{stopped("half"), "next"}})
	r.enterSession("s")
	r.tell("write")
	r.tell("go on")
	r.sends("user write | assistant half" + mark + " | user go on")
}

func TestRegenerate(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{replies: []any{"one", "two", &provider.Error{Kind: provider.BadReply, Msg: "boom"}, "three", stopped("fo"), "five"}})
	r.enterSession("s")
	r.tell("q")
	again := func() error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.actor.stop = cancel
		_, err := r.Regenerate(ctx)
		return err
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
	r.sends("user q")
	r.has("user q | assistant two")

	// A question that failed is not in the session: its answer becomes a turn of its own.
	if _, err := r.Tell(t.Context(), question("q")); err == nil {
		t.Fatal("no error")
	}
	r.has("user q | assistant two")
	if err := again(); err != nil {
		t.Fatal(err)
	}
	r.has("user q | assistant two | user q | assistant three")

	// An interruption keeps what came.
	if err := again(); fault.CodeOf(err) != fault.Canceled {
		t.Fatal(err)
	}
	r.has("user q | assistant two | user q | assistant fo" + mark)
	if err := again(); err != nil {
		t.Fatal(err)
	}
	r.sends("user q | assistant two | user q")
	r.has("user q | assistant two | user q | assistant five")
}

// TestRegenerateUnderTheRole: the question is asked under the role it was put to, with the settings
// that this has now.
func TestRegenerateUnderTheRole(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	if err := r.UsePrompt(t.Context(), "Be brief."); err != nil {
		t.Fatal(err)
	}
	r.tell("hi")
	if err := r.Set(t.Context(), "temperature", "0.3"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Regenerate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.actor.requests[1].Temperature; got == nil || *got != 0.3 {
		t.Errorf("temperature %v", got)
	}
	if err := r.ExitRole(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Regenerate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.sends("system Be brief. | user hi")
}

func TestUndoAndRewrite(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	if _, err := r.Undo(t.Context()); fault.CodeOf(err) != fault.Usage {
		t.Errorf("outside of sessions: %v", err)
	}
	r.enterSession("s")
	r.tell("one")
	r.tell("two")
	if asked, err := r.Undo(t.Context()); err != nil || asked.Text != "two" {
		t.Errorf("%+v, %v", asked, err)
	}
	r.has("user one | assistant ok")
	if last, _ := r.Last(); last.Text != "one" || last.Reply != "ok" || !last.Continuous {
		t.Errorf("goes on from %+v", last)
	}
	if _, err := r.Rewrite(t.Context(), "uno"); err != nil {
		t.Fatal(err)
	}
	r.has("user uno | assistant ok") // the turn before is the last question after an undo
	if _, err := r.Rewrite(t.Context(), "due"); err != nil {
		t.Fatal(err)
	}
	r.sends("user due")
	r.has("user due | assistant ok")
}

// TestRewriteWhatIsNotInTheSession: a question that failed, and one under a role of its own, are no turns of the
// session, so that nothing there is replaced.
func TestRewriteWhatIsNotInTheSession(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{replies: []any{"one", "two", errors.New("no network"), "three"}})
	r.enterSession("s")
	r.tell("first")
	r.tell("second")
	const before = "user first | assistant one | user second | assistant two"
	if _, err := r.Tell(t.Context(), question("third")); err == nil {
		t.Fatal("no error")
	}
	if _, err := r.Rewrite(t.Context(), "third edited"); err != nil {
		t.Fatal(err)
	}
	r.has(before + " | user third edited | assistant three")
	q := question("aside")
	q.Role = &role.Role{Name: "poet"}
	if _, err := r.Tell(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rewrite(t.Context(), "aside edited"); err != nil {
		t.Fatal(err)
	}
	r.has(before + " | user third edited | assistant three")
}

// TestOldAnswerStays until there is a new one.
func TestOldAnswerStays(t *testing.T) {
	t.Parallel()
	boom := &provider.Error{Kind: provider.BadReply, Msg: "boom"}
	r := enter(t, &actor{replies: []any{"one", boom, boom, stopped(""), stopped("tw"), "three"}})
	r.enterSession("s")
	r.tell("q")
	try := func(verb func(context.Context) (conversation.Answer, error), want string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.actor.stop = cancel
		if _, err := verb(ctx); err == nil {
			t.Error("no error")
		}
		r.has(want)
	}
	rewrite := func(ctx context.Context) (conversation.Answer, error) { return r.Rewrite(ctx, "p") }
	try(r.Regenerate, "user q | assistant one")
	try(rewrite, "user q | assistant one")
	r.sends("user p")
	if l, ok := r.Last(); !ok || l.Reply != "one" || !l.Continuous {
		t.Errorf("the last question is %+v", l)
	}
	try(rewrite, "user q | assistant one")
	try(rewrite, "user p | assistant tw"+mark)
	if _, err := r.Rewrite(t.Context(), "o"); err != nil {
		t.Fatal(err)
	}
	r.has("user o | assistant three")
}

func TestFork(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{}, "no")
	r.enterSession("s")
	r.tell("one")
	if err := r.Fork(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	if r.Session().Name() != "copy" {
		t.Errorf("in session %s", r.Session().Name())
	}
	r.tell("two")
	r.has("user one | assistant ok | user two | assistant ok")
	if _, err := r.Regenerate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.has("user one | assistant ok | user two | assistant ok")
}

func TestCarry(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{replies: []any{"answer", "A: Title!", "next"}})
	r.service.SaveSession = new(true)
	r.Conversation = r.begin()
	r.tell("question")
	r.enterSession("")
	if !r.CanCarry() {
		t.Fatal("the question cannot be carried")
	}
	if err := r.Carry(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.has("user question | assistant answer")
	if named := eventtest.Bodies[event.SessionNamed](r.events); len(named) != 1 || named[0].Title != "A--Title" {
		t.Errorf("named %+v", named)
	}
	if r.CanCarry() {
		t.Error("it can be carried again")
	}
	r.tell("more")
	r.sends("user question | assistant answer | user more")
}

// TestSessionIsNamed: a temporary session that is saved by itself gets a title after its first turn.
func TestSessionIsNamed(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{replies: []any{"The Danube.", &provider.Error{Kind: provider.BadReply, Msg: "boom"}, "The Rhine.", "rivers-of-europe"}})
	r.service.SaveSession = new(true)
	r.Conversation = r.begin()
	r.enterSession("temp")
	r.tell("a river?") // the title fails
	r.tell("another?")
	if got := r.State().Session.Title; got != "rivers-of-europe" {
		t.Errorf("title %q", got)
	}
	if got, want := r.actor.sent(-1), "system Make a title. | user USER: a river?\nASSISTANT: The Danube."; got != want {
		t.Errorf("asked for a title with %q", got)
	}
	if w := eventtest.Bodies[event.Warning](r.events); len(w) != 1 || !strings.Contains(w[0].Text, "title") {
		t.Errorf("warnings %+v", w)
	}
	if _, all := r.Spending(); all.InputTokens != 30 {
		t.Errorf("the session used %+v", all)
	}
}

// TestSessionIsCompressedAfterATurn: the turn that passes the threshold is followed by the compression.
func TestSessionIsCompressedAfterATurn(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{replies: []any{"one", "two", "three", "recap"}})
	r.enterSession("s")
	if err := r.Set(t.Context(), "compression_threshold", "1"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", "b", "c"} {
		r.tell(text)
	}
	if n := len(eventtest.Bodies[event.CompressionFinished](r.events)); n != 1 || len(r.actor.requests) != 4 {
		t.Errorf("%d compressions, %d requests", n, len(r.actor.requests))
	}
	if got := r.Session().Messages()[0].Text(); !strings.HasSuffix(got, "recap") {
		t.Errorf("the session begins with %q", got)
	}
	if turn, _ := r.Spending(); turn.InputTokens != 20 {
		t.Errorf("the turn used %+v", turn)
	}
	if _, err := r.Continue(t.Context()); fault.CodeOf(err) != fault.Usage {
		t.Errorf("continued after a compression: %v", err)
	}
}

// TestFailedTurnsLeaveTheSessionFree: another conversation of the process goes on in it.
func TestFailedTurnsLeaveTheSessionFree(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{replies: []any{&provider.Error{Kind: provider.BadReply, Msg: "boom"}, stopped("x"), "ok"}})
	r.enterSession("s")
	if _, err := r.Tell(t.Context(), question("a")); err == nil {
		t.Fatal("no error")
	}
	r.tell("b")
	other := r.begin()
	if err := other.UseSession(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Tell(t.Context(), question("c")); err != nil {
		t.Fatal(err)
	}
	r.has("user b | assistant x" + mark + " | user c | assistant ok")
}

// TestAnotherProcessGoesOnInTheSession: what it added is part of the next request.
func TestAnotherProcessGoesOnInTheSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	join := func() *room {
		r := enter(t, &actor{})
		store, err := filestore.New(filestore.Options{Dir: dir, AgentDir: func(string) string { return dir }})
		if err != nil {
			t.Fatal(err)
		}
		r.service.Sessions = func() (session.Store, error) { return store, nil }
		r.service.SaveSession = new(true)
		r.Conversation = r.begin()
		r.enterSession("shared")
		return r
	}
	one := join()
	one.tell("a")
	two := join()
	two.tell("b")
	one.tell("c")
	one.sends("user a | assistant ok | user b | assistant ok | user c")
}

// TestDryRun: nothing is kept, and other conversations send.
func TestDryRun(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	dry := &actor{replies: []any{"would be sent"}}
	var err error
	if r.service.Dry, err = engine.New(engine.Options{Models: dry}); err != nil {
		t.Fatal(err)
	}
	other := r.begin()
	r.enterSession("s")
	if err := r.Set(t.Context(), "dry_run", "true"); err != nil {
		t.Fatal(err)
	}
	if a := r.tell("hi"); a.Text != "would be sent" || !r.Session().Empty() || !r.State().DryRun {
		t.Errorf("%q", a.Text)
	}
	if a, err := other.Tell(t.Context(), question("hi")); err != nil || a.Text != "ok" || other.State().DryRun {
		t.Errorf("the other conversation got %q, %v", a.Text, err)
	}
	if err := r.Set(t.Context(), "dry_run", "false"); err != nil {
		t.Fatal(err)
	}
	r.tell("hello")
	r.has("user hello | assistant ok")
}

// TestDryRunChangesNothing: in a dry run the session stays as it is, whatever the user does, and afterwards
// the conversation goes on from what the session has.
func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	const before = "user first | assistant one | user second | assistant two"
	verbs := map[string]func(ctx context.Context, r *room) error{
		"undo":       func(ctx context.Context, r *room) error { _, err := r.Undo(ctx); return err },
		"rewrite":    func(ctx context.Context, r *room) error { _, err := r.Rewrite(ctx, "other"); return err },
		"empty":      func(ctx context.Context, r *room) error { return r.EmptySession(ctx) },
		"compress":   func(ctx context.Context, r *room) error { _, err := r.Compress(ctx); return err },
		"regenerate": func(ctx context.Context, r *room) error { _, err := r.Regenerate(ctx); return err },
		"continue":   func(ctx context.Context, r *room) error { _, err := r.Continue(ctx); return err },
	}
	for name, verb := range verbs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := enter(t, &actor{replies: []any{"one", "two", "three"}})
			var err error
			if r.service.Dry, err = engine.New(engine.Options{Models: &actor{replies: []any{"dry"}}}); err != nil {
				t.Fatal(err)
			}
			r.enterSession("s")
			r.tell("first")
			r.tell("second")
			mustSet(t, r, "dry_run", "true")
			if err := verb(t.Context(), r); err != nil && (fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "") {
				t.Errorf("%v", err)
			}
			r.has(before)
			mustSet(t, r, "dry_run", "false")
			if name == "rewrite" { // the last question was that of the dry run
				return
			}
			if _, err := r.Continue(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.has(before + "three")
		})
	}
}

// TestQuestionOfADryRun: a question of a dry run is not the one that the session has last.
func TestQuestionOfADryRun(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{replies: []any{"one", "two"}})
	r.enterSession("s")
	r.tell("first")
	mustSet(t, r, "dry_run", "true")
	r.tell("other")
	mustSet(t, r, "dry_run", "false")
	if _, err := r.Continue(t.Context()); fault.CodeOf(err) != fault.Usage {
		t.Errorf("went on with another answer: %v", err)
	}
	if _, err := r.Regenerate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.has("user first | assistant one | user other | assistant ok")
}

// TestQuestionAside: a question under a role of its own does not touch the session.
func TestQuestionAside(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	r.enterSession("s")
	r.tell("a")
	poet, _, err := r.service.Roles().Load("poet")
	if err != nil {
		t.Fatal(err)
	}
	q := question("b")
	q.Role = &poet
	if _, err := r.Tell(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	r.sends("system Answer in verse. | user b")
	r.has("user a | assistant ok")
	if r.Role() != "" {
		t.Errorf("role %q", r.Role())
	}
}

// TestOnlyUsersAreAsked: a model may ask the user of an interactive conversation, if there is one.
func TestOnlyUsersAreAsked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		interactive bool
		asker       ask.Asker
		want        bool
	}{{"repl", true, asktest.NewScripted(), true}, {"server", true, nil, false}, {"one_shot", false, asktest.NewScripted(), false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := enter(t, &actor{})
			c := r.service.Begin(conversation.Options{Interactive: tt.interactive, Caller: conversation.Caller{Asker: tt.asker}})
			if _, err := c.Tell(t.Context(), question("hi")); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range r.actor.requests[0].Tools {
				names = append(names, tool.Name)
			}
			if got := strings.Contains(fmt.Sprint(names), "user__ask"); got != tt.want {
				t.Errorf("offered %v", names)
			}
		})
	}
}

// TestClosedTerminal: what a model has said when the terminal takes no more stays in the session, as after an interruption.
func TestClosedTerminal(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(c *conversation.Conversation) error{
		"tell": func(c *conversation.Conversation) error { _, err := c.Tell(t.Context(), question("q")); return err },
		"ask":  func(c *conversation.Conversation) error { _, err := c.Ask(t.Context(), question("q")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := enter(t, &actor{replies: []any{"one"}})
			r.Conversation = r.service.Begin(conversation.Options{Caller: conversation.Caller{Events: event.NewScope(event.Func(func(_ context.Context, ev event.Event) error {
				if _, ok := ev.Body.(event.Delta); ok {
					return syscall.EIO
				}
				return nil
			}), event.Source{}, nil)}})
			r.enterSession("s")
			if err := ask(r.Conversation); !errors.Is(err, syscall.EIO) {
				t.Fatalf("the failure is %v", err)
			}
			if got := said(r.Session().Messages()); !strings.HasPrefix(got, "user q | assistant ") || !strings.HasSuffix(got, mark) {
				t.Errorf("the session has %s", got)
			}
		})
	}
}
