package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"loki/internal/agent/role"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/workflow/run"
)

// stored returns the names of the stored sessions of a scope.
func (r *room) stored(scope session.Scope) string {
	r.t.Helper()
	store, err := r.service.Sessions()
	if err != nil {
		r.t.Fatal(err)
	}
	list, err := store.List(r.t.Context(), scope)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, m := range list {
		names = append(names, string(m.Alias))
	}
	return strings.Join(names, " ")
}

// TestExitSession: what becomes of a session that has changed.
func TestExitSession(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, session, save string
		answers             []string
		asked               int
		stored              string
	}{
		{"not_wanted", "s", "false", nil, 0, ""},
		{"wanted", "s", "true", nil, 0, "s"},
		{"with_a_name", "s", "null", []string{"no"}, 0, "s"},
		{"temp_nobody_to_ask", "", "null", nil, 1, "20"},
		{"temp_named", "", "null", []string{"yes", "garden"}, 2, "garden"},
		{"temp_without_a_name", "", "null", []string{"yes"}, 2, "20"},
		{"temp_no", "", "null", []string{"no"}, 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := enter(t, &actor{}, tt.answers...)
			r.enterSession(tt.session)
			if err := r.Set(t.Context(), "save_session", tt.save); err != nil {
				t.Fatal(err)
			}
			r.tell("hi")
			if err := r.ExitSession(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(r.asker.Asked()); n != tt.asked {
				t.Errorf("%d questions", n)
			}
			if got := r.stored(""); got != tt.stored && (tt.stored != "20" || !strings.HasPrefix(got, "20") || strings.Contains(got, " ")) {
				t.Errorf("stored %q", got)
			}
			if _, err := r.Continue(t.Context()); fault.CodeOf(err) != fault.Usage {
				t.Errorf("continued behind the session: %v", err)
			}
			r.tell("alone")
			r.sends("user alone")
		})
	}
}

