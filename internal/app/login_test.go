package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/app"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// What OAuth servers answer with another status than 200 is part of the protocol: it says
// why there is no token, or that the user of a device has to be waited for.
func TestLoginReadsAnswersOfAllStatuses(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"authorization_pending","error_description":"wait"}`)
	}))
	defer server.Close()
	home := t.TempDir()
	config := `clients:
- type: gemini
  auth: oauth
  extra: {proxy: "-"}
  oauth: {flow: client_credentials, client_id: id, client_secret: s, token_url: "` + server.URL + `"}
`
	if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(app.Options{Environ: []string{"LOKI_CONFIG_DIR=" + home, "XDG_CACHE_HOME=" + home, "HOME=" + home}})
	if err != nil {
		t.Fatal(err)
	}
	err = a.Authenticate(t.Context(), "gemini", nil)
	if err == nil || !strings.Contains(err.Error(), "the server answers: authorization_pending wait") {
		t.Error(err)
	}
}

// A client that speaks the OpenAI protocol sends the token of its login, not a key.
func TestLoginOfCompatibleClient(t *testing.T) {
	t.Parallel()
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/token" {
			fmt.Fprint(w, `{"access_token":"tok-1","token_type":"Bearer","expires_in":3600}`)
			return
		}
		sent = r.Header.Get("Authorization")
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	home := t.TempDir()
	config := `clients:
- type: openai-compatible
  name: gateway
  api_base: ` + server.URL + `
  api_key: never-sent
  auth: oauth
  extra: {proxy: "-"}
  oauth: {flow: client_credentials, client_id: id, client_secret: s, token_url: "` + server.URL + `/token"}
- type: cohere
  auth: oauth
`
	if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(app.Options{Environ: []string{"LOKI_CONFIG_DIR=" + home, "XDG_CACHE_HOME=" + home, "XDG_STATE_HOME=" + home, "HOME=" + home}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Authenticate(t.Context(), "gateway", nil); err != nil {
		t.Fatal(err)
	}
	m, err := a.Models.ChatModel(t.Context(), "gateway:m")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range m.Provider.Chat(t.Context(), provider.Request{Model: "m", Messages: []chat.Message{chat.Text(chat.User, "hi")}}) {
		if err != nil {
			t.Error(err)
		}
	}
	if sent != "Bearer tok-1" {
		t.Errorf("sent %q", sent)
	}
	if _, err := a.Models.ChatModel(t.Context(), "cohere:command-a-03-2025"); err == nil || !strings.Contains(err.Error(), "clients of type cohere do not log in with OAuth") {
		t.Errorf("a login that has no effect is accepted: %v", err)
	}
}

// The settings of a server's login may have the names of other programs.
func TestLoginOfServerInCamelCase(t *testing.T) {
	t.Parallel()
	var user, password string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ = r.BasicAuth()
		if user == "" {
			user, password = r.FormValue("client_id"), r.FormValue("client_secret")
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"tok","token_type":"Bearer","expires_in":3600}`)
	}))
	defer server.Close()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "functions"), 0o700); err != nil {
		t.Fatal(err)
	}
	servers := `{"mcpServers": {"a": {"url": "http://127.0.0.1:1/mcp", "oauth": {"flow": "client_credentials", "clientId": "me", "clientSecret": "s3",
		"callbackPort": 8085, "token_url": "` + server.URL + `"}}}}`
	if err := os.WriteFile(filepath.Join(home, "functions", "mcp.json"), []byte(servers), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(app.Options{Environ: []string{"LOKI_CONFIG_DIR=" + home, "XDG_CACHE_HOME=" + home, "XDG_STATE_HOME=" + home, "HOME=" + home}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Authenticate(t.Context(), "mcp:a", nil); err != nil {
		t.Fatal(err)
	}
	if user != "me" || password != "s3" {
		t.Errorf("logged in as %q with %q", user, password)
	}
}
