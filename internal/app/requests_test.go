package app_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"loki/internal/app"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
)

// recorder answers every request as answer says, which gets its path, and keeps them.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	requests []recorded
}

type recorded struct {
	path   string
	header http.Header
	body   string
}

func newRecorder(t *testing.T, answer func(path string) string) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Errorf("body: %v", err)
		}
		r.mu.Lock()
		r.requests = append(r.requests, recorded{req.URL.Path, req.Header, string(body)})
		r.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer(req.URL.Path))
	}))
	t.Cleanup(r.Close)
	return r
}

// newApp returns a program with this config.yaml, and its directory.
func newApp(t *testing.T, config string, environ ...string) (*app.App, string) {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	environ = append(environ, "LOKI_CONFIG_DIR="+home, "XDG_CACHE_HOME="+home, "XDG_STATE_HOME="+home, "HOME="+home)
	a, err := app.New(app.Options{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	return a, home
}

// askOnce asks a model one question.
func askOnce(t *testing.T, a *app.App, id string) providertest.Reply {
	t.Helper()
	m, err := a.Models.ChatModel(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return providertest.Collect(t, m.Provider.Chat(t.Context(), provider.Request{
		Model: m.Name, MaxOutputTokens: m.MaxOutputTokens, Messages: []chat.Message{chat.Text(chat.User, "Hi")},
	}))
}

// serviceAccount returns a file of credentials whose tokens come from tokenURL.
func serviceAccount(t *testing.T, tokenURL string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "me@project", "token_uri": tokenURL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The patch of a model is for the model's requests. A request for an access token, which
// is made on the way, goes where it has to go, as it is.
func TestTokenRequestsAreNotPatched(t *testing.T) {
	t.Parallel()
	const (
		claude = `{"type":"message","role":"assistant","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
		gemini = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello"}]},"finishReason":"STOP"}]}`
		patch  = `{url: "%[1]s/patched", headers: {X-Team: research, Authorization: null}, body: {labels: {team: research}}}`
	)
	for _, tt := range []struct {
		name, model, config, reply string
		grant                      string
	}{
		{
			"vertexai", "vertexai:claude-opus-5-5", `clients:
- type: vertexai
  project_id: p
  location: global
  adc_file: %[2]s
  api_base: "%[1]s/v1"
  extra: {proxy: "-"}
  models: [{name: claude-opus-5-5, patch: ` + patch + `}]
`, claude, "urn:ietf:params:oauth:grant-type:jwt-bearer",
		},
		{
			"oauth", "gemini:gemini-3-pro", `clients:
- type: gemini
  auth: oauth
  api_base: "%[1]s/v1beta"
  extra: {proxy: "-"}
  oauth: {flow: client_credentials, client_id: id, client_secret: s, token_url: "%[1]s/token", token_body: form}
  models: [{name: gemini-3-pro, patch: ` + patch + `}]
  # %[2]s
`, gemini, "client_credentials",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := newRecorder(t, func(path string) string {
				if path == "/token" {
					return `{"access_token":"ya29.token","refresh_token":"r2","expires_in":3600,"token_type":"Bearer"}`
				}
				return tt.reply
			})
			a, _ := newApp(t, fmt.Sprintf(tt.config, server.URL, serviceAccount(t, server.URL+"/token")))
			if tt.name == "oauth" { // a token that has to be renewed
				if err := os.MkdirAll(a.Paths.OAuthDir, 0o700); err != nil {
					t.Fatal(err)
				}
				old := `{"access_token":"old","refresh_token":"r1","expires_at":1}`
				if err := os.WriteFile(filepath.Join(a.Paths.OAuthDir, "gemini_oauth_tokens.json"), []byte(old), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if r := askOnce(t, a, tt.model); r.Err != nil || r.Text != "Hello" {
				t.Errorf("text %q, error %v", r.Text, r.Err)
			}
			if len(server.requests) != 2 {
				t.Fatalf("%d requests, want one for a token and one for a reply: %+v", len(server.requests), server.requests)
			}
			token, reply := server.requests[0], server.requests[1]
			form, err := url.ParseQuery(token.body)
			if err != nil || token.path != "/token" || form.Get("grant_type") != tt.grant || token.header.Get("X-Team") != "" || strings.Contains(token.body, "labels") {
				t.Errorf("request for a token = %+v, %v", token, err)
			}
			if reply.path != "/patched" || reply.header.Get("X-Team") != "research" || reply.header.Get("Authorization") != "" || !strings.Contains(reply.body, `"labels":{"team":"research"}`) {
				t.Errorf("request for a reply = %+v", reply)
			}
		})
	}
}

// At level trace the log has what was sent to providers, and no secret.
func TestLogShowsRequests(t *testing.T) {
	t.Parallel()
	const reply = `{"choices":[{"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}`
	for _, tt := range []struct {
		name  string
		env   []string
		shown bool
	}{
		{"level", []string{"LOKI_LOG_LEVEL=trace"}, true},
		{"filter", []string{"LOKI_LOG_FILTER=provider=trace"}, true},
		{"filter_with_program", []string{"LOKI_LOG_FILTER=loki::provider=trace"}, true},
		{"debug", []string{"LOKI_LOG_LEVEL=debug"}, false},
		{"other_package", []string{"LOKI_LOG_FILTER=graph=trace"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := newRecorder(t, func(string) string { return reply })
			a, _ := newApp(t, `clients:
- type: openai
  api_base: "`+server.URL+`/v1"
  api_key: needle-of-the-key
  extra: {proxy: "-"}
  models: [{name: m, patch: {headers: {X-Secret: needle-of-the-patch, X-Team: research}, body: {seed: 7}}}]
`, tt.env...)
			_, done := a.Observe(t.Context())
			if r := askOnce(t, a, "openai:m"); r.Err != nil {
				t.Error(r.Err)
			}
			if warnings := done(t.Context()); len(warnings) > 0 {
				t.Error(warnings)
			}
			log, err := os.ReadFile(a.Paths.LogFile)
			if !tt.shown {
				if strings.Contains(string(log), "Hi") || strings.Contains(string(log), "provider request") {
					t.Errorf("log = %s", log)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				"provider/wire/transport.go:", "method=POST", "url=" + server.URL + "/v1/chat/completions",
				"X-Team=research", `\"content\":\"Hi\"`, `\"seed\":7`, "status=200", "Authorization=",
			} {
				if !strings.Contains(string(log), want) {
					t.Errorf("log lacks %s", want)
				}
			}
			if strings.Contains(string(log), "needle") {
				t.Error("the log holds a secret")
			}
			if t.Failed() {
				t.Logf("%s", log)
			}
		})
	}
}

// What the catalog knows of a model reaches its provider: the newest models of OpenAI
// reason and use tools, with the effort that the user asks for.
func TestCatalogRoutesToolsOfOpenAI(t *testing.T) {
	t.Parallel()
	server := newRecorder(t, func(path string) string {
		if path == "/v1/responses" {
			return `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]}`
		}
		return `{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}`
	})
	a, _ := newApp(t, `clients:
- type: openai
  api_base: "`+server.URL+`/v1"
  api_key: k
  extra: {proxy: "-"}
`)
	for _, tt := range []struct {
		model  string
		effort provider.Effort
		tools  bool
		want   string // path and effort
	}{
		{"gpt-6-sol", "", false, "/v1/chat/completions "},
		{"gpt-6-sol", "max", false, "/v1/chat/completions max"},
		{"gpt-6-sol", "high", true, "/v1/responses high"},
		{"gpt-6-sol", "none", true, "/v1/chat/completions none"},
		{"gpt-6-sol-low", "", true, "/v1/responses low"},
		{"gpt-6-sol-low", "high", true, "/v1/responses high"},
		{"gpt-6.1-sol", "", true, "/v1/responses "},
	} {
		m, err := a.Models.ChatModel(t.Context(), "openai:"+tt.model)
		if err != nil {
			t.Fatal(err)
		}
		if !m.SupportsTools {
			t.Errorf("%s is offered no tools", tt.model)
		}
		req := provider.Request{Model: m.Name, Sampling: chat.Sampling{Effort: tt.effort}, Messages: []chat.Message{chat.Text(chat.User, "Hi")}}
		if tt.tools {
			req.Tools = []chat.Tool{{Name: "f"}}
		}
		if r := providertest.Collect(t, m.Provider.Chat(t.Context(), req)); r.Text != "Hello" {
			t.Errorf("text %q, error %v", r.Text, r.Err)
		}
		sent := server.requests[len(server.requests)-1]
		var body struct {
			Effort    string `json:"reasoning_effort"`
			Reasoning struct{ Effort string }
		}
		if err := json.Unmarshal([]byte(sent.body), &body); err != nil {
			t.Fatal(err)
		}
		if got := sent.path + " " + body.Effort + body.Reasoning.Effort; got != tt.want {
			t.Errorf("%s with effort %q: %s, want %s", tt.model, tt.effort, got, tt.want)
		}
	}
}
