package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/service/auth/audit"
)

// auditLines returns the lines of an audit file by the ids of their requests. It waits for that of a last request.
func auditLines(t *testing.T, s *servertest.Server, file string) map[string][]audit.Entry {
	t.Helper()
	last := fmt.Sprint("last", time.Now().UnixNano())
	s.Post("/v1/mcp/reload", "", "X-Request-Id", last)
	var text []byte
	until(t, "the last line", func() bool {
		var err error
		text, err = os.ReadFile(file)
		return err == nil && strings.Contains(string(text), last)
	})
	lines := make(map[string][]audit.Entry)
	for line := range strings.Lines(string(text)) {
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines[e.RequestID] = append(lines[e.RequestID], e)
	}
	return lines
}

// TestAuditEndpoints has a request to each endpoint of the OpenAPI document that can change something. One that writes no
// line, or several, fails.
func TestAuditEndpoints(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": "model: builtin:echo\nclients:\n  - type: builtin\napi:\n  audit: {sink: file, path: audit.log}\n"})
	var d struct {
		Paths map[string]map[string]json.RawMessage
	}
	s.Get("/openapi.json").JSON(t, &d)
	want := make(map[string]string) // endpoints by the ids of requests
	for path, methods := range d.Paths {
		for method := range methods {
			endpoint := strings.ToUpper(method) + " " + path
			switch {
			case endpoint == "POST /v1/auth/check", endpoint == "POST /v1/highlight": // change nothing
				continue
			case slices.Contains(special, path):
				continue
			case method == "get" && path != "/v1/sessions/{id}":
				continue
			}
			id := fmt.Sprint("r", len(want))
			want[id] = endpoint
			body := "{}"
			if method == "get" || method == "delete" {
				body = ""
			}
			s.Do(strings.ToUpper(method), strings.NewReplacer("{id}", "nothing", "{name}", "nothing").Replace(path), body, "X-Request-Id", id)
		}
	}
	if len(want) < 24 {
		t.Errorf("only %d endpoints", len(want))
	}
	lines := auditLines(t, s, filepath.Join(s.Dir, "audit.log"))
	for id, endpoint := range want {
		got := lines[id]
		if len(got) != 1 || got[0].Action == "" || got[0].Subject != "anonymous" || got[0].Result == "" || got[0].Details["method"].(string)+" "+got[0].Details["route"].(string) != endpoint {
			t.Errorf("%s: %+v", endpoint, got)
		}
	}
}

