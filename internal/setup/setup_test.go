package setup

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/base/file/vault"
	"loki/internal/llm/catalog"
	"loki/internal/llm/catalog/models"
	"loki/internal/llm/provider/local"
	"loki/internal/setup/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// memory is a vault without a file.
type memory struct {
	secrets  map[string]string
	password string // path of its file; "" until there is one
	declines bool
}

var errDeclinedPassword = errors.New("no password")

func (m *memory) List(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(m.secrets)), nil
}

func (m *memory) Get(_ context.Context, name string) (string, error) { return m.secrets[name], nil }

func (m *memory) Add(_ context.Context, name, text string) error {
	if _, there := m.secrets[name]; there || m.password == "" {
		return errors.New("there is one, or no password")
	}
	m.secrets[name] = text
	return nil
}

func (m *memory) Update(_ context.Context, name, text string) error {
	if _, there := m.secrets[name]; !there {
		return errors.New("there is none")
	}
	m.secrets[name] = text
	return nil
}

func (m *memory) CreatePassword(_ context.Context, _ ask.Asker, keychain bool) (vault.Place, error) {
	if m.declines {
		return vault.Place{}, errDeclinedPassword
	}
	m.password = "/home/me/.loki_password"
	if keychain {
		return vault.Place{Keychain: true}, nil
	}
	return vault.Place{File: m.password}, nil
}

// fixture is a wizard in a test.
type fixture struct {
	Options
	vault *memory
	asker *asktest.Scripted
	notes []string
}

func newFixture(t *testing.T, answers ...string) *fixture {
	f := &fixture{vault: &memory{secrets: make(map[string]string)}, asker: asktest.NewScripted(answers...)}
	f.Options = Options{
		File: filepath.Join(t.TempDir(), "config", "config.yaml"), Asker: f.asker, Vault: f.vault, Known: models.BuiltinList(),
		VaultFile: "/home/me/.config/loki/vault.yml",
		Note:      func(text string) { f.notes = append(f.notes, text) },
	}
	return f
}

// load reads the configuration that was written, in which nothing may be wrong.
func (f *fixture) load(t *testing.T, vars ...string) (*config.Config, *catalog.Catalog) {
	t.Helper()
	env := config.NewEnv("linux", append(vars, "HOME=/home/me", "LOKI_CONFIG_FILE="+f.File))
	paths, err := config.NewPaths(env)
	if err != nil {
		t.Fatal(err)
	}
	cfg, warnings, err := config.Load(paths, env)
	if err != nil || len(warnings) > 0 {
		text, _ := os.ReadFile(f.File)
		t.Fatalf("%v, warnings %v in\n%s", err, warnings, text)
	}
	cfg.UseSecrets(func(name string) (string, error) { return f.vault.Get(t.Context(), name) })
	return cfg, cfg.Catalog(f.Known...)
}

