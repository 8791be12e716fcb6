//go:build unix

package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/process/npmtest"
	"loki/internal/frontend/server/servertest"
)

// keyed sends a key with each request.
type keyed string

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if k != "" {
		r.Header.Set("Authorization", "Bearer "+string(k))
	}
	return http.DefaultTransport.RoundTrip(r)
}

const tasks = "io.modelcontextprotocol/tasks"

// params and result are those of the methods of tasks.
type params struct {
	mcp.ParamsBase
	ID        string         `json:"taskId"`
	Responses map[string]any `json:"inputResponses,omitempty"`
}

type result struct {
	mcp.ResultBase
	Type   string                     `json:"resultType"`
	ID     string                     `json:"taskId"`
	Status string                     `json:"status"`
	TTL    *int                       `json:"ttlMs"`
	Poll   int                        `json:"pollIntervalMs"`
	Inputs map[string]json.RawMessage `json:"inputRequests"`
	Result struct {
		Structured struct {
			Output string `json:"output"`
		} `json:"structuredContent"`
	} `json:"result"`
}

// connected returns a client of a server.
func connected(t *testing.T, s *servertest.Server, key, version string, o mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &o)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if err := mcp.AddSendingCustomMethod[*params, *result](client, method); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp", HTTPClient: &http.Client{Transport: keyed(key)}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const (
	mcpGraph = "name: ask\ndescription: Asks\nstart: who\nsettings: {on_failure: fail}\nnodes:\n  who: {type: input, question: \"Who?\", state_updates: {who: \"{{input}}\"}, next: e}\n  e: {type: end, output: \"{{who}} it is\"}\n"
	slowWait = "name: slow\nstart: w\nsettings: {on_failure: fail}\nnodes:\n  w: {type: script, script: w.sh, next: who}\n  who: {type: input, question: \"Who?\", state_updates: {who: \"{{input}}\"}, next: e}\n  e: {type: end, output: \"{{who}} it is\"}\n"
)

func mcpFiles(more string) (files servertest.Files, keys []string) {
	var entries string
	for i, of := range []struct{ subject, scopes string }{{"ann", `"run:agents", read, "write:runs"`}, {"bob", `"run:agents", read, "write:runs"`}, {"eve", `"read:models"`}} {
		key, entry := servertest.Key(of.subject, i+1, of.scopes)
		keys, entries = append(keys, key), entries+entry
	}
	return servertest.Files{
		"config.yaml":            "model: builtin:echo\napi:\n  auth:\n    mode: StaticKeys\n    keys:\n" + entries + more,
		"agents/ask/graph.yaml":  mcpGraph,
		"agents/slow/graph.yaml": slowWait,
		"agents/slow/w.sh":       "#!/bin/sh\nuntil [ -e \"$GATE\" ]; do read -t 0.05 _ </dev/zero 2>/dev/null || :; done\necho '{}'\n",
		"macros/both.yaml":       "variables: [{name: what}]\nsteps: [\"Say {{what}}\", \"Again\"]\n",
		"macros/command.yaml":    "steps: [.info]\n",
	}, keys
}

// answering is a client whose user fills in each form.
func answering(_ context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "Ada"}}, nil
}

