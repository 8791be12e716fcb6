package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/process/environ"
	"loki/internal/tool"
	"loki/internal/tool/mcp"
)

// fake returns a server that this test binary is.
func fake(t testing.TB, kind string, more ...string) mcp.Server {
	t.Helper()
	return fakeAs(t, kind, kind, more...)
}

func fakeAs(t testing.TB, id, kind string, more ...string) mcp.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	entry := map[string]any{"command": self, "env": map[string]string{"LOKI_TEST_SERVER": kind}}
	for i := 0; i < len(more); i += 2 {
		entry[more[i]] = more[i+1]
	}
	return server(t, id, entry)
}

func server(t testing.TB, id string, entry map[string]any) mcp.Server {
	t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{id: entry}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := mcp.Parse("mcp.json", text)
	if err != nil {
		t.Fatal(err)
	}
	if f.Servers[0].Err != nil {
		t.Fatal(f.Servers[0].Err)
	}
	return f.Servers[0]
}

// pool returns a pool that is shut down, and checked for leftovers, at the end of the test.
func pool(t testing.TB, change func(*mcp.Options)) *mcp.Pool {
	t.Helper()
	o := mcp.Options{
		Child: environ.Child{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}}, StopGrace: time.Second,
		ConnectTimeout: 20 * time.Second, ListTimeout: 10 * time.Second, CallTimeout: 20 * time.Second,
	}
	if change != nil {
		change(&o)
	}
	p := mcp.NewPool(o)
	t.Cleanup(func() {
		if err := p.Shutdown(0); err != nil {
			t.Error(err)
		}
	})
	return p
}

// call calls the tool whose name ends so, as a box would.
func call(ctx context.Context, s *mcp.Scope, suffix, arguments string) (string, error) {
	tools, err := s.Tools(ctx)
	if err != nil {
		return "", err
	}
	for _, f := range tools {
		if name := f.Declaration().Name; strings.Contains(name, suffix) {
			c := tool.Call{Name: name, Arguments: json.RawMessage(arguments)}
			if g, ok := f.(tool.Guard); ok {
				if q := g.Consent(c); q != "" {
					return "", errors.New("question: " + q)
				}
				c.Unasked = true
			}
			r, err := f.Call(ctx, c)
			return r.Output, err
		}
	}
	return "", fmt.Errorf("no tool %s", suffix)
}

func scope(t testing.TB, p *mcp.Pool, o mcp.ScopeOptions, servers ...mcp.Server) *mcp.Scope {
	t.Helper()
	s := p.Scope(servers, o)
	t.Cleanup(s.Close) // before that of the pool
	return s
}

func TestMisbehavingServers(t *testing.T) {
	const echo = `{"tool":"echo","arguments":{"a":1}}`
	for _, tt := range []struct {
		kind, function, arguments string
		want                      string // in the error
	}{
		{"crash_at_start", "invoke", echo, "failed with exit status 3; it printed: no configuration found; password is ***PASSWORD***"},
		{"closes_early", "invoke", echo, "the server ended"},
		{"list_at_start", "invoke", echo, "cannot unmarshal"},
		{"nothing_at_start", "invoke", echo, `unsupported protocol version: ""`},
		{"silent", "invoke", echo, "it was not ready within 300ms"},
		{"garbage", "invoke", echo, "not a message of the protocol"},
		{"endless_line", "invoke", echo, "too large"},
		{"stops_reading", "invoke", `{"tool":"echo","arguments":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`, "no answer within 300ms"},
		{"hangs", "invoke", echo, "no answer within 300ms"},
		{"crash_in_call", "invoke", echo, "exit status 7; it printed: segmentation fault, as it were"},
		{"giant", "invoke", echo, "too large"},
		{"error", "invoke", echo, `MCP tool invocation failed: MCP server "error": error -32602: bad arguments`},
		{"is_error", "invoke", echo, "no such issue"},
		{"endless", "search", `{"query":"x"}`, "the server's list does not end"},
		{"wrong_list", "search", `{"query":"x"}`, "MCP search failed"},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			p := pool(t, func(o *mcp.Options) {
				o.MaxMessage = 4 << 20
				o.Secrets = func(string) (string, error) { return "hunter2", nil }
				if strings.HasSuffix(tt.want, "300ms") {
					o.CallTimeout, o.ListTimeout = 300*time.Millisecond, 300*time.Millisecond
				}
			})
			s := fake(t, tt.kind)
			s.Env["PASSWORD"] = "{{PASSWORD}}"
			if tt.kind == "silent" {
				s.StartTimeout = 300 * time.Millisecond
			}
			good := fake(t, "greets")
			sc := scope(t, p, mcp.ScopeOptions{}, s, good)
			for range 2 { // what went wrong goes wrong again, with a new connection
				_, err := call(t.Context(), sc, tt.function, tt.arguments)
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
					t.Fatalf("got %v, want %q", err, tt.want)
				}
			}
			if out, err := call(t.Context(), sc, "invoke_greets", echo); err != nil || out != `{"a":1}` {
				t.Errorf("the other server: %q, %v", out, err)
			}
		})
	}
}

