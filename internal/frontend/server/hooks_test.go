package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// TestHooks: the hooks of the server's user hold for its clients. What they refuse is an answer with code refused, or a
// result that the model reads; each request in a session begins and ends a stay.
func TestHooks(t *testing.T) {
	s := servertest.Start(t, servertest.Files{
		"config.yaml": `model: builtin:script
clients: [{type: builtin, script: rules.yaml}]
visible_tools: [fs_ls, fs_write]
hooks:
  before_tool: [{name: guard, match: fs_ls, command: 'echo no lists >&2; exit 2'}]
  before_model: [{name: secrets, command: 'grep -q password || exit 0; echo it has a password >&2; exit 2'}]
  after_model: [{name: manners, command: 'grep -q "\"reply\".*swearword" || exit 0; echo mind your language >&2; exit 2'}]
  session_start:
    - {name: in, command: 'echo "$LOKI_HOOK" >>"$LOKI_CONFIG_DIR/stays"'}
    - {name: door, command: 'if [ -e "$LOKI_CONFIG_DIR/closed" ]; then echo closed >&2; exit 2; fi'}
  session_end: [{name: out, command: 'echo "$LOKI_HOOK" >>"$LOKI_CONFIG_DIR/stays"'}]
`,
		"rules.yaml": `rules:
  - match: {text: list, turn: 1}
    tool_calls: [{name: fs_ls, arguments: {path: .}}]
  - match: {text: list, turn: 2}
    reply: "read: {{tool_result}}"
default: {reply: "You said: {{text}}"}
`,
		"roles/lister.md":        "---\nenabled_tools: fs_ls\n---\n",
		"agents/g/graph.yaml":    "name: g\nstart: a\nnodes:\n  a: {type: llm, prompt: \"{{initial_prompt}}\", next: done, fallback: spare}\n  spare: {type: end, output: spare}\n  done: {type: end, output: \"{{output}}\"}\n",
		"agents/own/config.yaml": "name: own\nglobal_tools: [fs_ls]\nhooks: {after_model: [{name: mine, command: 'echo not for me >&2; exit 2', match: \"*\"}]}\n",
	})
	post := func(path, body string, status int, want string) {
		t.Helper()
		if a := s.Post(path, body); a.Status != status || !strings.Contains(a.Body, want) {
			t.Errorf("%s %s: %d %s", path, body, a.Status, a.Body)
		}
	}
	post("/v1/completions", `{"prompt": "hello"}`, http.StatusOK, "You said: hello")
	post("/v1/completions", `{"prompt": "the password"}`, http.StatusForbidden, "the hook secrets refused it: it has a password")
	post("/v1/completions", `{"prompt": "the swearword"}`, http.StatusForbidden, "the hook manners refused it: mind your language")
	post("/v1/completions", `{"prompt": "list", "role": "lister"}`, http.StatusOK, "fs_ls was not run: the hook guard refused it: no lists")
	post("/v1/completions", `{"prompt": "hello", "agent": "own"}`, http.StatusForbidden, "the hook mine refused it: not for me")
	post("/v1/completions", `{"prompt": "the password", "agent": "g"}`, http.StatusOK, "spare")
	post("/v1/chat/completions", `{"model": "role:lister", "messages": [{"role": "user", "content": "list"}]}`, http.StatusOK, "fs_ls was not run: the hook guard refused it: no lists")
	if a := s.Post("/v1/chat/completions", `{"model": "builtin:script", "messages": [{"role": "user", "content": "the password"}]}`); a.Status != http.StatusForbidden || a.Code() != "refused" || !strings.Contains(a.Body, `"permission_error"`) {
		t.Errorf("as an OpenAI client reads it: %d %s", a.Status, a.Body)
	}
	a := s.Post("/v1/completions", `{"prompt": "the password", "stream": true}`)
	if !strings.Contains(a.Body, "it has a password") || !strings.Contains(a.Body, `"refused"`) {
		t.Errorf("stream: %s", a.Body)
	}

	stays := func() string {
		text, _ := os.ReadFile(filepath.Join(s.Dir, "stays"))
		return strings.Join(strings.Fields(string(text)), " ")
	}
	if got := stays(); got != "" {
		t.Errorf("outside of sessions: %q", got)
	}
	var session api.Session
	s.Post("/v1/sessions", "{}").JSON(t, &session)
	before := stays()
	in := "/v1/sessions/" + session.ID + "/completions"
	post(in, `{"prompt": "one"}`, http.StatusOK, "You said: one")
	post(in, `{"prompt": "two"}`, http.StatusOK, "You said: two")
	if got := strings.TrimSpace(strings.TrimPrefix(stays(), before)); got != "in out in out" {
		t.Errorf("stays %q, before %q", got, before)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "closed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	post(in, `{"prompt": "three"}`, http.StatusForbidden, "the hook door refused it: closed")
	if got := s.Get("/v1/sessions/" + session.ID); strings.Contains(got.Body, "three") {
		t.Errorf("the session has what was refused: %s", got.Body)
	}
}