// openAI serves a list of models to whoever has the key.
func openAI(t *testing.T, key string, body string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := ""
		if key != "" {
			want = "Bearer " + key
		}
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		if r.Header.Get("Authorization") != want {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

const list = `{"data":[{"id":"zeta-chat"},{"id":"bge-small"},{"id":"llava-vision"},{"id":"my-rerank"},{"id":"zeta-chat"}]}`

func TestRun(t *testing.T) {
	base := openAI(t, "sk-1", list)
	ollama := local.Server{Kind: local.Ollama, BaseURL: "http://127.0.0.1:11434/v1", Models: []string{"gemma3:latest", "llama3.2:latest"}}
	firstOf := func(client, typ string) string {
		m, err := catalog.New([]catalog.Client{{Name: client, Type: typ}}, models.BuiltinList()).Default()
		if err != nil {
			t.Fatal(err)
		}
		return modelLabels(ofClient(slices.Collect(catalog.New([]catalog.Client{{Name: client, Type: typ}}, models.BuiltinList()).Models(catalog.Chat)), client))[0] + "\x00" + m.ID()
	}
	label := func(client, typ string) string { l, _, _ := strings.Cut(firstOf(client, typ), "\x00"); return l }
	for _, tt := range []struct {
		name    string
		answers []string
		env     map[string]string
		servers []local.Server
		stored  map[string]string
		model   string
		fields  map[string]string // of the client
		secrets map[string]string // in the vault afterwards
		ids     []catalog.Type
	}{
		{
			name: "key", answers: []string{"Yes", "openai", "sk-secret", label("openai", "openai")},
			model: firstOf("openai", "openai"), fields: map[string]string{"api_key": "sk-secret"},
			secrets: map[string]string{"OPENAI_API_KEY": "sk-secret"},
		},
		{
			name: "key_in_environment", answers: []string{"Yes", "claude", "API key", label("claude", "claude")}, env: map[string]string{"CLAUDE_API_KEY": "sk-env"},
			model: firstOf("claude", "claude"), fields: map[string]string{"api_key": "sk-env"},
		},
		{
			name: "stored_key", answers: []string{"Yes", "gemini", "API key", "Yes", label("gemini", "gemini")}, stored: map[string]string{"GEMINI_API_KEY": "old"},
			model: firstOf("gemini", "gemini"), fields: map[string]string{"api_key": "old"}, secrets: map[string]string{"GEMINI_API_KEY": "old"},
		},
		{
			name: "replaced_key", answers: []string{"Yes", "gemini", "API key", "No", "new", label("gemini", "gemini")}, stored: map[string]string{"GEMINI_API_KEY": "old"},
			model: firstOf("gemini", "gemini"), fields: map[string]string{"api_key": "new"}, secrets: map[string]string{"GEMINI_API_KEY": "new"},
		},
		{
			name: "oauth", answers: []string{"Yes", "gemini", "OAuth", "my-id", "shhh", label("gemini", "gemini")},
			model: firstOf("gemini", "gemini"), fields: map[string]string{"auth": "oauth", "api_key": ""},
			secrets: map[string]string{"GEMINI_OAUTH_CLIENT_SECRET": "shhh"},
		},
		{
			name: "bedrock", answers: []string{"Yes", "bedrock", "AKIA", "shh", "us-east-1", label("bedrock", "bedrock")},
			model: firstOf("bedrock", "bedrock"), fields: map[string]string{"access_key_id": "AKIA", "secret_access_key": "shh", "region": "us-east-1"},
			secrets: map[string]string{"BEDROCK_ACCESS_KEY_ID": "AKIA", "BEDROCK_SECRET_ACCESS_KEY": "shh"},
		},
		{
			name: "vertexai_location_in_environment", answers: []string{"Yes", "vertexai", "my-project", "", label("vertexai", "vertexai")},
			env: map[string]string{"VERTEXAI_LOCATION": "here"}, model: firstOf("vertexai", "vertexai"),
			fields: map[string]string{"project_id": "my-project", "location": "here"},
		},
		{
			name: "azure_models_are_typed", answers: []string{"Yes", "azure-openai", "https://r.openai.azure.com", "k", " one , two,one"},
			model: "", fields: map[string]string{"api_base": "https://r.openai.azure.com", "api_key": "k"},
			secrets: map[string]string{"AZURE-OPENAI_API_KEY": "k"},
		},
		{
			name: "compatible_server", answers: []string{"Yes", "openai-compatible", "my  server", base, "sk-1", `["zeta-chat","bge-small","llava-vision","my-rerank"]`, "llava-vision"},
			model: "my-server:llava-vision", fields: map[string]string{"api_base": base, "api_key": "sk-1"},
			secrets: map[string]string{"MY-SERVER_API_KEY": "sk-1"}, ids: []catalog.Type{catalog.Chat, catalog.Embedding, catalog.Chat, catalog.Reranker},
		},
		{
			name: "wrong_key_models_are_typed", answers: []string{"Yes", "openai-compatible", "x", base, "", "only"},
			model: "x:only", fields: map[string]string{"api_base": base}, ids: []catalog.Type{catalog.Chat},
		},
		{
			name: "no_chat_model", answers: []string{"Yes", "openai-compatible", "x", base, "sk-1", `["bge-small"]`},
			fields: map[string]string{"api_base": base}, secrets: map[string]string{"X_API_KEY": "sk-1"}, ids: []catalog.Type{catalog.Embedding},
		},
		{
			name: "platform", answers: []string{"Yes", "groq", "gsk", label("groq", "openai-compatible")},
			model: firstOf("groq", "openai-compatible"), fields: map[string]string{"api_base": "https://api.groq.com/openai/v1", "api_key": "gsk"},
			secrets: map[string]string{"GROQ_API_KEY": "gsk"},
		},
		{ // back from a key, and from the list of models
			name: "back", answers: []string{"Yes", "cloudflare", "back", "groq", "gsk", "back", "groq", "gsk", label("groq", "openai-compatible")},
			model: firstOf("groq", "openai-compatible"), fields: map[string]string{"api_base": "https://api.groq.com/openai/v1", "api_key": "gsk"},
			secrets: map[string]string{"GROQ_API_KEY": "gsk"},
		},
		{
			name: "placeholder_in_base", answers: []string{"Yes", "cloudflare", "https://cf.example/42", "", label("cloudflare", "openai-compatible")},
			model: firstOf("cloudflare", "openai-compatible"), fields: map[string]string{"api_base": "https://cf.example/42"},
		},
		{
			name: "local_server", answers: []string{"Yes", "Ollama, local: runs on this machine", "llama3.2:latest"}, servers: []local.Server{ollama},
			model: "ollama:llama3.2:latest", fields: map[string]string{"api_base": "http://localhost:11434/v1", "api_key": ""}, ids: []catalog.Type{catalog.Chat, catalog.Chat},
		},
		{
			name: "local_server_elsewhere", answers: []string{"Yes", "llama.cpp, local: runs on this machine"},
			servers: []local.Server{{Kind: local.LlamaCPP, BaseURL: "http://box:99/v1", Models: []string{"qwen"}}},
			model:   "llamacpp:qwen", fields: map[string]string{"api_base": "http://box:99/v1"}, ids: []catalog.Type{catalog.Chat},
		},
		{
			name: "local_server_without_models", answers: []string{"Yes", "Ollama, local: runs on this machine", "llama3.2"},
			servers: []local.Server{{Kind: local.Ollama, BaseURL: ollama.BaseURL}}, model: "ollama:llama3.2", ids: []catalog.Type{catalog.Chat},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.answers...)
			maps.Copy(f.vault.secrets, tt.stored)
			f.Servers, f.Getenv = tt.servers, func(name string) string { return tt.env[name] }
			if tt.name == "azure_models_are_typed" {
				f.asker = asktest.NewScripted(append(tt.answers, "two")...)
				f.Asker, tt.model, tt.ids = f.asker, "azure-openai:two", []catalog.Type{catalog.Chat, catalog.Chat}
			}
			result, err := Run(t.Context(), f.Options)
			if err != nil {
				t.Fatalf("%v, after %d questions", err, len(f.asker.Asked()))
			}
			_, want, ok := strings.Cut(tt.model, "\x00")
			if !ok {
				want = tt.model
			}
			if result.Model != want || result.File != f.File {
				t.Errorf("result %+v, want model %s", result, want)
			}
			var vars []string
			for name, text := range tt.env {
				vars = append(vars, name+"="+text)
			}
			cfg, known := f.load(t, vars...)
			if cfg.Model != want || len(cfg.Clients) != 1 {
				t.Fatalf("model %q of %d clients", cfg.Model, len(cfg.Clients))
			}
			if want != "" {
				if _, err := known.Resolve(want, catalog.Chat); err != nil {
					t.Error(err)
				}
			}
			env := config.NewEnv("linux", vars)
			for name, text := range tt.fields {
				if got, err := cfg.Clients[0].Field(env, name); got != text || err != nil {
					t.Errorf("%s: %q, %v, want %q", name, got, err, text)
				}
			}
			if tt.name == "oauth" {
				o, err := cfg.Clients[0].OAuth(env)
				if err != nil || o == nil || o.ClientID != "my-id" || o.ClientSecret != "shhh" {
					t.Errorf("OAuth %v, %v", o, err)
				}
			}
			if tt.secrets == nil {
				tt.secrets = map[string]string{}
			}
			if diff := cmp.Diff(tt.secrets, f.vault.secrets); diff != "" {
				t.Errorf("secrets:\n%s", diff)
			}
			var types []catalog.Type
			for _, m := range cfg.Clients[0].Models {
				types = append(types, m.Type)
			}
			if !slices.Equal(types, tt.ids) {
				t.Errorf("models of types %q, want %q", types, tt.ids)
			}
			checkFile(t, f, tt.secrets)
		})
	}
}

