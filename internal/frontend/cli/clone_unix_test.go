//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// requests is a provider that keeps the requests it gets. Its model looks into a directory, proposes a plan if it can, and is done.
type requests struct {
	mu     sync.Mutex
	bodies []string
}

func (r *requests) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.bodies = append(r.bodies, string(body))
	r.mu.Unlock()
	message := map[string]any{"role": "assistant", "content": "done"}
	call := func(name, args string) {
		message["tool_calls"] = []any{map[string]any{"id": name, "type": "function", "function": map[string]any{"name": name, "arguments": args}}}
	}
	has := func(text string) bool { return strings.Contains(string(body), text) }
	switch {
	case has(`"name":"fs_ls"`) && !has(`"tool_call_id":"fs_ls"`):
		call("fs_ls", `{"path": "deep"}`)
	case has(`"name":"plan__propose"`) && !has(`"tool_call_id":"plan__propose"`):
		call("plan__propose", `{"title": "Look", "summary": "Only that.", "steps": [{"text": "look"}]}`)
	case has(`"name":"todo__done"`) && !has(`"tool_call_id":"todo__done"`):
		call("todo__done", `{"id": 1}`)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": "stop"}}})
}

// take returns the requests since the last call.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.bodies = nil }()
	return r.bodies
}

// TestHostileClone: of the instructions and skills of a clone, its links, imports and large files, not a byte is in a request before the user trusts it, with --yes,
// in CI, and when a run is resumed. What leads out of it never is. Without tools a request has the bytes that it has in an empty directory.
func TestHostileClone(t *testing.T) {
	t.Parallel()
	provider := new(requests)
	server := httptest.NewServer(provider)
	defer server.Close()
	base := t.TempDir()
	config := func(tools string) {
		write(t, filepath.Join(base, "home", "config", "config.yaml"), fmt.Sprintf(
			"model: test:m\nstream: false\n%sclients:\n- {type: openai-compatible, name: test, api_base: %s, models: [{name: m, supports_function_calling: true}]}\n", tools, server.URL,
		))
	}
	config("enabled_tools: all\nvisible_tools: [fs_ls]\n")
	at := func(name string) string { return filepath.Join(base, "clone", filepath.FromSlash(name)) }
	const secret = "SECRET-OF-THE-USER"
	write(t, filepath.Join(base, "secret.md"), secret)
	write(t, at(".git/HEAD"), "ref: refs/heads/main\n")
	write(t, at("AGENTS.md"), "POISON @docs/more.md @/etc/passwd @../secret.md @linked.md\n")
	write(t, at("docs/more.md"), "POISON-IMPORTED @../../secret.md\n")
	write(t, at("deep/AGENTS.md"), "POISON-DEEPER\n")
	write(t, at(".aiignore"), "# POISON\nPOISON/\n")
	for _, dir := range []string{".loki", ".agents", ".claude"} {
		write(t, at(dir+"/skills/skill-of"+dir[1:]+"/SKILL.md"), "---\nname: skill-of"+dir[1:]+"\ndescription: POISON-SKILL\n---\nPOISON-TEXT\n")
	}
	for _, name := range []string{"sub/AGENTS.md", ".agents/skills/huge/SKILL.md"} {
		write(t, at(name), "---\nname: huge\ndescription: POISON-HUGE\n---\nPOISON-HUGE\n")
		if err := os.Truncate(at(name), 100<<20); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"linked.md": "../secret.md", "sub/CLAUDE.md": "/etc/passwd", "GEMINI.md": "../secret.md", ".claude/skills/out": base, ".agents/skills/skill-ofagents/link.md": "../../../../secret.md"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(dir string, status int, more []string, args ...string) []string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "loki", args...)
		cmd.Dir, cmd.Env = dir, append(emptyHome(base, "LOKI_TRUSTED_DIRS="), more...)
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != status {
			t.Fatalf("loki %q: status %d, %v\n%s", args, got, err, out)
		}
		return provider.take()
	}
	none := func(name string, bodies []string, texts ...string) {
		t.Helper()
		for _, body := range bodies {
			for _, text := range texts {
				if strings.Contains(body, text) {
					t.Errorf("%s: %s is in the request %.2000s", name, text, body)
				}
			}
		}
	}
	ci := []string{"CI=true", "GITHUB_ACTIONS=true"}
	for _, dir := range []string{at(""), at("sub")} {
		for name, bodies := range map[string][]string{
			"asked": run(dir, 0, nil, "hello"), "yes": run(dir, 0, nil, "--yes", "hello"), "ci": run(dir, 0, ci, "--yes", "hello"),
			"planned": run(dir, 8, nil, "--yes", "--mode", "plan", "hello"), "resumed": run(dir, 0, ci, "--yes", "--resume", "--answer", "accept"),
		} {
			if none(name, bodies, "POISON", secret, "root:x:"); len(bodies) == 0 || !slices.ContainsFunc(bodies, func(b string) bool { return strings.Contains(b, "fs_ls") }) {
				t.Errorf("%s: %d requests", name, len(bodies))
			}
		}
	}

	run(at(""), 0, nil, "--trust", ".", "--yes")
	trusted := strings.Join(run(at(""), 0, nil, "hello"), "\n")
	none("trusted", []string{trusted}, secret, "root:x:", "POISON-HUGE")
	for _, text := range []string{"POISON @docs", "POISON-IMPORTED", "POISON-DEEPER", "POISON-SKILL"} {
		if !strings.Contains(trusted, text) {
			t.Errorf("trusted, and %s is in no request", text)
		}
	}
	config("")
	empty := filepath.Join(base, "empty")
	write(t, filepath.Join(empty, "x"), "")
	if here, there := run(at(""), 0, nil, "hello"), run(empty, 0, nil, "hello"); len(here) != 1 || !slices.Equal(here, there) {
		t.Errorf("without tools the request is %q, and in an empty directory %q", here, there)
	}
}
