package models

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
)

const download1 = `
- provider: openai
  models:
    - {name: new, prise: 3}
    - {name: vec, type: embedding}
`

// serve answers every request with status and body.
func serve(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestSync(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "config", "models-override.yaml")
	got, err := Sync(t.Context(), nil, serve(t, 200, download1), dest, "7.0")
	if err != nil {
		t.Fatal(err)
	}
	if got.Providers != 1 || got.Models != 2 || len(got.Warnings) != 1 {
		t.Errorf("got %+v", got)
	}
	providers, problems, _ := Load(dest, "7.0")
	if want := "openai/chat/new openai/embedding/vec"; ids(providers) != want || len(problems) > 0 {
		t.Errorf("got %s, %v; want %s", ids(providers), problems, want)
	}
	if _, problems, outdated := Load(dest, "7.1"); len(problems) > 0 || outdated != "7.0" {
		t.Errorf("for the next version it is outdated %q, with problems %v", outdated, problems)
	}
	info, err := os.Stat(dest)
	if err != nil || info.Mode().Perm()&0o077 != 0o044 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestSyncKeepsLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "dotfiles.yaml"), filepath.Join(dir, "models-override.yaml")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if _, err := Sync(t.Context(), nil, serve(t, 200, download1), link, "1"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if text, _ := os.ReadFile(target); !strings.HasPrefix(string(text), `{"version":"1"`) {
		t.Errorf("the target holds %.40q", text)
	}
}

func TestSyncErrors(t *testing.T) {
	for _, tt := range []struct {
		name, address string
		code          fault.Code
		want          string
	}{
		{"no_address", "", fault.Config, "no address to download the list of models from"},
		{"bad_address", "http://[::1", fault.Failure, "cannot fetch the list of models: "},
		{"other_scheme", "ftp://x/y", fault.Failure, "unsupported protocol scheme"},
		{"status", serve(t, 404, download1), fault.Failure, "answered 404 Not Found"},
		{"page", serve(t, 200, "<!DOCTYPE html>\n<html><body>hello</body></html>"), fault.Failure, "the downloaded file is not a list of models: "},
		{"not_yaml", serve(t, 200, "- {"), fault.Failure, "the downloaded file is not a list of models: "},
		{"wrong_type", serve(t, 200, "- {provider: p, models: [{name: n, input_price: x}]}"), fault.Failure, ":1:49: [0].models[0].input_price: expected a number"},
		{"empty", serve(t, 200, ""), fault.Failure, "expected a list, found"},
		{"no_models", serve(t, 200, "- {provider: p, models: []}"), fault.Failure, "no model is in it"},
		{"too_large", serve(t, 200, strings.Repeat("# padding\n", maxDownload/10+1)), fault.Failure, "more than 4 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			dest := filepath.Join(dir, "models-override.yaml")
			if err := os.WriteFile(dest, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Sync(t.Context(), nil, tt.address, dest, "1")
			if err == nil || !strings.Contains(err.Error(), tt.want) || fault.CodeOf(err) != tt.code || fault.HintOf(err) == "" {
				t.Errorf("code %s: %v (hint %q), want %s: %s", fault.CodeOf(err), err, fault.HintOf(err), tt.code, tt.want)
			}
			if text, _ := os.ReadFile(dest); string(text) != "old" {
				t.Errorf("the file now holds %.40q", text)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 1 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

func TestSyncHidesPassword(t *testing.T) {
	address := strings.Replace(serve(t, 500, ""), "http://", "http://me:sesame@", 1)
	if _, err := Sync(t.Context(), nil, address, filepath.Join(t.TempDir(), "x"), "1"); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("error %v", err)
	}
}

func TestSyncCannotWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Sync(t.Context(), nil, serve(t, 200, download1), filepath.Join(file, "models-override.yaml"), "1")
	if err == nil || !strings.HasPrefix(err.Error(), "cannot save the list of models: ") {
		t.Errorf("error %v", err)
	}
	// A directory cannot be replaced by a file.
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Sync(t.Context(), nil, serve(t, 200, download1), filepath.Join(dir, "d"), "1"); err == nil {
		t.Error("no error for a directory")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}

// silent never answers.
type silent struct{}

func (silent) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// stuck answers, and then sends no body.
type stuck struct{}

func (stuck) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Status: "200 OK", Body: io.NopCloser(waiting{req.Context()}), Request: req}, nil
}

type waiting struct{ ctx context.Context }

func (w waiting) Read([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

func TestSyncTimeLimit(t *testing.T) {
	for name, transport := range map[string]http.RoundTripper{"silent": silent{}, "stuck": stuck{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				_, err := Sync(t.Context(), &http.Client{Transport: transport}, "http://example.com", filepath.Join(t.TempDir(), "x"), "1")
				if err == nil || !strings.HasSuffix(err.Error(), "no complete answer within 16s") {
					t.Errorf("error %v", err)
				}
				if took := time.Since(begin); took != 16*time.Second {
					t.Errorf("after %v", took)
				}
			})
		})
	}
}

func TestSyncCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Sync(ctx, &http.Client{Transport: silent{}}, "http://example.com", filepath.Join(t.TempDir(), "x"), "1")
	if !errors.Is(err, context.Canceled) || fault.CodeOf(err) != fault.Canceled {
		t.Errorf("code %s: %v", fault.CodeOf(err), err)
	}
}