// checkFile looks for what must not be in the file, nor in what the user was told.
func checkFile(t *testing.T, f *fixture, secrets map[string]string) {
	t.Helper()
	text, err := os.ReadFile(f.File)
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range secrets {
		if len(secret) > 1 && strings.Contains(string(text)+strings.Join(f.notes, "\n"), secret) {
			t.Errorf("the secret %s is in the open:\n%s\n%q", name, text, f.notes)
		}
	}
	info, err := os.Stat(f.File)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode %o", mode)
	}
}

func TestFile(t *testing.T) {
	d := draft{
		typ: "openai-compatible", name: "my-server", model: "my-server:big:v2", keychain: true,
		settings: []setting{{"api_base", "http://localhost:1/v1"}, {"api_key", "{{MY-SERVER_API_KEY}}"}},
		models:   []catalog.Model{catalog.Guess("big:v2"), catalog.Guess("true"), catalog.Guess("llava-vision"), catalog.Guess("text-embed-3"), catalog.Guess("rank: \"one\"")},
	}
	golden := filepath.Join("testdata", "config.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(d.yaml()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), d.yaml()); diff != "" {
		t.Error(diff)
	}
	f := newFixture(t)
	if err := write(f.File, d.yaml()); err != nil {
		t.Fatal(err)
	}
	cfg, _ := f.load(t)
	for i, m := range cfg.Clients[0].Models {
		if m.Name != d.models[i].Name || m.Type != d.models[i].Type {
			t.Errorf("model %d is %q of type %s", i, m.Name, m.Type)
		}
	}
}

