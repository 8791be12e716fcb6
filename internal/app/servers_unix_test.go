//go:build unix

package app_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/app"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
)

// Environment of an MCP server that this test binary is: what it is called, and where it reports
// that it runs.
const (
	serverName = "LOKI_TEST_SERVER"
	serverAddr = "LOKI_TEST_ADDR"
)

// serve is an MCP server with a tool that returns the id of its process. As long as it runs it holds
// a connection to the test.
func serve(name string) int {
	if name == "broken" {
		return 1
	}
	conn, err := net.Dial("unix", os.Getenv(serverAddr))
	if err != nil {
		return 1
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %d\n", name, os.Getpid())
	if name == "slow" { // it never answers
		_, _ = conn.Read(make([]byte, 1))
		return 1
	}
	server := sdk.NewServer(&sdk.Implementation{Name: name, Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "pid"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "process " + strconv.Itoa(os.Getpid())}}}, nil, nil
	})
	_ = server.Run(context.Background(), &sdk.StdioTransport{})
	return 0
}

// watch sees the MCP servers of a test start and end.
type watch struct {
	t       *testing.T
	changes chan change
	running map[string]int // process id by name
	log     []string       // +name and -name since the last check
}

// change is a server that started or ended.
type change struct {
	name string
	pid  int
	gone bool
}

// newWatch listens for servers at an address.
func newWatch(t *testing.T, addr string) *watch {
	l, err := net.Listen("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := &watch{t: t, changes: make(chan change, 100), running: make(map[string]int)}
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the server
				defer conn.Close()
				in := bufio.NewReader(conn)
				line, _ := in.ReadString('\n')
				c := change{}
				if _, err := fmt.Sscan(line, &c.name, &c.pid); err != nil {
					return
				}
				w.changes <- c
				_, _ = in.ReadByte()
				c.gone = true
				w.changes <- c
			}()
		}
	}()
	return w
}

// next waits for a server to start or end.
func (w *watch) next() {
	select {
	case c := <-w.changes:
		if c.gone {
			delete(w.running, c.name)
			w.log = append(w.log, "-"+c.name)
			return
		}
		w.running[c.name] = c.pid
		w.log = append(w.log, "+"+c.name)
	case <-time.After(time.Minute):
		w.t.Fatalf("nothing starts or ends; seen %v", w.log)
	}
}