// TestMCPOverHTTP calls an agent in each protocol, and looks at what others may see of it.
func TestMCPOverHTTP(t *testing.T) {
	files, keys := mcpFiles("")
	s := servertest.Program(t, files)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			c := connected(t, s, keys[0], version, mcp.ClientOptions{ElicitationHandler: answering})
			if got := c.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("the server speaks %s", got)
			}
			r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{"prompt": "x"}})
			if err != nil {
				t.Fatal(err)
			}
			text, _ := json.Marshal(r)
			if !strings.Contains(string(text), `"output":"Ada it is"`) {
				t.Errorf("%s", text)
			}
			structured, _ := r.StructuredContent.(map[string]any)
			id, _ := structured["run_id"].(string)
			if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "loki://runs/" + id}); err != nil {
				t.Error(err)
			}
			other := connected(t, s, keys[1], version, mcp.ClientOptions{})
			if _, err := other.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "loki://runs/" + id}); err == nil {
				t.Error("another subject reads the run")
			}
			if r, err := other.CallTool(t.Context(), &mcp.CallToolParams{Name: "loki_run", Arguments: map[string]any{"run_id": id}}); err != nil || !r.IsError {
				t.Errorf("another subject looks at the run: %v", err)
			}
		})
	}
	weak := connected(t, s, keys[2], "", mcp.ClientOptions{})
	if tools, err := weak.ListTools(t.Context(), nil); err == nil && len(tools.Tools) > 0 {
		t.Errorf("a key without scopes has tools: %v", tools.Tools)
	}
	ann := connected(t, s, keys[0], "", mcp.ClientOptions{})
	prompts, err := ann.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range prompts.Prompts {
		names = append(names, p.Name)
	}
	if !slices.Contains(names, "both") || slices.Contains(names, "command") {
		t.Errorf("prompts %v", names)
	}
	p, err := ann.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "both", Arguments: map[string]string{"what": "yes"}})
	if err != nil || len(p.Messages) != 2 || p.Messages[0].Content.(*mcp.TextContent).Text != "Say yes" {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := ann.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "both"}); err == nil || !strings.Contains(err.Error(), "what is missing") {
		t.Error(err)
	}
	done, err := ann.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "loki://runs/{id}"}, Argument: mcp.CompleteParamsArgument{Name: "id"}})
	if err != nil || len(done.Completion.Values) != 5 {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestMCPSeesItsOwnRuns: with and without keys, a client sees the runs that it began, and not those that were begun by requests.
func TestMCPSeesItsOwnRuns(t *testing.T) {
	files, keys := mcpFiles("")
	for name, key := range map[string]string{"key": keys[0], "no key": ""} {
		t.Run(name, func(t *testing.T) {
			if key == "" {
				files["config.yaml"] = "model: builtin:echo\n"
			}
			s := servertest.Program(t, files)
			s.Key = key
			a := s.Post("/v1/agents/ask/runs", `{"prompt": "x"}`)
			var of struct {
				ID string `json:"id"`
			}
			a.JSON(t, &of)
			if of.ID == "" {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			c := connected(t, s, key, "2025-11-25", mcp.ClientOptions{ElicitationHandler: answering})
			r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{"prompt": "x"}})
			if err != nil {
				t.Fatal(err)
			}
			structured, _ := r.StructuredContent.(map[string]any)
			own, _ := structured["run_id"].(string)
			for id, seen := range map[string]bool{own: true, of.ID: false} {
				for _, tool := range []string{"loki_run", "loki_cancel"} {
					if r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"run_id": id}}); err != nil || tool == "loki_run" && r.IsError == seen || !seen && !r.IsError {
						t.Errorf("%s, began by a call: %t: %+v, %v", tool, seen, r, err)
					}
				}
			}
			if a := s.Get("/v1/runs/" + of.ID); strings.Contains(a.Body, "canceled") || a.Status != http.StatusOK {
				t.Errorf("the run of a request: %d %s", a.Status, a.Body)
			}
		})
	}
}

// TestMCPRefusals: no key, pages of other sites, a session of another subject, too many sessions, and what is no message.
func TestMCPRefusals(t *testing.T) {
	files, keys := mcpFiles("")
	s := servertest.Start(t, files)
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	accept := []string{"Accept", "application/json, text/event-stream"}
	if a := s.Post("/mcp", hello, accept...); a.Status != http.StatusUnauthorized {
		t.Errorf("without a key: %d %s", a.Status, a.Body)
	}
	s.Key = keys[0]
	if a := s.Post("/mcp", hello, append(accept, "Origin", "https://evil.example.com")...); a.Status != http.StatusForbidden {
		t.Errorf("a page of another site: %d %s", a.Status, a.Body)
	}
	if a := s.Post("/mcp", hello, append(accept, "Origin", s.URL)...); a.Status != http.StatusOK {
		t.Errorf("a page of this site: %d %s", a.Status, a.Body)
	}
	a := s.Post("/mcp", hello, accept...)
	session := a.Header.Get("Mcp-Session-Id")
	if a.Status != http.StatusOK || session == "" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
	if a := s.Post("/mcp", list, append(accept, "Mcp-Session-Id", session)...); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	s.Key = keys[1]
	if a := s.Post("/mcp", list, append(accept, "Mcp-Session-Id", session)...); a.Status != http.StatusNotFound {
		t.Errorf("the session of another subject: %d %s", a.Status, a.Body)
	}
	if a := s.Get("/.well-known/oauth-protected-resource/mcp"); a.Status != http.StatusNotFound {
		t.Errorf("metadata without an issuer: %d", a.Status)
	}
	opened := 0
	for ; opened <= 100; opened++ {
		if a = s.Post("/mcp", hello, accept...); a.Status != http.StatusOK {
			break
		}
	}
	if opened != 100 || a.Status != http.StatusServiceUnavailable {
		t.Errorf("after %d sessions: %d %s", opened, a.Status, a.Body)
	}
	s.Key = keys[0]
	if a := s.Post("/mcp", hello, accept...); a.Status != http.StatusOK {
		t.Errorf("beside the sessions of another subject: %d %s", a.Status, a.Body)
	}
	const refused = `"id":5,"error":{"code":-32600,`
	if a := s.Post("/mcp", `{"jsonrpc":"2.0","id":5,"error":{"code":"x"}}`, accept...); a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), refused) {
		t.Errorf("no message: %d %s", a.Status, a.Body)
	}
}