// TestAbilitiesOfLocalModels asks an Ollama what its models can do. What another server does
// not say is that a chat model calls tools.
func TestAbilitiesOfLocalModels(t *testing.T) {
	ollama := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Model string }
		_ = json.NewDecoder(r.Body).Decode(&q)
		switch q.Model {
		case "tools":
			_, _ = w.Write([]byte(`{"capabilities":["completion","tools"]}`))
		case "eyes":
			_, _ = w.Write([]byte(`{"capabilities":["completion","vision"]}`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer ollama.Close()
	f := newFixture(t, "Yes", "Ollama, local: runs on this machine", "tools")
	f.Servers = []local.Server{{Kind: local.Ollama, BaseURL: ollama.URL + "/v1", Models: []string{"tools", "eyes", "old"}}}
	if _, err := Run(t.Context(), f.Options); err != nil {
		t.Fatal(err)
	}
	cfg, _ := f.load(t)
	got := map[string][2]bool{}
	for _, m := range cfg.Clients[0].Models {
		got[m.Name] = [2]bool{m.SupportsFunctionCalling, m.SupportsVision}
	}
	want := map[string][2]bool{"tools": {true, false}, "eyes": {false, true}, "old": {true, false}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if cfg.Theme != nil {
		t.Errorf("theme: %s is set, and the terminal is not asked", *cfg.Theme)
	}
}

// TestServerRefuses: a key that the server refuses is asked for again, and an address that lacks /v1 gets it.
func TestServerRefuses(t *testing.T) {
	base := openAI(t, "sk-right", list)
	for _, tt := range []struct {
		name, base string
		answers    []string
		key        string
	}{
		{"another_key", base, []string{"sk-wrong", "sk-right", `["zeta-chat"]`}, "sk-right"},
		{"the_same_key", base, []string{"sk-wrong", "", "zeta-chat"}, "sk-wrong"},
		{"no_version", strings.TrimSuffix(base, "/v1"), []string{"sk-right", `["zeta-chat"]`}, "sk-right"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, append([]string{"Yes", "openai-compatible", "mine", tt.base}, tt.answers...)...)
			if _, err := Run(t.Context(), f.Options); err != nil {
				t.Fatal(err)
			}
			cfg, _ := f.load(t)
			if got, err := cfg.Clients[0].Field(config.NewEnv("linux", nil), "api_base"); err != nil || got != base {
				t.Errorf("the address is %s, want %s", got, base)
			}
			if got := f.vault.secrets["MINE_API_KEY"]; got != tt.key {
				t.Errorf("the key is %q, want %q", got, tt.key)
			}
		})
	}
}

// TestKeyIsChecked: a key with a line end, as a terminal pastes it, is not stored.
func TestKeyIsChecked(t *testing.T) {
	for _, key := range []string{"sk-1\nsk-2", "sk 1", "sk-1\x1b[201~"} {
		f := newFixture(t, "Yes", "openai", key)
		if _, err := Run(t.Context(), f.Options); err == nil || len(f.vault.secrets) > 0 {
			t.Errorf("%q: %v, stored %v", key, err, f.vault.secrets)
		}
	}
}

// TestNothingBeforeTheFile: where the configuration cannot be written, nothing is asked and no key is stored.
func TestNothingBeforeTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, "Yes", "openai", "sk-secret")
	f.File = filepath.Join(file, "config.yaml")
	if _, err := Run(t.Context(), f.Options); fault.CodeOf(err) != fault.Config || len(f.asker.Asked()) > 0 || len(f.vault.secrets) > 0 {
		t.Errorf("%v, asked %v, stored %v", err, f.asker.Asked(), f.vault.secrets)
	}
}