// TestHabits: servers that are no trouble to other clients are none here.
func TestHabits(t *testing.T) {
	for _, kind := range []string{"text_ids", "true_capabilities", "same_cursor", "only_2025-03-26", "only_2024-11-05"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			sc := scope(t, pool(t, nil), mcp.ScopeOptions{}, fake(t, kind))
			if out, err := call(t.Context(), sc, "invoke", `{"tool":"echo","arguments":{"a":1}}`); err != nil || out != `{"a":1}` {
				t.Errorf("got %q, %v", out, err)
			}
			if out, err := call(t.Context(), sc, "search", `{"query":"echo"}`); err != nil || !strings.Contains(out, "does echo") {
				t.Errorf("the list: %q, %v", out, err)
			}
		})
	}
}

func TestRestartAfterCrash(t *testing.T) {
	p := pool(t, nil)
	s := fake(t, "sound")
	sc := scope(t, p, mcp.ScopeOptions{}, s)
	first, err := call(t.Context(), sc, "invoke", `{"tool":"pid"}`)
	if err != nil {
		t.Fatal(err)
	}
	pid := p.Status()[0].PID
	if fmt.Sprint(pid) != first {
		t.Errorf("status says %d, the server %s", pid, first)
	}
	kill(t, pid)
	again, err := call(t.Context(), sc, "invoke", `{"tool":"pid"}`)
	if err != nil { // the crash was not noticed before; now it is
		again, err = call(t.Context(), sc, "invoke", `{"tool":"pid"}`)
	}
	if err != nil || again == first {
		t.Errorf("after a crash: %s, %v", again, err)
	}
	if m := p.Metrics(); m.Started != 2 {
		t.Errorf("%d connections were made", m.Started)
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	proc, err := os.FindProcess(pid)
	if err == nil {
		err = proc.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestMetaTools(t *testing.T) {
	p := pool(t, nil)
	sc := scope(t, p, mcp.ScopeOptions{}, fake(t, "odd_tools"))
	tools, err := sc.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range tools {
		names = append(names, f.Declaration().Name)
	}
	if got := strings.Join(names, " "); got != "mcp__invoke_odd_tools mcp__search_odd_tools mcp__describe_odd_tools" {
		t.Errorf("tools: %s", got)
	}
	if p.Metrics().Misses != 0 {
		t.Error("declaring the functions started the server")
	}
	for _, tt := range []struct{ name, function, arguments, want, wantErr string }{
		{"describe", "describe", `{"tool":"twice"}`, `{"properties":{"arguments":{"type":"object"},"tool":{"type":"string"}},"type":"object"}`, ""},
		{"describe_repairs", "describe", `{"tool":"no_object"}`, `"arguments":{"type":"object","additionalProperties":true}`, ""},
		{"describe_unknown", "describe", `{"tool":"twise"}`, "", `has no tool "twise"; did you mean "twice"?`},
		{"describe_nothing", "describe", `{}`, "", "tool is missing"},
		{"search", "search", `{"query":"schemas that are bad","top_k":1}`, `[{"name":"bad_schema","server":"odd_tools","description":"does bad_schema"}]`, ""},
		{"search_nothing", "search", `{"query":"unrelated"}`, `[]`, ""},
		{"search_zero", "search", `{"query":"twice","top_k":0}`, `[]`, ""},
		{"search_negative", "search", `{"query":"twice","top_k":-1}`, "", "top_k"},
		{"search_fraction", "search", `{"query":"twice","top_k":1.5}`, "", "top_k"},
		{"search_without_query", "search", `{}`, "", "query is missing"},
		{"invoke", "invoke", `{"tool":"read","arguments":{"b":[2]}}`, `{"b":[2]}`, ""},
		{"invoke_text", "invoke", `{"tool":"read","arguments":"{\"b\":3}"}`, `{"b":3}`, ""},
		{"invoke_without", "invoke", `{"tool":"read"}`, `{}`, ""},
		{"invoke_list", "invoke", `{"tool":"read","arguments":[1]}`, "", "arguments"},
		{"invoke_nothing", "invoke", `{}`, "", "tool is missing"},
		{"invoke_destructive", "invoke", `{"tool":"wipe"}`, "", "question: May the tool wipe"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := call(t.Context(), sc, tt.function, tt.arguments)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %q, %v; want error %q", out, err, tt.wantErr)
				}
			} else if err != nil || !strings.Contains(out, tt.want) {
				t.Errorf("got %q, %v; want %q", out, err, tt.want)
			}
		})
	}
}