// TestAudit looks at the lines of what subjects do, may not do, and have agents do.
func TestAudit(t *testing.T) {
	alice, aliceKey := servertest.Key("alice", 1, `read, write, "admin:mcp"`)
	reader, readerKey := servertest.Key("reader", 2, `"read:sessions"`)
	s := servertest.Start(t, servertest.Files{
		"config.yaml":            "model: builtin:echo\nclients:\n  - type: builtin\napi:\n  audit: {sink: file, path: audit.log}\n  auth:\n    keys:\n" + aliceKey + readerKey,
		"agents/asks/graph.yaml": askAgent,
		"agents/echo/graph.yaml": "name: echo\nversion: \"1.0\"\nstart: done\nnodes:\n  done:\n    type: end\n    output: \"Said {{initial_prompt}}.\"\n",
	})
	s.Key = alice
	do := func(id, method, path, body string, headers ...string) servertest.Answer {
		t.Helper()
		return s.Do(method, path, body, append(headers, "X-Request-Id", id)...)
	}
	var session api.Session
	do("create", "POST", "/v1/sessions", `{}`).JSON(t, &session)
	do("read", "GET", "/v1/sessions/"+session.ID, "")
	do("agent", "POST", "/v1/sessions/"+session.ID+"/agent", `{"name": "nobody"}`)
	do("empty", "POST", "/v1/sessions/"+session.ID+"/empty", "", "Idempotency-Key", "k")
	do("again", "POST", "/v1/sessions/"+session.ID+"/empty", "", "Idempotency-Key", "k")
	do("delete", "DELETE", "/v1/sessions/"+session.ID, "")
	var run, fork api.Run
	do("start", "POST", "/v1/agents/asks/runs", `{"prompt": "the secret plan", "wait": 60}`).JSON(t, &run)
	do("fork", "POST", "/v1/runs/"+run.ID+"/fork", `{}`).JSON(t, &fork)
	do("cancel", "POST", "/v1/runs/"+fork.ID+"/cancel", "")
	do("ask", "POST", "/v1/completions", `{"prompt": "x", "agent": "echo"}`)
	do("chat", "POST", "/v1/chat/completions", `{"model": "agent:echo", "messages": [{"role": "user", "content": "x"}]}`)
	do("key", "GET", "/v1/runs", "", "Authorization", "Bearer x")
	do("scope", "DELETE", "/v1/sessions/"+session.ID, "", "Authorization", "Bearer "+reader)
	lines := auditLines(t, s, filepath.Join(s.Dir, "audit.log"))
	for _, tt := range []struct{ id, subject, action, target, result, reason string }{
		{"create", "alice", "session_create", "session:" + session.ID, "success", ""},
		{"read", "alice", "session_read", "session:" + session.ID, "success", ""},
		{"agent", "alice", "agent_activate", "agent:nobody", "denied", "agent_not_found"},
		{"empty", "alice", "session_update", "session:" + session.ID, "success", ""},
		{"again", "alice", "session_update", "session:" + session.ID, "success", ""},
		{"delete", "alice", "session_delete", "session:" + session.ID, "success", ""},
		{"start", "alice", "run_start", "run:" + run.ID, "success", ""},
		{"fork", "alice", "run_fork", "run:" + fork.ID, "success", ""},
		{"cancel", "alice", "run_cancel", "run:" + fork.ID, "success", ""},
		{"ask", "alice", "agent_activate", "agent:echo", "success", ""},
		{"chat", "alice", "agent_activate", "agent:echo", "success", ""},
		{"key", "", "auth_failure", "", "denied", "unknown"},
		{"scope", "reader", "auth_failure", "session:" + session.ID, "denied", "scope"},
	} {
		got := lines[tt.id]
		if len(got) != 1 {
			t.Errorf("%s: %+v", tt.id, got)
			continue
		}
		e := got[0]
		if e.Subject != tt.subject || e.Action != tt.action || e.Target != tt.target || string(e.Result) != tt.result || e.Reason != tt.reason || (e.KeyID == "") != (tt.subject == "") {
			t.Errorf("%s: got %+v", tt.id, e)
		}
	}
	if lines["again"][0].Details["replayed"] != true {
		t.Errorf("an answer that was repeated: %+v", lines["again"][0])
	}
	if text, _ := os.ReadFile(filepath.Join(s.Dir, "audit.log")); strings.Contains(string(text), "secret") {
		t.Errorf("what was said is in the record:\n%s", text)
	}
}

// TestAuditOfTools: each tool that ran has a line that says who asked for the work.
func TestAuditOfTools(t *testing.T) {
	alice, aliceKey := servertest.Key("alice", 1, `read, write, "admin:mcp"`)
	s := servertest.Start(t, servertest.Files{
		"config.yaml":             "clients:\n  - {type: builtin, script: rules.yaml}\nfunction_calling_support: true\napi:\n  audit: {sink: file, path: audit.log}\n  auth:\n    keys:\n" + aliceKey,
		"rules.yaml":              "rules:\n- match: {turn: 1}\n  tool_calls: [{name: get_current_time, arguments: {}}]\ndefault: {reply: done}\n",
		"agents/clock/graph.yaml": "name: clock\nversion: \"1.0\"\nstart: ask\nglobal_tools: [get_current_time]\nnodes:\n  ask:\n    type: llm\n    model: \"builtin:script\"\n    prompt: what time is it?\n    tools: [get_current_time]\n    next: done\n  done:\n    type: end\n    output: \"{{output}}\"\n",
	})
	s.Key = alice
	var run api.Run
	a := s.Post("/v1/agents/clock/runs", `{"prompt": "x", "wait": 60}`, "X-Request-Id", "start")
	a.JSON(t, &run)
	got := auditLines(t, s, filepath.Join(s.Dir, "audit.log"))["start"]
	if len(got) != 2 || got[0].Action != "tool_execute" || got[0].Target != "tool:get_current_time" || got[0].Subject != "alice" || got[0].Details["run_id"] != run.ID {
		t.Errorf("%d %s\n%+v", a.Status, a.Body, got)
	}
}