// TestAddressIsChecked at the question, not when it is used.
func TestAddressIsChecked(t *testing.T) {
	for _, base := range []string{"localhost:18431/v1", "ftp://host/v1", "http://", "/v1"} {
		f := newFixture(t, "Yes", "openai-compatible", "mine", base)
		if _, err := Run(t.Context(), f.Options); err == nil || !strings.Contains(err.Error(), "api_base") && !strings.Contains(err.Error(), "http") && !strings.Contains(err.Error(), "server") {
			t.Errorf("%s: %v", base, err)
		}
		if n := len(f.asker.Asked()); n != 4 {
			t.Errorf("%s: %d questions", base, n)
		}
	}
}

// TestLastLineNamesTheKey: where the key is, and what opens it.
func TestLastLineNamesTheKey(t *testing.T) {
	for _, keychain := range []bool{true, false} {
		f := newFixture(t, "Yes", "openai-compatible", "x", "http://127.0.0.1:1/v1", "sk-secret", "m")
		f.Keychain = keychain
		if _, err := Run(t.Context(), f.Options); err != nil {
			t.Fatal(err)
		}
		place := "/home/me/.loki_password"
		if keychain {
			place = "the keychain of the system"
		}
		want := "The key is encrypted in /home/me/.config/loki/vault.yml; " + place + " has the password that opens it."
		if got := f.notes[len(f.notes)-1]; got != want {
			t.Errorf("%q", got)
		}
		if cfg, _ := f.load(t); cfg.VaultKeychain != keychain {
			t.Errorf("vault_keychain: %v", cfg.VaultKeychain)
		}
	}
}

// TestNothingIsWritten when the user does not go through with it.
func TestNothingIsWritten(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []string
		want    error
	}{
		{"declined", []string{"No"}, ErrDeclined},
		{"closed_before_the_provider", []string{"Yes"}, ask.ErrUnavailable},
		{"closed_before_the_key", []string{"Yes", "openai"}, ask.ErrUnavailable},
		{"closed_before_the_model", []string{"Yes", "openai", "sk"}, ask.ErrUnavailable},
		{"password_declined", []string{"Yes", "openai-compatible", "x", "http://127.0.0.1:1/v1", "sk", "m"}, errDeclinedPassword},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.answers...)
			f.vault.declines = true
			if _, err := Run(t.Context(), f.Options); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if _, err := os.Stat(f.File); err == nil || len(f.vault.secrets) > 0 {
				t.Errorf("there is a file, or a secret: %v", f.vault.secrets)
			}
		})
	}
}

