//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestInterruptBuild interrupts the build of a knowledge base while the embedding model works: the
// program says how to go on, and the next build pays for the rest only.
func TestInterruptBuild(t *testing.T) {
	const documents, before = 40, 20
	var (
		served atomic.Int32
		free   atomic.Bool
	)
	stuck := make(chan struct{}, documents)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if n := served.Add(1); n > before && !free.Load() {
			stuck <- struct{}{}
			<-r.Context().Done()
			return
		}
		var data []string
		for i := range body.Input {
			data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[1,%d]}`, i, i))
		}
		fmt.Fprintf(w, `{"data":[%s],"usage":{"prompt_tokens":1}}`, strings.Join(data, ","))
	}))
	defer server.Close()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "home", "config", "config.yaml"), fmt.Sprintf(`
clients:
  - type: openai-compatible
    name: local
    api_base: %s
    models: [{name: embed, type: embedding, max_batch_size: 1}]
`, server.URL))
	for i := range documents {
		write(t, filepath.Join(dir, "notes", fmt.Sprintf("%02d.md", i)), fmt.Sprintf("Note %d.\n", i))
	}
	build := func(interrupt bool, args ...string) (stderr string, status int) {
		cmd := exec.CommandContext(t.Context(), "loki", append([]string{"--rag", "notes"}, args...)...)
		cmd.Dir, cmd.Env = dir, emptyHome(dir)
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if interrupt {
			<-stuck
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Wait() // the status is looked at
		return errOut.String(), cmd.ProcessState.ExitCode()
	}
	text, status := build(true, "--rag-add", "notes", "--rag-set", "embedding_model=local:embed")
	if status != 130 || !strings.Contains(text, "Canceled.") || !strings.Contains(text, "hint: what is done is kept: run the same command again to continue") {
		t.Fatalf("status %d\n%s", status, text)
	}
	free.Store(true)
	served.Store(0)
	text, status = build(false, "--rag-add", "notes", "--rag-set", "embedding_model=local:embed")
	if status != 0 || !strings.Contains(text, "resumes the interrupted build") || !strings.Contains(text, "40 documents, 40 chunks") {
		t.Errorf("status %d\n%s", status, text)
	}
	if n := served.Load(); n < 1 || n > documents-before/2 {
		t.Errorf("%d of %d documents were paid for again", n, documents)
	}
}