// expect waits for these changes, "+a -b" in any order, and checks that the processes of the servers
// named behind them are there, and no others of the test.
func (w *watch) expect(changes string, running ...string) {
	w.t.Helper()
	want := strings.Fields(changes)
	for len(w.log) < len(want) {
		w.next()
	}
	slices.Sort(w.log)
	slices.Sort(want)
	if !slices.Equal(w.log, want) {
		w.t.Errorf("changes %v, want %v", w.log, want)
	}
	w.log = nil
	var names []string
	for name, pid := range w.running {
		names = append(names, name)
		if err := syscall.Kill(pid, 0); err != nil {
			w.t.Errorf("server %s, process %d: %v", name, pid, err)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, running) {
		w.t.Errorf("running %v, want %v", names, running)
	}
}

// talk is an interactive conversation with a model that calls the tool of the server that it is asked for.
type talk struct {
	*conversation.Conversation
	*watch
	events *eventtest.Collector
}

// newTalk begins one with servers g, a, b, c, broken and slow, of which settings say what is enabled.
func newTalk(t *testing.T, settings string) talk {
	t.Helper()
	home, err := os.MkdirTemp("", "loki") // short, for the address of the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	addr := filepath.Join(home, "sock")
	w := newWatch(t, addr)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var servers []string
	rules := "rules:\n"
	for _, name := range []string{"g", "a", "b", "c", "broken", "slow"} {
		rules += fmt.Sprintf("  - match: {regex: '^use %[1]s$', turn: 1}\n    tool_calls: [{name: mcp__invoke_%[1]s, arguments: {tool: pid}}]\n", name)
		servers = append(servers, fmt.Sprintf(`%q: {"command": %q, "env": {%q: %q, %q: %q}}`, name, self, serverName, name, serverAddr, addr))
	}
	for file, text := range map[string]string{
		"config.yaml":              "model: builtin:script\nclients: [{type: builtin, script: script.yaml}]\nmapping_mcp_servers: {pair: 'a,b'}\n" + settings,
		"script.yaml":              rules + "  - match: {tool_result: process}\n    reply: '{{tool_result}}'\ndefault: {reply: ok}\n",
		"functions/mcp.json":       `{"mcpServers": {` + strings.Join(servers, ", ") + `}}`,
		"roles/a.md":               "---\nenabled_mcp_servers: a\n---\nA",
		"roles/bc.md":              "---\nenabled_mcp_servers: b,c\n---\nB",
		"roles/pair.md":            "---\nenabled_mcp_servers: pair\n---\nP",
		"roles/none.md":            "N",
		"agents/guide/config.yaml": "name: guide\nmcp_servers: [b]\ninstructions: Guide.\n",
	} {
		file = filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := app.New(app.Options{Environ: []string{"LOKI_CONFIG_DIR=" + home, "HOME=" + home, "XDG_CACHE_HOME=" + home + "/cache", "XDG_STATE_HOME=" + home + "/state", "PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	events := new(eventtest.Collector)
	conv := a.Conversations().Begin(conversation.Options{
		Interactive: true, Caller: conversation.Caller{Events: a.Events(events), Asker: asktest.NewScripted(), Yes: true},
	})
	t.Cleanup(func() { _ = conv.Close(context.Background()) })
	return talk{conv, w, events}
}

// role enters a role.
func (k talk) role(name string) {
	k.t.Helper()
	if err := k.Prelude(k.t.Context(), "test", "role:"+name); err != nil {
		k.t.Fatal(err)
	}
}

// works checks that the model gets an answer from a server, and from the process that was seen to start.
func (k talk) works(server string) {
	k.t.Helper()
	a, err := k.Tell(k.t.Context(), conversation.Question{Asked: conversation.Asked{User: chat.Text(chat.User, "use "+server), Text: "use " + server}})
	if want := fmt.Sprintf(`{"output":"process %d"}`, k.running[server]); err != nil || a.Text != want {
		k.t.Errorf("server %s answers %q, %v; want %q", server, a.Text, err, want)
	}
}

func (k talk) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// TestServersOfRoles: a role has its servers while it is in force, and the configured ones come back.
func TestServersOfRoles(t *testing.T) {
	t.Parallel()
	k := newTalk(t, "enabled_mcp_servers: g\n")
	ctx := t.Context()
	k.expect("")
	k.must(k.Prepare(ctx))
	k.expect("+g", "g")
	k.works("g")
	k.role("a")
	k.expect("+a -g", "a")
	k.works("a")
	k.role("pair") // by an alias; a stays the same process
	k.expect("+b", "a", "b")
	k.works("a")
	k.works("b")
	k.role("bc")
	k.expect("+c -a", "b", "c")
	k.works("c")
	k.role("none")
	k.expect("-b -c")
	k.must(k.ExitRole(ctx))
	k.expect("+g", "g")
	k.works("g")
	if started := eventtest.Bodies[event.ServersStarting](k.events); len(started) != 5 || !slices.Equal(started[2].Servers, []string{"b"}) {
		t.Errorf("started %+v", started)
	}
	k.must(k.Close(ctx))
	k.expect("-g")
}

// TestServersOfAgents: from the configured ones to those of the agent, and back.
func TestServersOfAgents(t *testing.T) {
	t.Parallel()
	k := newTalk(t, "enabled_mcp_servers: g\n")
	ctx := t.Context()
	k.must(k.Prepare(ctx))
	k.expect("+g", "g")
	k.must(k.EnterAgent(ctx, "guide", "", nil))
	k.expect("+b -g", "b")
	k.works("b")
	k.must(k.UseSession(ctx, "s"))
	k.works("b")
	k.must(k.ExitAgent(ctx))
	k.expect("+g -b", "g")
	k.works("g")

	k.must(k.Set(ctx, "mcp_server_support", "false"))
	k.expect("-g")
	if err := k.EnterAgent(ctx, "guide", "", nil); fault.CodeOf(err) != fault.Config {
		t.Errorf("an agent without its servers: %v", err)
	}
	k.must(k.Set(ctx, "mcp_server_support", "true"))
	k.expect("+g", "g")
}

// TestServersOfSessionsAndSettings: a session keeps the servers that were set in it.
func TestServersOfSessionsAndSettings(t *testing.T) {
	t.Parallel()
	k := newTalk(t, "save_session: true\n")
	ctx := t.Context()
	k.must(k.Prepare(ctx))
	k.must(k.UseSession(ctx, "s"))
	k.must(k.Set(ctx, "enabled_mcp_servers", "pair"))
	k.expect("+a +b", "a", "b")
	k.works("b")
	k.must(k.ExitSession(ctx))
	k.expect("-a -b")
	k.must(k.UseSession(ctx, "s"))
	k.expect("+a +b", "a", "b")
	k.must(k.Set(ctx, "enabled_mcp_servers", "b,c"))
	k.expect("+c -a", "b", "c")
	k.must(k.Set(ctx, "enabled_mcp_servers", "null"))
	k.expect("-b -c")
	if err := k.Set(ctx, "enabled_mcp_servers", "a,nope"); fault.CodeOf(err) != fault.Usage {
		t.Errorf("a server that is not there: %v", err)
	}
}

// TestServersOfTwoConversations: what one of them still uses stays.
func TestServersOfTwoConversations(t *testing.T) {
	t.Parallel()
	k := newTalk(t, "")
	ctx := t.Context()
	k.role("a")
	k.expect("+a", "a")
	macro := k.Isolate()
	k.must(macro.Prepare(ctx))
	k.must(k.ExitRole(ctx))
	k.must(macro.Set(ctx, "enabled_mcp_servers", "a,b"))
	k.expect("+b", "a", "b")
	k.must(macro.Close(ctx))
	k.expect("-a -b")
}

// TestServersThatDoNotStart: one that fails is a warning, and one that the user does not wait for changes nothing.
func TestServersThatDoNotStart(t *testing.T) {
	t.Parallel()
	k := newTalk(t, "")
	k.must(k.Set(t.Context(), "enabled_mcp_servers", "a,broken"))
	k.expect("+a", "a")
	k.works("a")
	w := eventtest.Bodies[event.Warning](k.events)
	if !slices.ContainsFunc(w, func(w event.Warning) bool { return strings.Contains(w.Text, "broken") }) {
		t.Errorf("warnings %+v", w)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.Set(ctx, "enabled_mcp_servers", "slow") }() // ends with cancel
	k.expect("+slow", "a", "slow")
	cancel()
	if err := <-done; fault.CodeOf(err) != fault.Canceled {
		t.Errorf("error %v", err)
	}
	k.expect("-slow", "a")
	if got := k.Setting("enabled_mcp_servers"); got != "a,broken" {
		t.Errorf("enabled are %s", got)
	}
	k.works("a")
}