// TestExtends adds what is missing to a file that has other settings, and leaves the rest of
// it as it is.
func TestExtends(t *testing.T) {
	const theme = "# mine\ntheme: light # on paper"
	f := newFixture(t, "Yes", "openai", "sk-1", modelLabels(ofClient(slices.Collect(catalog.New([]catalog.Client{{Name: "openai", Type: "openai"}}, models.BuiltinList()).Models(catalog.Chat)), "openai"))[0])
	if err := write(f.File, theme); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), f.Options); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.File)
	if err != nil || !strings.HasPrefix(string(text), theme+"\nmodel: openai:") {
		t.Errorf("%v in\n%s", err, text)
	}
	cfg, _ := f.load(t)
	if len(cfg.Clients) != 1 || *cfg.Theme != "light" || cfg.Model == "" {
		t.Errorf("%d clients, theme %s, model %q", len(cfg.Clients), *cfg.Theme, cfg.Model)
	}
	for text, want := range map[string]bool{
		"": true, "# nothing\n": true, "theme: light": true, "wrap: no\n...": false,
		"model: m": false, "clients: []": false, "clients:": false, "{theme: light}": false, "- a": false, "a: [": false,
	} {
		if got := Extends([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestNeverOverAnotherFile(t *testing.T) {
	f := newFixture(t, "Yes")
	if err := write(f.File, "model: mine\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), f.Options); err == nil || len(f.asker.Asked()) > 0 {
		t.Errorf("%v, after %d questions", err, len(f.asker.Asked()))
	}
	if err := write(f.File, "model: other\n"); err == nil {
		t.Error("written over")
	}
	if text, _ := os.ReadFile(f.File); string(text) != "model: mine\n" {
		t.Errorf("%q", text)
	}
}

func TestWhatRunsHereIsOfferedFirst(t *testing.T) {
	f := newFixture(t, "Yes")
	f.Servers = []local.Server{{Kind: local.LMStudio, BaseURL: "http://127.0.0.1:1234/v1"}}
	_, _ = Run(t.Context(), f.Options)
	options := f.asker.Asked()[1].Options
	if options[0] != "LM Studio, local: runs on this machine" || options[1] != "openai" {
		t.Errorf("%q", options[:2])
	}
	if slices.Contains(options, "lmstudio") || !slices.Contains(options, "ollama (local)") || !slices.Contains(options, "voyageai") {
		t.Errorf("%q", options)
	}
}

func TestWays(t *testing.T) {
	hint := "ways:\n  a: b\nor c"
	for _, tt := range []struct {
		name    string
		servers []local.Server
		want    string
	}{
		{"none", nil, hint},
		{
			"ollama",
			[]local.Server{{Kind: local.Ollama, BaseURL: "http://127.0.0.1:11434/v1", Models: []string{"gemma3"}}},
			"ways:\n  Ollama, running here:  export LOKI_PLATFORM=ollama:gemma3\n  a: b\nor c",
		},
		{
			"no_model",
			[]local.Server{{Kind: local.Ollama, BaseURL: "http://127.0.0.1:11434/v1"}},
			"ways:\n  Ollama, running here:  export LOKI_PLATFORM=ollama:llama3.2\n    after:  ollama pull llama3.2\n  a: b\nor c",
		},
		{
			"elsewhere",
			[]local.Server{{Kind: local.LlamaCPP, BaseURL: "http://box:1/v1", Models: []string{"q"}}},
			"ways:\n  llama.cpp, running here:  export LOKI_PLATFORM=llamacpp:q LLAMACPP_API_BASE=http://box:1/v1\n  a: b\nor c",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Ways(hint, tt.servers)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzModelIDs(f *testing.F) {
	for _, seed := range []string{list, `{"data":null}`, `[]`, `{"data":[{"id":7}]}`, "<html>"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		names, err := modelIDs(body)
		if (err == nil) == (len(names) == 0) || slices.Contains(names, "") {
			t.Errorf("%q, %v", names, err)
		}
	})
}
