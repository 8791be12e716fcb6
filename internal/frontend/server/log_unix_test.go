//go:build unix

package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loki/internal/frontend/server/servertest"
)

// TestLog looks at the lines of a server's log: one for each request, JSON unless the configuration says text, without keys,
// and as detailed as the configuration says when it is read again.
func TestLog(t *testing.T) {
	alice, aliceKey := servertest.Key("alice", 1, "read, write")
	config := func(more string) string {
		return "model: builtin:echo\nclients:\n  - type: builtin\napi:\n" + more + "  auth:\n    keys:\n" + aliceKey
	}
	s := servertest.Program(t, servertest.Files{"config.yaml": config("")})
	s.Key = alice
	file := filepath.Join(s.Dir, "cache", "loki", "loki.log")
	find := func(what string, fits func(line map[string]any) bool) (found map[string]any) {
		t.Helper()
		until(t, what, func() bool {
			text, _ := os.ReadFile(file)
			for line := range strings.Lines(string(text)) {
				var members map[string]any
				if err := json.Unmarshal([]byte(line), &members); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				if fits(members) {
					found = members
					return true
				}
			}
			return false
		})
		return found
	}
	of := func(id string) func(map[string]any) bool {
		return func(line map[string]any) bool { return line["request_id"] == id && line["msg"] == "request" }
	}
	s.Post("/v1/completions", `{"prompt": "the secret plan"}`, "X-Request-Id", "ask")
	s.Get("/v1/runs/"+alice, "X-Request-Id", "nothing")
	s.Get("/healthz/live", "X-Request-Id", "probe1")
	line := find("a request", of("ask"))
	for name, want := range map[string]any{
		"level": "info", "target": "server", "subject": "alice", "method": "POST", "path": "/v1/completions", "route": "/v1/completions", "status": 200.0,
	} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
	if line := find("a failure", of("nothing")); line["status"] != 404.0 || line["code"] != "run_not_found" || line["run_id"] != "[redacted]" {
		t.Errorf("%v", line)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "config.yaml"), []byte(config("  log_level: debug\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Signal(syscall.SIGHUP)
	until(t, "SIGHUP", func() bool { return strings.Contains(s.Stderr(), "read again") })
	s.Post("/v1/completions", `{"prompt": "the secret plan"}`, "X-Request-Id", "again")
	s.Get("/healthz/live", "X-Request-Id", "probe2")
	find("a probe", of("probe2"))
	model := find("the call of a model", func(line map[string]any) bool { return line["msg"] == "model is called" })
	if model["request_id"] != "again" || model["subject"] != "alice" || model["target"] != "engine" {
		t.Errorf("%v", model)
	}
	text, _ := os.ReadFile(file)
	for _, bad := range []string{"secret plan", alice, "probe1"} {
		if strings.Contains(string(text), bad) {
			t.Errorf("%s is in the log:\n%s", bad, text)
		}
	}
}