// TestBrokenAudit: a sink that fails makes the server not ready, and no request fails or waits for it.
func TestBrokenAudit(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	s := servertest.Start(t, servertest.Files{"config.yaml": "model: builtin:echo\nclients:\n  - type: builtin\napi:\n  audit: {sink: file, path: /dev/full}\n"})
	if a := s.Post("/v1/sessions", `{}`); a.Status != http.StatusCreated {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	until(t, "not ready", func() bool {
		a := s.Get("/healthz/ready")
		return a.Status == http.StatusServiceUnavailable && strings.Contains(a.Body, "audit")
	})
	if a := s.Post("/v1/sessions", `{}`); a.Status != http.StatusCreated {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := s.Get("/healthz/live"); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestAuditOfResumedRuns: the tools of a run that goes on without a request, by itself after a restart or with a link, are its owner's.
func TestAuditOfResumedRuns(t *testing.T) {
	alice, aliceKey := servertest.Key("alice", 1, `read, write, "admin:mcp"`)
	address, notices := receive(t)
	s := servertest.Program(t, servertest.Files{
		"config.yaml": "clients:\n  - {type: builtin, script: rules.yaml}\nfunction_calling_support: true\napi:\n  webhooks: [{url: " + address + ", secret: s3cret, events: [question]}]\n  audit: {sink: file, path: audit.log}\n  auth:\n    keys:\n" + aliceKey,
		"rules.yaml":  "rules:\n- match: {turn: 1}\n  tool_calls: [{name: get_current_time, arguments: {}}]\ndefault: {reply: done}\n",
		"agents/clock/graph.yaml": `
name: clock
start: wait
sandbox: write
settings: {timeout: 600}
global_tools: [get_current_time]
nodes:
  wait: {type: script, script: scripts/wait.sh, timeout: 500, next: first}
  first: {type: llm, model: "builtin:script", prompt: what time is it?, tools: [get_current_time], next: ask}
  ask: {type: approval, question: "Again?", options: [yes, no], routes: {yes: second, no: second}, on_other: second}
  second: {type: llm, model: "builtin:script", prompt: what time is it?, tools: [get_current_time], next: done}
  done: {type: end, output: "{{output}}"}
`,
		"agents/clock/scripts/wait.sh": "#!/bin/sh\n[ -e begun ] && { echo '{}'; exit; }\n: > begun\nexec sleep 600\n",
	})
	s.Key = alice
	var r api.Run
	expect(t, s.Post("/v1/agents/clock/runs", `{"prompt": "x"}`, "X-Request-Id", "start"), http.StatusCreated).JSON(t, &r)
	until(t, "the script", func() bool {
		_, err := os.Stat(filepath.Join(s.Dir, "begun"))
		return err == nil
	})
	s.Kill()
	s.Begin()
	link := strings.TrimPrefix((<-notices).Data.AnswerURL, s.URL)
	expect(t, s.Post(link, "answer=yes", "Authorization", "", "Content-Type", "application/x-www-form-urlencoded", "X-Request-Id", "link"), http.StatusOK)
	if is, _ := restsAt(t, s, r.ID, "running", "suspended"); is != "done" {
		t.Fatalf("the run is %s", is)
	}
	lines := auditLines(t, s, filepath.Join(s.Dir, "audit.log"))
	for _, id := range []string{"", "link"} {
		var tools []audit.Entry
		for _, e := range lines[id] {
			if e.Action == "tool_execute" {
				tools = append(tools, e)
			}
		}
		if len(tools) != 1 || tools[0].Subject != "alice" || tools[0].KeyID != "000000000001" || tools[0].Details["run_id"] != r.ID {
			t.Errorf("of request %q: %+v", id, lines[id])
		}
	}
}