// A tool whose description was not read may be destructive: the user is asked before it runs.
func TestDestructiveToolIsNotRunUnasked(t *testing.T) {
	sc := scope(t, pool(t, nil), mcp.ScopeOptions{}, fake(t, "odd_tools"))
	tools, err := sc.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := tool.Call{Arguments: json.RawMessage(`{"tool":"wipe"}`), Unasked: true}
	guard := tools[0].(tool.Guard)
	if q := guard.Consent(c); q != "" {
		t.Fatalf("asked before the server was: %s", q)
	}
	if _, err := tools[0].Call(t.Context(), c); err == nil || !strings.Contains(err.Error(), "mcp__describe_odd_tools") {
		t.Fatalf("got %v", err)
	}
	if q := guard.Consent(c); !strings.Contains(q, "wipe") {
		t.Fatalf("question: %q", q)
	}
	c.Unasked = false
	if out, err := tools[0].Call(t.Context(), c); err != nil || out.Output != "{}" {
		t.Errorf("after consent: %v, %v", out, err)
	}
}

func TestDirectTools(t *testing.T) {
	p := pool(t, nil)
	sc := scope(t, p, mcp.ScopeOptions{}, fake(t, "odd_tools", "expose", "direct"), fake(t, "crash_at_start", "expose", "direct"))
	tools, err := sc.Tools(t.Context())
	if err == nil || !strings.Contains(err.Error(), "crash_at_start") {
		t.Errorf("the broken server: %v", err)
	}
	set, err := tool.NewSet(tools...) // checks names
	if err != nil {
		t.Fatal(err)
	}
	if set.Len() != 9 {
		t.Errorf("%d tools: %v", set.Len(), set.Names())
	}
	for name, want := range map[string]string{
		"bad_schema": `{"type":"object","properties":{"a":{"type":5}}}`, "huge": `{"properties":{"property0":`, "no_object": `{"type":"object","additionalProperties":true}`,
	} {
		f, ok := set.Lookup("mcp__odd_tools__" + name)
		if !ok || !strings.HasPrefix(string(f.Declaration().Parameters), want) {
			t.Errorf("%s: %v %.100s", name, ok, f.Declaration().Parameters)
		}
	}
	wipe, _ := set.Lookup("mcp__odd_tools__wipe")
	read, _ := set.Lookup("mcp__odd_tools__read")
	if !wipe.Hints().Destructive || wipe.Hints().ReadOnly || read.Hints().Destructive || !read.Hints().ReadOnly {
		t.Errorf("hints: %+v %+v", wipe.Hints(), read.Hints())
	}
	twice, _ := set.Lookup("mcp__odd_tools__twice")
	if r, err := twice.Call(t.Context(), tool.Call{Arguments: json.RawMessage(`{"x":1}`)}); err != nil || r.Output != `{"x":1}` {
		t.Errorf("%v %v", r, err)
	}
}

