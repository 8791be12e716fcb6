package app_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"loki/internal/base/fault"
)

// TestAdvice: a failure says what it means, with the address, and where what is wrong was
// configured.
func TestAdvice(t *testing.T) {
	t.Parallel()
	answers := func(status int, body string) func() string {
		return func() string {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				fmt.Fprint(w, body)
			}))
			t.Cleanup(server.Close)
			return server.URL
		}
	}
	silent := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return "http://" + l.Addr().String()
	}
	unknown := func() string { return "http://no-such-host.invalid" }
	denied := answers(http.StatusUnauthorized, `{"error":{"message":"Incorrect API key provided"}}`)
	for _, tt := range []struct {
		name   string
		base   func() string
		client string // %s is the address
		env    []string
		model  string
		err    string // in the message
		hint   string // all of it; BASE and HOME stand for the address and the directory
	}{
		{
			"key_of_file", denied, "type: openai\n  api_key: sk-wrong\n  api_base: %s/v1", nil, "openai:m",
			"Incorrect API key", "the key comes from api_key of client openai at HOME/config.yaml:2:3",
		},
		{
			"key_of_variable", denied, "type: openai\n  api_key: sk-other\n  api_base: %s/v1",
			[]string{"OPENAI_API_KEY=sk-wrong"},
			"openai:m",
			"Incorrect API key", "the key comes from environment variable OPENAI_API_KEY",
		},
		{
			"key_in_quotes", denied, "type: openai\n  api_base: %s/v1",
			[]string{`OPENAI_API_KEY="sk-wrong"`},
			"openai:m",
			"Incorrect API key", "the key has quotation marks, which are sent, too; it comes from environment variable OPENAI_API_KEY",
		},
		{
			"no_tools", answers(http.StatusNotFound, `{"error":{"message":"No endpoints found that support tool use."}}`), "type: openai-compatible\n  name: my-server\n  api_base: %s/v1", nil, "my-server:m",
			"support tool use", "set supports_function_calling: false for the model, under models of client my-server in config.yaml, or take another model with -m",
		},
		{
			"no_system_message", answers(http.StatusBadRequest, `{"error":{"message":"Developer instruction is not enabled for models/gemma"}}`), "type: openai-compatible\n  name: my-server\n  api_base: %s/v1", nil, "my-server:m",
			"Developer instruction", "set no_system_message: true for the model, under models of client my-server in config.yaml",
		},
		{
			"no_images", answers(http.StatusBadRequest, `{"error":{"message":"image_url is only supported by certain models"}}`), "type: openai-compatible\n  name: my-server\n  api_base: %s/v1", nil, "my-server:m",
			"image_url", "the model takes no images: leave them out, or take a model that does with -m",
		},
		{
			"no_key_at_all", denied, "type: openai\n  api_base: %s/v1", nil, "openai:m",
			"client openai has no API key: set OPENAI_API_KEY, or api_key in its configuration", "export OPENAI_API_KEY=..., or let loki --setup ask for the key and encrypt it",
		},
		{
			"no_key", denied, "type: openai-compatible\n  name: my-server\n  api_base: %s/v1", nil, "my-server:m",
			"Incorrect API key", "no key was sent: set MY_SERVER_API_KEY, or api_key of client my-server",
		},
		{
			"without_version", answers(http.StatusNotFound, "404 page not found"), "type: openai-compatible\n  name: s\n  api_base: %s", nil, "s:m",
			"BASE/chat/completions answers: 404 page not found (HTTP 404)", "api_base may lack the version: try BASE/v1 in api_base of client s at HOME/config.yaml:2:3",
		},
		{
			"not_without_version", answers(http.StatusNotFound, "404 page not found"), "type: openai-compatible\n  name: s\n  api_base: %s/v1", nil, "s:m",
			"BASE/v1/chat/completions answers: 404", "",
		},
		{
			"near_model", answers(http.StatusNotFound, `{"error":{"message":"The model ecoh does not exist"}}`), "type: openai-compatible\n  name: s\n  api_base: %s/v1\n  models: [{name: echo}]", nil, "s:ecoh",
			"The model ecoh does not exist", "did you mean s:echo?",
		},
		{
			"ollama", silent, "type: openai-compatible\n  name: ollama\n  api_base: %s/v1", nil, "ollama:m",
			"asking BASE/v1/chat/completions: no server listens at", "is the server running? start it with: ollama serve, or correct api_base of client ollama at HOME/config.yaml:2:3",
		},
		{
			"refused", silent, "type: claude\n  api_key: k",
			[]string{"CLAUDE_API_BASE=%s/v1"},
			"claude:m",
			"(connection refused)", "is the server running? start it, or correct environment variable CLAUDE_API_BASE",
		},
		{
			"unknown_host", unknown, "type: openai-compatible\n  name: s\n  api_base: %s/v1", nil, "s:m",
			"the host no-such-host.invalid is not known (no such host)", "check api_base of client s at HOME/config.yaml:2:3, the connection to the network, and extra.proxy if you need a proxy",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := tt.base()
			var env []string
			for _, v := range tt.env {
				env = append(env, strings.ReplaceAll(v, "%s", base))
			}
			a, home := newApp(t, "clients:\n- "+strings.ReplaceAll(tt.client, "%s", base)+"\n  extra: {proxy: \"-\", retries: 0}\n", env...)
			r := askOnce(t, a, tt.model)
			if r.Err == nil {
				t.Fatal("no error")
			}
			plain := strings.NewReplacer(base, "BASE", home, "HOME")
			if msg := plain.Replace(r.Err.Error()); !strings.Contains(msg, tt.err) || strings.Contains(msg, "sk-") || strings.Contains(msg, "dial tcp") {
				t.Errorf("error %s", msg)
			}
			hint := plain.Replace(fault.HintOf(r.Err))
			if tt.name == "unknown_host" && !strings.Contains(r.Err.Error(), "not known") {
				t.Skip("the name server of this machine does not say that a name is unknown")
			}
			if hint != tt.hint {
				t.Errorf("hint %q\nwant %q", hint, tt.hint)
			}
			if fault.CodeOf(r.Err) != fault.Provider {
				t.Errorf("code %s", fault.CodeOf(r.Err))
			}
		})
	}
}