// TestMCPWithTokens: the answer to a client without a token names where tokens are issued.
func TestMCPWithTokens(t *testing.T) {
	i := newIdentities(t)
	s := servertest.Start(t, servertest.Files{"config.yaml": "model: builtin:echo\napi:\n" + i.config("loki")})
	at := s.URL + "/.well-known/oauth-protected-resource/mcp"
	if a := s.Post("/mcp", "{}"); a.Status != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") != `Bearer resource_metadata="`+at+`"` {
		t.Errorf("%d %q", a.Status, a.Header.Get("WWW-Authenticate"))
	}
	if a := s.Get("/v1/info"); strings.Contains(a.Header.Get("WWW-Authenticate"), "resource_metadata") {
		t.Errorf("another endpoint: %q", a.Header.Get("WWW-Authenticate"))
	}
	var meta struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	s.Get("/.well-known/oauth-protected-resource/mcp").JSON(t, &meta)
	if meta.Resource != s.URL+"/mcp" || len(meta.Servers) != 1 || meta.Servers[0] != i.URL {
		t.Errorf("%+v", meta)
	}
}

// TestMCPTask: a call that takes long becomes a task, which survives the death of the server, asks, and ends.
func TestMCPTask(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	files, keys := mcpFiles("mcp_server: {task_after: 50ms, sandbox: full}\n") // the script waits for a file elsewhere
	files["agents/slow/w.sh"] = strings.ReplaceAll(files["agents/slow/w.sh"], `"$GATE"`, gate)
	s := servertest.Program(t, files)
	able := mcp.ClientOptions{ElicitationHandler: answering, Capabilities: &mcp.ClientCapabilities{Extensions: map[string]any{tasks: map[string]any{}}}}
	c := connected(t, s, keys[0], "2026-07-28", able)
	if _, ok := c.InitializeResult().Capabilities.Extensions[tasks]; !ok {
		t.Error("the server does not announce tasks")
	}
	answer := s.Do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"prompt":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"`+tasks+`":{}}}}}}`,
		"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "slow", "Authorization", "Bearer "+keys[0])
	_, doc, _ := strings.Cut(answer.Body, "data: ")
	var reply struct{ Result result }
	if err := json.Unmarshal([]byte(strings.TrimSpace(doc)), &reply); err != nil {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	made := reply.Result
	if made.Type != "task" || made.Status != "working" || made.ID == "" || made.TTL != nil || made.Poll != 1000 || !strings.Contains(doc, `"ttlMs":null`) {
		t.Fatalf("%s", doc)
	}
	get := func(c *mcp.ClientSession) *result {
		t.Helper()
		r, err := mcp.CallCustomMethod[*params, *result](t.Context(), c, "tasks/get", &params{ID: made.ID})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := get(c); r.Status != "working" || r.Type != "complete" {
		t.Errorf("%+v", r)
	}
	bob := connected(t, s, keys[1], "2026-07-28", able)
	_, err := mcp.CallCustomMethod[*params, *result](t.Context(), bob, "tasks/get", &params{ID: made.ID})
	if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("the task of another subject: %v", err)
	}
	plain := connected(t, s, keys[0], "2026-07-28", mcp.ClientOptions{})
	_, err = mcp.CallCustomMethod[*params, *result](t.Context(), plain, "tasks/get", &params{ID: made.ID})
	if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != -32021 {
		t.Errorf("without the capability: %v", err)
	}
	s.Kill()
	s.Begin()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c = connected(t, s, keys[0], "2026-07-28", able)
	until := func(status string) *result {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			r := get(c)
			if r.Status == status {
				return r
			}
			if time.Now().After(end) {
				t.Fatalf("it is %+v", r)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	asks := until("input_required")
	if len(asks.Inputs) != 1 {
		t.Fatalf("%+v", asks)
	}
	responses := make(map[string]any)
	for id, form := range asks.Inputs {
		if !strings.Contains(string(form), `"elicitation/create"`) {
			t.Errorf("%s", form)
		}
		responses[id] = map[string]any{"action": "accept", "content": map[string]any{"answer": "Ada"}}
	}
	for range 2 { // the second one answers nothing
		if _, err := mcp.CallCustomMethod[*params, *result](t.Context(), c, "tasks/update", &params{ID: made.ID, Responses: responses}); err != nil {
			t.Fatal(err)
		}
	}
	if r := until("completed"); r.Result.Structured.Output != "Ada it is" {
		t.Errorf("%+v", r)
	}
	if _, err := mcp.CallCustomMethod[*params, *result](t.Context(), c, "tasks/cancel", &params{ID: made.ID}); err != nil {
		t.Error(err)
	}
}

// TestMCPClients calls an agent with the clients of the TypeScript SDKs: the older one, and the one for protocol 2026-07-28.
func TestMCPClients(t *testing.T) {
	clients := filepath.Join("mcpserver", "testdata", "clients")
	dir := t.TempDir()
	if err := os.Symlink(npmtest.Install(t, clients), filepath.Join(dir, "node_modules")); err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(filepath.Join(clients, "client.mjs"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "client.mjs"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	files, keys := mcpFiles("mcp_server: {agents: [ask], chat: false}\n")
	s := servertest.Program(t, files)
	const want = `tools ask loki_answer loki_cancel loki_run
