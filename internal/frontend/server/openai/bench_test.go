package openai_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/app"
	"loki/internal/frontend/server/openai"
	"loki/internal/frontend/server/rest"
)

// BenchmarkCompletion answers short chat completions, without the network.
func BenchmarkCompletion(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(files["config.yaml"]), 0o600); err != nil {
		b.Fatal(err)
	}
	core, err := app.New(app.Options{Environ: []string{"LOKI_CONFIG_DIR=" + dir, "HOME=" + dir}})
	if err != nil {
		b.Fatal(err)
	}
	defer core.Close()
	a := rest.New(rest.Options{Hide: core.Hide})
	openai.Register(a, openai.Options{App: core, Lanes: new(rest.Lanes)})
	body := said("builtin:echo", "Hello", "")
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		a.ServeHTTP(w, rest.Begin(w, r))
		if w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