// TestKeyOfMaker: the variables in which the makers' own programs look for a key are looked
// at too, after those of the client, and never for another server.
func TestKeyOfMaker(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, client, field string
		env                 []string
		want                string
	}{
		{"anthropic", "{type: claude}", "claude", []string{"ANTHROPIC_API_KEY=maker"}, "maker"},
		{"google", "{type: gemini, name: g}", "g", []string{"GOOGLE_API_KEY=maker"}, "maker"},
		{"own_variable_first", "{type: claude}", "claude", []string{"ANTHROPIC_API_KEY=maker", "CLAUDE_API_KEY=own"}, "own"},
		{"file_first", "{type: gemini, api_key: file}", "gemini", []string{"GOOGLE_API_KEY=maker"}, "file"},
		{"other_server", "{type: claude, api_base: 'https://proxy.test/v1'}", "claude", []string{"ANTHROPIC_API_KEY=maker"}, ""},
		{"other_server_by_variable", "{type: claude}", "claude", []string{"ANTHROPIC_API_KEY=maker", "CLAUDE_API_BASE=https://proxy.test/v1"}, ""},
		{"other_type", "{type: openai}", "openai", []string{"ANTHROPIC_API_KEY=maker"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, _ := newApp(t, "clients: ["+tt.client+"]\n", tt.env...)
			got, err := a.Config.Client(tt.field).Field(a.Env, "api_key")
			if err != nil || got != tt.want {
				t.Errorf("key %q, error %v, want %q", got, err, tt.want)
			}
		})
	}
}