// TestExitSessionAsksForAnotherName: a name that is taken is asked for again.
func TestExitSessionAsksForAnotherName(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{}, "yes", "taken", "free")
	r.enterSession("taken")
	r.tell("hi")
	if _, err := r.SaveSession(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := r.ExitSession(t.Context()); err != nil { // nothing has changed, so nothing is asked
		t.Fatal(err)
	}
	r.enterSession("")
	r.tell("hello")
	if err := r.ExitSession(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.stored(""); got != "free taken" {
		t.Errorf("stored %q", got)
	}
}

func TestSaveSession(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	if _, err := r.SaveSession(t.Context(), "x"); fault.CodeOf(err) != fault.Usage {
		t.Errorf("without a session: %v", err)
	}
	r.enterSession("")
	r.tell("hi")
	if name, err := r.SaveSession(t.Context(), "mine"); err != nil || name != "mine" || r.State().Session.Name != "mine" || r.State().Session.Dirty {
		t.Errorf("%q, %v, %+v", name, err, r.State().Session)
	}
	if err := r.EmptySession(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := r.State().Session; !st.Empty || st.Dirty || st.UserMessages != 0 {
		t.Errorf("%+v", st)
	}
	if err := r.UseSession(t.Context(), "other"); fault.CodeOf(err) != fault.Usage {
		t.Errorf("a second session: %v", err)
	}
}

func TestRolesInAndOut(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	use := func(name string) error {
		of, _, err := r.service.Roles().Load(name)
		if err != nil {
			t.Fatal(err)
		}
		return r.UseRole(t.Context(), of)
	}
	if err := use("poet"); err != nil {
		t.Fatal(err)
	}
	r.tell("hi")
	r.sends("system Answer in verse. | user hi")
	r.enterSession("s")
	if r.Role() != "poet" {
		t.Errorf("the session began with %q", r.Role())
	}
	if err := use("cook"); err != nil { // nothing was said yet
		t.Fatal(err)
	}
	r.tell("hi")
	r.sends("system Cook. | user hi")
	if err := use("poet"); fault.CodeOf(err) != fault.Usage {
		t.Errorf("another role behind messages: %v", err)
	}
	if err := r.ExitRole(t.Context()); fault.CodeOf(err) != fault.Usage {
		t.Errorf("no role behind messages: %v", err)
	}
	if err := r.ExitSession(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Role() != "poet" {
		t.Errorf("behind the session: %q", r.Role())
	}
	if err := errors.Join(r.ExitRole(t.Context()), r.ExitRole(t.Context())); err != nil || r.Role() != "" {
		t.Errorf("role %q, %v", r.Role(), err)
	}
}

// TestExitRoleInASession: what the role said goes, and what was set since stays.
func TestExitRoleInASession(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	r.service.Settings.EnabledTools = new("fs_ls")
	r.Conversation = r.begin()
	r.enterSession("s")
	if err := r.UsePrompt(t.Context(), "---\ntemperature: 0.2\ntop_p: 0.5\n---\nx"); err != nil {
		t.Fatal(err)
	}
	mustSet(t, r, "top_p", "0.9")
	mustSet(t, r, "model", "test:b")
	if err := r.ExitRole(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := r.Settings()
	if s.Temperature != nil || *s.TopP != 0.9 || s.Model != "test:b" || r.Setting("enabled_tools") != "fs_ls" || r.Role() != "" {
		t.Errorf("%+v", s)
	}
	r.tell("hi")
	r.sends("user hi")
}

// TestInterruptedExit: when the user interrupts the question nothing is left, and the session is kept if the
// conversation ends.
func TestInterruptedExit(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	p := &pool{running: make(map[string]int)}
	r.service.Servers = p.servers
	ctx, cancel := context.WithCancel(t.Context())
	r.Conversation = r.service.Begin(conversation.Options{Interactive: true, Caller: conversation.Caller{
		Asker: ask.Func(func(context.Context, ask.Question) (string, error) {
			cancel()
			return "", context.Canceled
		}),
	}})
	r.enterSession("")
	mustSet(t, r, "enabled_mcp_servers", "a")
	r.tell("hi")
	if err := r.ExitSession(ctx); fault.CodeOf(err) != fault.Canceled || r.Session() == nil || p.running["a"] != 1 {
		t.Errorf("%v, %v", err, p.running)
	}
	if err := r.Close(t.Context()); err != nil || !strings.HasPrefix(r.stored(""), "20") {
		t.Errorf("%v, stored %q", err, r.stored(""))
	}
}

// TestNamedLate: a temporary session gets its title also if it is to be saved only when it is left.
func TestNamedLate(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	r.enterSession("")
	r.tell("hi")
	if name := r.stored(""); !strings.HasPrefix(name, "20") || strings.Contains(name, "-") {
		t.Errorf("written as %q", name)
	}
	mustSet(t, r, "save_session", "true")
	if err := r.ExitSession(t.Context()); err != nil {
		t.Fatal(err)
	}
	if name := r.stored(""); !strings.HasSuffix(name, "-ok") {
		t.Errorf("stored %q", name)
	}
}

// TestEnteredSessionGoesOn: the last turn of a session that is entered is the last question.
func TestEnteredSessionGoesOn(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{}, "yes")
	r.enterSession("s")
	r.tell("one")
	r.tell("two")
	if err := r.ExitSession(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.enterSession("s")
	if last, ok := r.Last(); !ok || last.Text != "two" || last.Reply != "ok" || !last.Continuous {
		t.Errorf("%+v", last)
	}
	if _, err := r.Continue(t.Context()); err != nil {
		t.Error(err)
	}
	r.has("user one | assistant ok | user two | assistant okok")
	if _, err := r.Regenerate(t.Context()); err != nil {
		t.Error(err)
	}
	r.has("user one | assistant ok | user two | assistant ok")
	if _, err := r.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Regenerate(t.Context()); err != nil {
		t.Error(err)
	}
	r.has("user one | assistant ok")
	if _, err := r.Rewrite(t.Context(), "uno"); err != nil {
		t.Error(err)
	}
	r.has("user uno | assistant ok")
}

// TestSaveRole: a role is saved with the settings that were changed, and as it is written.
func TestSaveRole(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	dir := t.TempDir()
	library := r.service.Roles()
	library.Dir, library.Variables = dir, func(name string) (string, bool) { return "plan9", name == "__os__" }
	r.service.Roles = func() role.Library { return library }
	if _, err := r.SaveRole("x"); fault.CodeOf(err) != fault.Usage {
		t.Errorf("without a role: %v", err)
	}
	if err := r.UsePrompt(t.Context(), "Be brief on {{__os__}}."); err != nil {
		t.Fatal(err)
	}
	r.tell("hi")
	r.sends("system Be brief on plan9. | user hi")
	if err := errors.Join(r.Set(t.Context(), "temperature", "0.5"), r.SetModel(t.Context(), "test:b")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.SaveRole(""); fault.CodeOf(err) != fault.Usage {
		t.Errorf("a temporary role without a name: %v", err)
	}
	file, err := r.SaveRole("brief")
	if err != nil || r.Role() != "brief" {
		t.Fatalf("%s, %v", file, err)
	}
	library.Variables = nil
	of, _, err := library.Load("brief")
	if err != nil || of.Prompt != "Be brief on {{__os__}}." || *of.Settings.Temperature != 0.5 || of.Settings.Model != "test:b" {
		t.Errorf("%+v, %v", of, err)
	}
}

// withAgent has the service know the agent helper with these lines.
func (r *room) withAgent(lines string, change func(*conversation.Agent)) {
	a := helper(r.t, lines)
	a.Variables = nil
	r.service.Agent = func(_ context.Context, name string, given map[string]string, from conversation.Caller) (conversation.Agent, error) {
		if name != "helper" {
			return conversation.Agent{}, fault.New(fault.NotFound, "no agent %s", name)
		}
		a := a
		a.Variables = func(ctx context.Context) (map[string]string, error) {
			if given["who"] != "" {
				return given, nil
			}
			who, err := from.Asker.Ask(ctx, ask.Question{Kind: ask.Text, Text: "w (who)"})
			return map[string]string{"who": who}, err
		}
		if change != nil {
			change(&a)
		}
		return a, nil
	}
	r.Conversation = r.begin()
}

func TestAgentsInAndOut(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{}, "Ann", "no", "no", "no")
	r.withAgent("temperature: 0.7\n", nil)
	if err := r.UsePrompt(t.Context(), "Be brief."); err != nil {
		t.Fatal(err)
	}
	if err := r.EnterAgent(t.Context(), "helper", "", nil); err != nil {
		t.Fatal(err)
	}
	r.tell("hi")
	if got, _, _ := strings.Cut(r.actor.sent(-1), "\n"); got != "system Help Ann." {
		t.Errorf("sent %q", got)
	}
	if st := r.State(); st.Agent != "helper" || st.Role != "" || *st.Temperature != 0.7 {
		t.Errorf("%+v", st)
	}
	if err := r.EnterAgent(t.Context(), "helper", "", nil); fault.CodeOf(err) != fault.Usage {
		t.Errorf("a second agent: %v", err)
	}
	// The variables are known, also in a session, and are not asked for again.
	r.enterSession("daily")
	r.tell("hello")
	if err := r.ExitSession(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.tell("alone")
	if got, _, _ := strings.Cut(r.actor.sent(-1), "\n"); got != "system Help Ann." || !strings.HasSuffix(r.actor.sent(-1), "| user alone") {
		t.Errorf("sent %q", got)
	}
	if err := r.ExitAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.tell("hi")
	r.sends("system Be brief. | user hi")
	if len(r.asker.Asked()) != 1 { // for the variable
		t.Errorf("asked %+v", r.asker.Asked())
	}
	events := r.events.Events()
	if last := events[len(events)-1]; last.Agent != "" {
		t.Errorf("an event of agent %s behind it", last.Agent)
	}
}

// TestAgentBeginsInItsSession: that of its definition, unless the user names one. A session that was
// begun with other values of variables keeps them.
func TestAgentBeginsInItsSession(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	r.service.SaveSession = new(true)
	r.withAgent("", func(a *conversation.Agent) { a.Session = "daily" })
	if err := r.EnterAgent(t.Context(), "helper", "", map[string]string{"who": "Ann"}); err != nil {
		t.Fatal(err)
	}
	r.tell("hi")
	if err := r.ExitAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.stored("helper"); got != "daily" {
		t.Errorf("stored %q", got)
	}
	if err := r.EnterAgent(t.Context(), "helper", "", map[string]string{"who": "Bob"}); err != nil {
		t.Fatal(err)
	}
	r.tell("again")
	if got := r.actor.sent(-1); !strings.HasPrefix(got, "system Help Ann.") {
		t.Errorf("sent %q", got)
	}
	if err := r.ExitAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.EnterAgent(t.Context(), "helper", "mine", map[string]string{"who": "Bob"}); err != nil || r.Session().Name() != "mine" {
		t.Errorf("in session %s, %v", r.Session().Name(), err)
	}
}

// TestAgentsThatCannotBeEntered: nothing is started, and what was in force stays.
func TestAgentsThatCannotBeEntered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		session string
		prepare func(t *testing.T, r *room)
		change  func(*conversation.Agent)
	}{
		{name: "no_tools", prepare: func(t *testing.T, r *room) { mustSet(t, r, "function_calling_support", "false") }},
		{name: "no_servers", prepare: func(t *testing.T, r *room) { mustSet(t, r, "mcp_server_support", "false") }, change: func(a *conversation.Agent) { a.NeedsServers = true }},
		{name: "in_a_session", prepare: func(_ *testing.T, r *room) { r.enterSession("s") }},
		{name: "graph_with_a_session", session: "s", change: func(a *conversation.Agent) {
			a.Job = func(context.Context, conversation.GraphQuestion) (run.Job, error) { return run.Job{}, nil }
		}},
		{name: "no_value", change: nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := enter(t, &actor{})
			r.withAgent("", tt.change)
			if err := r.UsePrompt(t.Context(), "Be brief."); err != nil {
				t.Fatal(err)
			}
			if tt.prepare != nil {
				tt.prepare(t, r)
			}
			r.service.Servers = func(_ context.Context, w conversation.Wanted) (func(), error) {
				if w.Agent != nil && tt.name != "no_value" {
					t.Error("servers were started")
				}
				return func() {}, nil
			}
			if err := r.EnterAgent(t.Context(), "helper", tt.session, nil); err == nil {
				t.Fatal("no error")
			}
			if st := r.State(); st.Agent != "" || st.Role != "temp" {
				t.Errorf("%+v", st)
			}
		})
	}
}

func mustSet(t *testing.T, r *room, key, value string) {
	t.Helper()
	if err := r.Set(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// TestGraphAgent: a line runs the graph, and is kept as the last question.
func TestGraphAgent(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	var asked []conversation.GraphQuestion
	r.withAgent("", func(a *conversation.Agent) {
		a.Model = func(id string) string { return id }
		a.Job = func(_ context.Context, q conversation.GraphQuestion) (run.Job, error) {
			asked = append(asked, q)
			return run.Job{Make: func(context.Context, run.Point) (run.Work, func() error, error) {
				return graphWork("ran " + q.Prompt), nil, nil
			}}, nil
		}
	})
	if err := r.EnterAgent(t.Context(), "helper", "", map[string]string{"who": "Ann"}); err != nil {
		t.Fatal(err)
	}
	if err := r.UseSession(t.Context(), "s"); fault.CodeOf(err) != fault.Usage {
		t.Errorf("a session: %v", err)
	}
	if a := r.tell("this"); a.Text != "ran this" || *r.LastReply() != "ran this" || asked[0].Variables["who"] != "Ann" {
		t.Errorf("%+v", a)
	}
	if _, err := r.Regenerate(t.Context()); err != nil || len(asked) != 2 {
		t.Errorf("%d runs, %v", len(asked), err)
	}
	if _, err := r.Continue(t.Context()); fault.CodeOf(err) != fault.Usage {
		t.Errorf("continued: %v", err)
	}
	if !r.State().Graph {
		t.Error("the state does not say so")
	}
}

// graphWork is work with this output.
type graphWork string

func (graphWork) Started() event.Started { return event.Started{Graph: "g"} }
func (w graphWork) Do(context.Context, *run.Frame) (run.Outcome, error) {
	return run.Outcome{Output: string(w), Usage: chat.Usage{InputTokens: 5}}, nil
}

// pool counts the users of MCP servers.
type pool struct {
	running map[string]int
	log     []string
	err     error
}

// servers starts what enabled_mcp_servers lists.
func (p *pool) servers(ctx context.Context, w conversation.Wanted) (func(), error) {
	if p.err != nil {
		return nil, p.err
	}
	var names []string
	if list := w.EnabledMCPServers; list != nil && !w.NoServers {
		names = strings.Split(*list, ",")
	}
	for _, n := range names {
		if p.running[n]++; p.running[n] == 1 {
			p.log = append(p.log, "+"+n)
		}
	}
	return func() {
		for _, n := range names {
			if p.running[n]--; p.running[n] == 0 {
				p.log = append(p.log, "-"+n)
			}
		}
	}, ctx.Err()
}

// TestServersFollowWhatIsInForce: those that nothing asks for any more stop, and no others.
func TestServersFollowWhatIsInForce(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{}, "no", "no")
	p := &pool{running: make(map[string]int)}
	r.service.Servers, r.service.Settings.EnabledMCPServers = p.servers, new("g")
	r.Conversation = r.begin()
	ctx := t.Context()
	role := func(servers string) func() error {
		return func() error { return r.UsePrompt(ctx, "---\nenabled_mcp_servers: "+servers+"\n---\nx") }
	}
	set := func(key, value string) func() error { return func() error { return r.Set(ctx, key, value) } }
	for _, tt := range []struct {
		name string
		do   func() error
		want string
	}{
		{"prepare", func() error { return r.Prepare(ctx) }, "+g"},
		{"role_a", role("a,c"), "+a +c -g"},
		{"role_b", role("b,c"), "+b -a"},
		{"session", func() error { return r.UseSession(ctx, "s") }, ""},
		{"set_in_session", set("enabled_mcp_servers", "d"), "+d -b -c"},
		{"exit_session", func() error { return r.ExitSession(ctx) }, "+b +c -d"},
		{"support_off", set("mcp_server_support", "false"), "-b -c"},
		{"support_on", set("mcp_server_support", "true"), "+b +c"},
		{"exit_role", func() error { return r.ExitRole(ctx) }, "+g -b -c"},
		{"null", set("enabled_mcp_servers", "null"), "-g"},
		{"set", set("enabled_mcp_servers", "a"), "+a"},
		{"close", func() error { return r.Close(ctx) }, "-a"},
	} {
		if p.log = nil; tt.do() != nil {
			t.Fatal(tt.name, tt.do())
		}
		if got := strings.Join(p.log, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestServersThatAreNotStarted: what was in force stays when the user does not wait.
func TestServersThatAreNotStarted(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	p := &pool{running: make(map[string]int)}
	r.service.Servers = p.servers
	r.withAgent("", nil)
	ctx := t.Context()
	if err := r.UsePrompt(ctx, "---\nenabled_mcp_servers: a\n---\nx"); err != nil {
		t.Fatal(err)
	}
	p.err = context.Canceled
	for name, do := range map[string]func() error{
		"role":    func() error { return r.UsePrompt(ctx, "y") },
		"exit":    func() error { return r.ExitRole(ctx) },
		"set":     func() error { return r.Set(ctx, "enabled_mcp_servers", "b") },
		"session": func() error { return r.UseSession(ctx, "s") },
		"agent":   func() error { return r.EnterAgent(ctx, "helper", "", map[string]string{"who": "Ann"}) },
	} {
		if err := do(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if st := r.State(); st.Role != "temp" || st.Session != nil || st.Agent != "" || r.Setting("enabled_mcp_servers") != "a" || p.running["a"] != 1 {
			t.Errorf("%s: %+v, %v", name, st, p.running)
		}
	}
}

// TestSettings: each key is that of what is in force, and another conversation does not see it.
func TestSettings(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"temperature": "0.5", "top_p": "0.9", "max_output_tokens": "4096", "enabled_tools": "fs_cat,fs_ls", "enabled_mcp_servers": "all",
		"function_calling_support": "true", "mcp_server_support": "false", "save_session": "true", "compression_threshold": "2000",
		"auto_continue": "true", "max_auto_continues": "3", "inject_todo_instructions": "false", "continuation_prompt": "go on, please",
		"rag_reranker_model": "c:r", "rag_top_k": "7", "dry_run": "true", "stream": "false", "save": "true", "prompt_log": "true", "highlight": "true", "model": "test:b",
	}
	for _, in := range []string{"", "role", "session", "agent"} {
		t.Run("in_"+in, func(t *testing.T) {
			t.Parallel()
			r := enter(t, &actor{}, "no")
			r.withAgent("compression_threshold: 9000\nauto_continue: false\n", nil)
			other := r.begin()
			before := make(map[string]string)
			for _, key := range other.SettingKeys() {
				before[key] = other.Setting(key)
			}
			switch in {
			case "role":
				if err := r.UseRole(t.Context(), role.Role{Name: "own", Settings: chat.Settings{AutoContinue: new(false), MaxAutoContinues: new(9)}}); err != nil {
					t.Fatal(err)
				}
			case "session":
				r.enterSession("s")
			case "agent":
				if err := r.EnterAgent(t.Context(), "helper", "", map[string]string{"who": "Ann"}); err != nil {
					t.Fatal(err)
				}
			}
			if keys := r.SettingKeys(); len(keys) != 20 || !slices.IsSorted(keys) {
				t.Errorf("keys %v", keys)
			}
			mustSet(t, r, "model", "test:b")
			for _, key := range r.SettingKeys() {
				mustSet(t, r, key, values[key])
				if got := r.Setting(key); got != values[key] {
					t.Errorf("%s is %q", key, got)
				}
			}
			if got := r.Settings().Model; got != "test:b" {
				t.Errorf("model %s", got)
			}
			for key, want := range before {
				if got := other.Setting(key); got != want {
					t.Errorf("%s of the other conversation is %q, was %q", key, got, want)
				}
			}
			for _, key := range []string{"temperature", "enabled_tools", "max_output_tokens", "compression_threshold", "save_session"} {
				mustSet(t, r, key, "null")
				if got := r.Setting(key); got != "null" {
					t.Errorf("%s is %q behind null", key, got)
				}
			}
		})
	}
}

func TestWrongSettings(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	r.service.ServerNames = func() ([]string, error) { return []string{"alias", "git"}, nil }
	for _, tt := range []struct{ key, value, want string }{
		{"temprature", "1", "temperature"},
		{"temperature", "warm", "a number"},
		{"temperature", "", "a number"},
		{"temperature", "1 2", "a number"},
		{"stream", "yes", "true or false"},
		{"stream", "null", "true or false"},
		{"max_auto_continues", "-1", "a number"},
		{"rag_top_k", "0", "a number"},
		{"enabled_mcp_servers", "git,web", `"web"`},
		{"model", "other:x", "other:x"},
	} {
		err := r.Set(t.Context(), tt.key, tt.value)
		if err == nil || !strings.Contains(err.Error()+fault.HintOf(err), tt.want) {
			t.Errorf("%s %s: %v", tt.key, tt.value, err)
		}
	}
	mustSet(t, r, "enabled_mcp_servers", "alias,git")
	mustSet(t, r, "function_calling_support", "false")
	if err := r.Set(t.Context(), "auto_continue", "true"); fault.CodeOf(err) != fault.Usage {
		t.Errorf("auto_continue without tools: %v", err)
	}
}

// TestOutputLimit: it is sent with requests to its model, also in a session, and to no other.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	r.enterSession("s")
	mustSet(t, r, "max_output_tokens", "100")
	r.tell("a")
	mustSet(t, r, "model", "test:b")
	r.tell("b")
	mustSet(t, r, "model", "test:a")
	r.tell("c")
	var got []int
	for _, req := range r.actor.requests {
		got = append(got, req.MaxOutputTokens)
	}
	if fmt.Sprint(got) != "[100 0 100]" {
		t.Errorf("limits %v", got)
	}
}

// TestCommandLineSettingsCanBeChanged: what was asked for with the command is a setting like others.
func TestCommandLineSettingsCanBeChanged(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	r.Conversation = r.service.Begin(conversation.Options{Interactive: true, Settings: chat.Settings{Model: "test:c"}})
	r.enterSession("s")
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.State().Model; got != "test:c" {
		t.Errorf("model %s", got)
	}
	mustSet(t, r, "model", "test:d")
	if st := r.State(); st.Model != "test:d" || st.Client != "test" || st.ModelName != "d" {
		t.Errorf("%+v", st)
	}
}

// TestOnlyTheSessionOfTheCommandIsEmptied: those that are entered later keep their messages.
func TestOnlyTheSessionOfTheCommandIsEmptied(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	r.service.SaveSession = new(true)
	for _, empty := range []bool{false, true} {
		r.Conversation = r.service.Begin(conversation.Options{Interactive: true, EmptySession: empty})
		r.enterSession("a")
		if err := r.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.tell("hi")
		if err := r.ExitSession(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.enterSession("b")
		r.tell("hello")
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r.has("user hello | assistant ok | user hello | assistant ok")
	if err := r.ExitSession(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.enterSession("a")
	r.has("user hi | assistant ok")
}

// TestIsolated: a macro begins with the settings in force and changes nothing outside.
func TestIsolated(t *testing.T) {
	t.Parallel()
	r := enter(t, &actor{})
	if err := r.UsePrompt(t.Context(), "---\ntemperature: 0.4\n---\nBe brief."); err != nil {
		t.Fatal(err)
	}
	r.enterSession("s")
	r.tell("hi")
	m := r.Isolate()
	if m.State().Session != nil || m.Role() != "" || *m.Settings().Temperature != 0.4 || *m.LastReply() != "ok" {
		t.Errorf("%+v", m.State())
	}
	if _, err := m.Continue(t.Context()); fault.CodeOf(err) != fault.Usage {
		t.Errorf("continued: %v", err)
	}
	for _, name := range []string{"s", "left"} { // the caller's own, and another one
		if err := m.UseSession(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if name == "left" && m.CanCarry() {
			t.Error("the last question can be carried")
		}
		if _, err := m.Tell(t.Context(), question("from the macro")); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		m = r.Isolate()
	}
	if len(r.asker.Asked()) > 0 || r.stored("") != "s" {
		t.Errorf("asked %v, stored %q", r.asker.Asked(), r.stored(""))
	}
	r.has("user hi | assistant ok")
	r.tell("more")
}

// TestMacroSaves: outside of a terminal, too, a session that a macro leaves open is not saved, and one that it
// leaves is.
func TestMacroSaves(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{true, false} {
		r := enter(t, &actor{})
		m := r.service.Begin(conversation.Options{}).Isolate()
		if err := m.UseSession(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Tell(t.Context(), question("from the macro")); err != nil {
			t.Fatal(err)
		}
		want := ""
		if leaves {
			want = "s"
			if err := m.ExitSession(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(t.Context()); err != nil || r.stored("") != want {
			t.Errorf("%v, stored %q", err, r.stored(""))
		}
	}
}

// TestGoingOnAfterCompression: the model goes on with the open items of its list, once, and not more
// often in all than it may.
func TestGoingOnAfterCompression(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ max, want string }{{"10", "1 2 3 compressed 4"}, {"1", "1"}} {
		t.Run("max_"+tt.max, func(t *testing.T) {
			t.Parallel()
			r := enter(t, &actor{})
			e, err := engine.New(engine.Options{Models: planner{}})
			if err != nil {
				t.Fatal(err)
			}
			r.service.Engine = e
			r.Conversation = r.begin()
			r.enterSession("s")
			mustSet(t, r, "auto_continue", "true")
			mustSet(t, r, "max_auto_continues", tt.max)
			for _, text := range []string{"a", "b"} {
				r.tell(text)
			}
			mustSet(t, r, "compression_threshold", "1")
			r.tell("plan")
			var got []string
			for _, b := range eventtest.Bodies[event.AutoContinue](r.events) {
				got = append(got, fmt.Sprint(b.Count))
				if b.Compressed {
					got = append(got, "compressed")
				}
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("continued %s", s)
			}
			if cleared, err := r.ClearTodo(); !cleared || err != nil {
				t.Errorf("%v, %v", cleared, err)
			}
			if cleared, err := r.ClearTodo(); cleared || err != nil {
				t.Errorf("%v, %v", cleared, err)
			}
		})
	}
}
