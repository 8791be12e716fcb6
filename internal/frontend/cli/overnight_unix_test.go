//go:build unix

package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"
)

// daily is a provider that takes 20 calls at once, and some calls until it has asked for a long wait.
type daily struct {
	mu                       sync.Mutex
	atWork, answers, refused int
	left                     int       // calls of the first day
	opens                    time.Time // the second day
}

func (d *daily) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	d.mu.Lock()
	if d.left == 0 && d.opens.IsZero() {
		d.opens = time.Now().Add(4 * time.Second)
	}
	wait := max(0, time.Until(d.opens))
	if wait > 0 || d.atWork >= 20 {
		d.refused++
		d.mu.Unlock()
		w.Header().Set("Retry-After", fmt.Sprint(1+int(wait/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"message":"too many requests"}}`)
		return
	}
	d.left--
	d.atWork++
	d.mu.Unlock()
	time.Sleep(50 * time.Millisecond) // what a reply takes
	d.mu.Lock()
	d.atWork--
	d.answers++
	d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"a summary"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`)
}

// TestOvernight runs the commands of docs/limits.md for 500 documents, against a provider that takes so many calls a day.
func TestOvernight(t *testing.T) {
	page, err := os.ReadFile("../../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)## 500 documents overnight\n.*?\n```sh\n(.*?)\n```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no such commands")
	}
	dir := t.TempDir()
	for i := range 500 {
		write(t, filepath.Join(dir, "reports", fmt.Sprintf("%03d.txt", i)), fmt.Sprintf("Report %d says that all is well.\n", i))
	}
	config := filepath.Join(dir, "home", "config", "config.yaml")
	write(t, config, "clients: [{type: openai, extra: {retries: 0}, limits: {park_after: 2s}}]\nstream: false\n")
	provider := &daily{left: 300}
	server := httptest.NewServer(provider)
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", string(block[1]))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "LOKI_CONFIG_DIR="+filepath.Dir(config), "LOKI_STATE_DIR="+filepath.Join(dir, "state"),
		"OPENAI_API_KEY=k", "OPENAI_API_BASE="+server.URL, "LOKI_TRUSTED_DIRS="+dir)
	out, err := cmd.CombinedOutput()
	provider.mu.Lock()
	defer provider.mu.Unlock()
	if err != nil || provider.answers != 501 || !regexp.MustCompile(`(?m)^▸ waiting for the provider`).Match(out) {
		t.Errorf("%v, %d answers, %d refused:\n%.4000s", err, provider.answers, provider.refused, out[max(0, len(out)-4000):])
	}
}