func TestManyTools(t *testing.T) {
	var logged bytes.Buffer
	p := pool(t, func(o *mcp.Options) { o.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
	sc := scope(t, p, mcp.ScopeOptions{}, fake(t, "many", "expose", "direct"))
	tools, err := sc.Tools(t.Context())
	if err != nil || len(tools) != 3 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	out, err := call(t.Context(), sc, "search", `{"query":"tool_7777","top_k":1}`)
	if err != nil || !strings.Contains(out, `"tool_7777"`) {
		t.Errorf("%s %v", out, err)
	}
	if !strings.Contains(logged.String(), "too many tools") {
		t.Errorf("log: %s", &logged)
	}
}

func TestResults(t *testing.T) {
	var mu sync.Mutex
	var got []mcp.Progress
	sc := scope(t, pool(t, nil), mcp.ScopeOptions{Progress: func(p mcp.Progress) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, p)
	}}, fake(t, "rich"), fake(t, "progress"), fake(t, "changes"))
	out, err := call(t.Context(), sc, "invoke_rich", `{"tool":"x"}`)
	if want := `{"text":"one\n[image image/png, 3 bytes, not shown]\ntwo","structuredContent":{"n":1}}`; err != nil || out != want {
		t.Errorf("got %s, %v", out, err)
	}
	if out, err := call(t.Context(), sc, "invoke_progress", `{"tool":"x"}`); err != nil || out != "done" {
		t.Errorf("got %s, %v", out, err)
	}
	mu.Lock()
	if len(got) != 1 || got[0] != (mcp.Progress{Server: "progress", Tool: "x", Done: 1, Total: 4, Message: "a quarter"}) {
		t.Errorf("progress: %+v", got)
	}
	mu.Unlock()
	// After the notification the list is asked for again; both answers are the same here,
	// so what counts is that nothing breaks.
	for range 2 {
		if _, err := call(t.Context(), sc, "search_changes", `{"query":"echo"}`); err != nil {
			t.Error(err)
		}
		if _, err := call(t.Context(), sc, "invoke_changes", `{"tool":"x"}`); err != nil {
			t.Error(err)
		}
	}
}