asked Who?
result done Ada it is
again done
wrong true there is no argument mood; there are prompt
prompts true
resource done
progress true
`
	for _, kind := range []string{"sdk", "client"} {
		t.Run(kind, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "node", "client.mjs", kind, s.URL+"/mcp", keys[0])
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || string(out) != want {
				t.Errorf("%v\n%s\n%s", err, out, stderr.String())
			}
		})
	}
}

// ofClient are the metadata of a request of protocol 2026-07-28, by a client with forms, pages and tasks.
const ofClient = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"extensions":{"` + tasks + `":{}}}}`

// say sends a request of such a client, and returns what the answer contains.
func say(t *testing.T, s *servertest.Server, id, method, name, params string) string {
	t.Helper()
	a := s.Post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`,`+ofClient+`}}`, "Accept", "application/json, text/event-stream",
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name, "X-Request-Id", id)
	return a.Body
}

// TestMCPAudit: what a client does to runs, by tools, tasks and repeated calls, is on record as what requests of the REST API do, with the run.
func TestMCPAudit(t *testing.T) {
	files, keys := mcpFiles("  audit: {sink: file, path: audit.log}\n")
	s := servertest.Program(t, files)
	s.Key = keys[0]
	const call = `"name":"ask","arguments":{"prompt":"x"}`
	begin := func(id string) (run, state string) {
		t.Helper()
		body := say(t, s, id, "tools/call", "ask", call)
		_, state, _ = strings.Cut(body, `"requestState":"`)
		state, _, _ = strings.Cut(state, `"`)
		var list struct{ Data []struct{ ID string } }
		s.Get("/v1/runs").JSON(t, &list)
		if state == "" || len(list.Data) == 0 {
			t.Fatalf("%s, %+v", body, list)
		}
		return list.Data[0].ID, state
	}
	const answer = `"inputResponses":{"who":{"action":"accept","content":{"answer":"Ada"}}}`
	want := make(map[string]string)
	one, state := begin("begin")
	want["begin"] = "run_start run:" + one
	say(t, s, "repeat", "tools/call", "ask", call+`,"requestState":"`+state+`",`+answer)
	want["repeat"] = "run_answer run:" + one
	two, _ := begin("second")
	say(t, s, "update", "tasks/update", "", `"taskId":"`+two+`",`+answer)
	want["update"] = "run_answer run:" + two
	say(t, s, "cancel", "tasks/cancel", "", `"taskId":"`+two+`"`)
	want["cancel"] = "run_cancel run:" + two
	say(t, s, "tool", "tools/call", "loki_cancel", `"name":"loki_cancel","arguments":{"run_id":"`+two+`"}`)
	want["tool"] = "run_cancel run:" + two
	say(t, s, "look", "tasks/get", "", `"taskId":"`+two+`"`)
	lines := auditLines(t, s, filepath.Join(s.Dir, "audit.log"))
	for id, what := range want {
		if got := lines[id]; len(got) != 1 || got[0].Action+" "+got[0].Target != what || got[0].Subject != "ann" {
			t.Errorf("%s: %+v, want %s", id, got, what)
		}
	}
	if got := lines["look"]; len(got) != 0 {
		t.Errorf("to look at a task is on record: %+v", got)
	}
}

