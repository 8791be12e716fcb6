package job_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loki/internal/base/process/sandbox"
	"loki/internal/setup/config"
)

// TestVite runs the development server Vite from npm as a job, and fetches a page and a module through its port. It is skipped where npm fetches
// nothing.
func TestVite(t *testing.T) {
	t.Parallel()
	if s := sandbox.New(sandbox.Options{Workspace: t.TempDir()}).Support(); !s.Networks || testing.Short() {
		t.Skip("no networks: " + s.Missing)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip(err)
	}
	r := newRig(t, config.Jobs{})
	for name, text := range map[string]string{
		"package.json": `{"private": true, "type": "module"}`,
		"index.html":   `<!doctype html><title>a page of a job</title><script type="module" src="/main.ts"></script>`,
		"main.ts":      "export const answer: number = 42\n",
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--fetch-retries=0", "vite")
	install.Dir = r.dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm fetches no vite: %v: %s", err, out)
	}
	port := freePort(t)
	got := r.start(fmt.Sprintf("npx vite --port %d --strictPort", port), "sandbox", "network", "ports", []int{port}, "ready", "Local:")
	if got.Ready == nil || !*got.Ready {
		t.Fatalf("the start returned %+v", got)
	}
	client := &http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	for path, want := range map[string]string{"/": "a page of a job", "/main.ts": "export const answer = 42", "/@vite/client": "HMRContext"} {
		text, err := fetch(t.Context(), client, fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %.300q, %v", path, text, err)
		}
	}
	out := r.call("execute_command", map[string]any{"command": fmt.Sprintf("curl -s http://127.0.0.1:%d/main.ts || python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:%d/main.ts\").read().decode())'", port, port)})
	if !strings.Contains(out.Text, "export const answer") {
		t.Errorf("another command got %+v", out)
	}
	if killed := r.call("job__kill", map[string]any{"id": got.Job}); killed.Status != "killed" {
		t.Errorf("the kill returned %+v", killed)
	}
	if left := processes(t, r.dir); left != "" {
		t.Errorf("left are %s", left)
	}
}