func TestElicitation(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []string
		want    string
	}{
		{"answered", []string{"answer", "Ada", "36", "green", "no", ""}, `{"action":"accept","content":{"age":36,"colour":"g","name":"Ada","news":false}}`},
		{"declined", []string{"decline"}, `{"action":"decline"}`},
		{"nobody", nil, `{"action":"decline"}`},
		{"nobody_any_more", []string{"answer", "Ada"}, `{"action":"decline"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asker := asktest.NewScripted(tt.answers...)
			sc := scope(t, pool(t, nil), mcp.ScopeOptions{Asker: asker}, fake(t, "sound"))
			out, err := call(t.Context(), sc, "invoke", `{"tool":"ask"}`)
			if err != nil || out != tt.want {
				t.Fatalf("got %s, %v", out, err)
			}
			if asked := asker.Asked(); len(asked) > 0 && (!strings.Contains(asked[0].Text, `"sound"`) || strings.Contains(asked[0].Text, "\x1b")) {
				t.Errorf("question: %q", asked[0].Text)
			}
		})
	}
	t.Run("no_asker", func(t *testing.T) {
		sc := scope(t, pool(t, nil), mcp.ScopeOptions{}, fake(t, "sound"))
		if out, err := call(t.Context(), sc, "invoke", `{"tool":"ask"}`); err != nil || out != `{"action":"decline"}` {
			t.Errorf("got %s, %v", out, err)
		}
	})
}

// The time that a user takes does not count, nor does a question go to somebody else.
func TestElicitationTakesTime(t *testing.T) {
	slow := ask.Func(func(ctx context.Context, q ask.Question) (string, error) {
		if strings.Contains(q.Text, "asks") {
			time.Sleep(500 * time.Millisecond) // a person, longer than the limit of the call
		}
		return "decline", nil
	})
	p := pool(t, func(o *mcp.Options) { o.CallTimeout = 250 * time.Millisecond })
	sc := scope(t, p, mcp.ScopeOptions{Asker: slow}, fake(t, "sound"))
	if err := sc.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := call(t.Context(), sc, "invoke", `{"tool":"ask"}`); err != nil || out != `{"action":"decline"}` {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestCancel(t *testing.T) {
	sc := scope(t, pool(t, nil), mcp.ScopeOptions{}, fake(t, "hangs"))
	if err := sc.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := call(ctx, sc, "invoke", `{"tool":"x"}`); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestStderrAndEnvironment(t *testing.T) {
	var stderr bytes.Buffer
	p := pool(t, func(o *mcp.Options) { o.Stderr = &stderr })
	crash := scope(t, p, mcp.ScopeOptions{}, fake(t, "crash_at_start"))
	if err := crash.Connect(t.Context()); err == nil {
		t.Error("it did not crash")
	}
	if got := stderr.String(); got != "[crash_at_start] no configuration found; password is \n" {
		t.Errorf("stderr: %q", got)
	}
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	out, err := call(t.Context(), scope(t, p, mcp.ScopeOptions{}, fake(t, "sound")), "invoke", `{"tool":"env"}`)
	if err != nil || strings.Contains(out, "sk-secret") || !strings.Contains(out, "LOKI_TEST_SERVER=sound") {
		t.Errorf("environment: %s, %v", out, err)
	}
}

func TestNames(t *testing.T) {
	text := `{"mcpServers": {"a.b": {"command":"x"}, "a_b": {"command":"x"}, "a b": {"command":"x"}, "ünï": {"command":"x"},
		"` + strings.Repeat("l", 100) + `": {"command":"x"}}}`
	f := parse(t, text)
	tools, err := pool(t, nil).Scope(f.Servers, mcp.ScopeOptions{}).Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(tools...) // checks characters, length and uniqueness
	if err != nil {
		t.Fatal(err)
	}
	if set.Len() != 15 || set.Names()[0] != "mcp__invoke_a_b" {
		t.Errorf("%v", set.Names())
	}
}

// TestNamesAreOfOneServer checks that the name of a function tells the server: permissions
// go by it.
func TestNamesAreOfOneServer(t *testing.T) {
	f := parse(t, `{"mcpServers": {"search_x": {"command":"x"}, "describe__y": {"command":"x"}, "git__hub": {"command":"x"}, "_under_": {"command":"x"},
		"`+strings.Repeat("l", 32)+`_long_enough": {"command":"x"}}}`)
	tools, err := pool(t, nil).Scope(f.Servers, mcp.ScopeOptions{}).Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"search-x", "describe-y", "git_hub", "under"}
	for i, tool := range tools {
		verb := []string{"invoke", "search", "describe"}[i%3]
		slug, ok := strings.CutPrefix(tool.Declaration().Name, "mcp__"+verb+"_")
		if !ok || strings.Contains(slug, "__") || i/3 < len(want) && slug != want[i/3] {
			t.Errorf("%s is a function of %s", tool.Declaration().Name, f.Servers[i/3].ID)
		}
		for j, server := range f.Servers {
			if got := server.MayOffer("mcp__" + slug + "__a_tool"); got != (j == i/3) {
				t.Errorf("a tool of %s may be one of %s: %t", f.Servers[i/3].ID, server.ID, got)
			}
			if got := server.MayOffer(tool.Declaration().Name); got != (j == i/3) {
				t.Errorf("%s may be a function of %s: %t", tool.Declaration().Name, server.ID, got)
			}
		}
	}
	if f.Servers[0].MayOffer("fs_cat") {
		t.Error("fs_cat may be a tool of a server")
	}
}