// TestMCPSecret: a client opens a page for a secret, and never gets it in a form.
func TestMCPSecret(t *testing.T) {
	files, keys := mcpFiles("mcp_server: {wait: 2s}\n")
	files["agents/login/graph.yaml"] = "name: login\nstart: who\nstate: {token: {type: string, secret: true}}\nsettings: {on_failure: fail}\nnodes:\n  who: {type: input, question: \"Token?\", state_updates: {token: \"{{input}}\"}, next: e}\n  e: {type: end, output: in}\n"
	s := servertest.Program(t, files)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, tt := range []struct {
			name    string
			can     mcp.ElicitationCapabilities
			answers bool
			want    string
		}{
			{"page", mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}, true, "in"},
			{"page without an answer", mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}, false, "waiting"},
			{"forms", mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}, false, "waiting"},
		} {
			t.Run(version+" "+tt.name, func(t *testing.T) {
				asked := make(chan *mcp.ElicitParams, 9)
				c := connected(t, s, keys[0], version, mcp.ClientOptions{
					Capabilities: &mcp.ClientCapabilities{Elicitation: &tt.can},
					ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						asked <- req.Params
						if !tt.answers {
							return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "hush"}}, nil
						}
						resp, err := http.PostForm(req.Params.URL, url.Values{"answer": {"hush"}})
						if err == nil {
							resp.Body.Close()
						}
						return &mcp.ElicitResult{Action: "accept"}, err
					},
				})
				r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "login", Arguments: map[string]any{"prompt": "x"}})
				if err != nil {
					t.Fatal(err)
				}
				close(asked)
				for p := range asked {
					if p.Mode != "url" || !strings.HasPrefix(p.URL, s.URL+"/answer/") || p.ElicitationID == "" && version < "2026-07-28" {
						t.Errorf("%+v", p)
					}
				}
				text, _ := json.Marshal(r)
				if !strings.Contains(string(text), tt.want) || strings.Contains(string(text), "hush") {
					t.Errorf("%s", text)
				}
			})
		}
	}
}

// TestMCPOddClients: requests that are known to stop other servers.
func TestMCPOddClients(t *testing.T) {
	files, keys := mcpFiles("")
	s := servertest.Program(t, files)
	s.Key = keys[0]
	accept := []string{"Accept", "application/json, text/event-stream"}
	hello := s.Post("/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, accept...)
	session := append(accept, "Mcp-Session-Id", hello.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-06-18")
	for _, tt := range []struct {
		name, body string
		status     int
		want, not  string
	}{
		{"initialized", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, http.StatusAccepted, "", "x"},
		{"unknown notification", `{"jsonrpc":"2.0","method":"notifications/unknown","params":{"a":1}}`, http.StatusAccepted, "", "x"},
		{"cancels nothing", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77,"reason":"late"}}`, http.StatusAccepted, "", "x"},
		{"token zero", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"prompt":"x"},"_meta":{"progressToken":0}}}`, http.StatusOK, `"progressToken":0`, ""},
		{"no token", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"prompt":"x"}}}`, http.StatusOK, "waiting", "progress"},
		{"no arguments", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"loki_run"}}`, http.StatusOK, "run_id", "-32603"},
		{"null as arguments", `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"loki_run","arguments":null}}`, http.StatusOK, "run_id", "-32603"},
		{"graph without arguments", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ask"}}`, http.StatusOK, "waiting", "-32603"},
		{"id as text", `{"jsonrpc":"2.0","id":"six","method":"ping"}`, http.StatusOK, `"id":"six"`, "error"},
	} {
		a := s.Post("/mcp", tt.body, session...)
		if a.Status != tt.status || !strings.Contains(a.Body, tt.want) || tt.not != "" && strings.Contains(a.Body, tt.not) || tt.want == "" && a.Body != "" {
			t.Errorf("%s: %d %s", tt.name, a.Status, a.Body)
		}
	}
	if a := s.Do(http.MethodDelete, "/mcp", "", session...); a.Status != http.StatusNoContent {
		t.Errorf("the end of a session: %d %s", a.Status, a.Body)
	}
	if a := s.Post("/mcp", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, session...); a.Status != http.StatusNotFound {
		t.Errorf("a session that has ended: %d %s", a.Status, a.Body)
	}
}
