package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/provider/wire"
)

func TestClientField(t *testing.T) {
	script := filepath.Join(t.TempDir(), "replies.yaml")
	file := `
clients:
  - type: openai
    api_key: from-file
  - type: azure-openai
    api_base: https://res.example.com//
  - type: openai-compatible
    name: groq
    api_key: '{{GROQ}}'
  - type: openai-compatible
    name: github
    api_base: https://models.inference.ai.azure.com/
  - type: openai-compatible
    name: perplexity
  - type: openai-compatible
    name: my.server 2
  - type: claude
    auth: oauth
  - type: gemini
  - type: builtin
    name: absolute
    script: '` + script + `'
`
	for _, tt := range []struct {
		name          string
		environ       []string
		client, field string
		want, wantErr string
	}{
		{"file", nil, "openai", "api_key", "from-file", ""},
		{"environment_beats_file", []string{"OPENAI_API_KEY=from-env"}, "openai", "api_key", "from-env", ""},
		{"empty_environment_does_not", []string{"OPENAI_API_KEY="}, "openai", "api_key", "from-file", ""},
		{"unset", nil, "openai", "organization_id", "", ""},
		{"environment_alone", []string{"OPENAI_ORGANIZATION_ID=o"}, "openai", "organization_id", "o", ""},
		{"hyphen", []string{"AZURE-OPENAI_API_KEY=h", "AZURE_OPENAI_API_KEY=u"}, "azure-openai", "api_key", "h", ""},
		{"hyphen_as_underscore", []string{"AZURE_OPENAI_API_KEY=u"}, "azure-openai", "api_key", "u", ""},
		{"odd_name_as_underscores", []string{"MY_SERVER_2_API_BASE=http://x"}, "my.server 2", "api_base", "http://x", ""},
		{"name_not_type", []string{"OPENAI_COMPATIBLE_API_KEY=x"}, "my.server 2", "api_key", "", ""},
		{"base_of_openai", nil, "openai", "api_base", "https://api.openai.com/v1", ""},
		{"base_of_platform", nil, "groq", "api_base", "https://api.groq.com/openai/v1", ""},
		{"base_of_nobody", nil, "my.server 2", "api_base", "", ""},
		{"base_without_slash", nil, "azure-openai", "api_base", "https://res.example.com", ""},
		{"base_that_a_platform_had", nil, "github", "api_base", "https://models.github.ai/inference", ""},
		{"base_of_the_makers_variable", []string{"OPENAI_BASE_URL=http://x/v1/"}, "openai", "api_base", "http://x/v1", ""},
		{"own_variable_beats_the_makers", []string{"OPENAI_BASE_URL=http://x", "OPENAI_API_BASE=http://y"}, "openai", "api_base", "http://y", ""},
		{"file_beats_the_makers_variable", []string{"AZURE_OPENAI_ENDPOINT=http://x"}, "azure-openai", "api_base", "https://res.example.com", ""},
		{"version_is_appended", []string{"ANTHROPIC_BASE_URL=http://x/"}, "claude", "api_base", "http://x/v1", ""},
		{"version_is_there", []string{"ANTHROPIC_BASE_URL=http://x/v1"}, "claude", "api_base", "http://x/v1", ""},
		{"makers_key_for_makers_base", []string{"ANTHROPIC_BASE_URL=http://x", "ANTHROPIC_API_KEY=k"}, "claude", "api_key", "k", ""},
		{"makers_key_not_for_another_base", []string{"CLAUDE_API_BASE=http://x", "ANTHROPIC_API_KEY=k"}, "claude", "api_key", "", ""},
		{"makers_base_of_gemini", []string{"GOOGLE_GEMINI_BASE_URL=http://x"}, "gemini", "api_base", "http://x/v1beta", ""},
		{"makers_base_of_a_platform", []string{"GROQ_BASE_URL=http://x"}, "groq", "api_base", "http://x/openai/v1", ""},
		{"makers_base_only_for_the_known_name", []string{"OPENAI_BASE_URL=http://x/v1"}, "my.server 2", "api_base", "", ""},
		{
			"makers_base_is_wrong",
			[]string{"OPENAI_BASE_URL=localhost:8000"},
			"openai", "api_base", "",
			`environment variable OPENAI_BASE_URL is not an http or https URL, and client "openai" takes its address from it | export OPENAI_BASE_URL=https://HOST/..., or unset OPENAI_BASE_URL`,
		},
		{
			"own_base_is_wrong",
			[]string{"MY_SERVER_2_API_BASE=x"},
			"my.server 2", "api_base", "",
			`environment variable MY_SERVER_2_API_BASE is not an http or https URL, and client "my.server 2" takes its address from it | export MY_SERVER_2_API_BASE=https://HOST/..., or unset MY_SERVER_2_API_BASE`,
		},
		{"api_of_a_platform", nil, "perplexity", "api", "responses", ""},
		{"api_of_a_platform_elsewhere", []string{"PERPLEXITY_API_BASE=http://proxy"}, "perplexity", "api", "", ""},
		{"api_of_most", nil, "groq", "api", "", ""},
		{"auth_is_not_from_the_environment", []string{"CLAUDE_AUTH=x"}, "claude", "auth", "oauth", ""},
		{
			"secret", nil, "groq", "api_key", "",
			`client "groq" (FILE:9:14): api_key refers to the secret "GROQ", and there is no vault to look it up in | export GROQ_API_KEY=..., which beats the file`,
		},
		{"environment_beats_secret", []string{"GROQ_API_KEY=k"}, "groq", "api_key", "k", ""},
		{
			"secret_in_environment",
			[]string{"OPENAI_API_KEY={{ KEY }}"},
			"openai", "api_key", "",
			`client "openai" (FILE:3:5): environment variable OPENAI_API_KEY refers to the secret "KEY", and there is no vault to look it up in | write the value in place of {{KEY}}`,
		},
		{"absolute_script", nil, "absolute", "script", script, ""},
		{"script_of_the_implied_client", []string{"BUILTIN_SCRIPT=replies.yaml"}, "builtin", "script", "replies.yaml", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := mustLoad(t, file)
			c := cfg.Client(tt.client)
			if c == nil {
				t.Fatalf("no client %q", tt.client)
			}
			env := NewEnv("linux", tt.environ)
			got, err := c.Field(env, tt.field)
			gotErr := ""
			if err != nil {
				gotErr = strings.ReplaceAll(err.Error(), cfg.File, "FILE") + " | " + fault.HintOf(err)
				if fault.CodeOf(err) != fault.Config {
					t.Errorf("code %q", fault.CodeOf(err))
				}
			}
			if got != tt.want || gotErr != tt.wantErr {
				t.Errorf("got %q, %s\nwant %q, %s", got, gotErr, tt.want, tt.wantErr)
			}
		})
	}
	t.Run("unknown_field", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("asking for a field that no client has did not panic")
			}
		}()
		_, _ = mustLoad(t, file).Client("openai").Field(Env{}, "apikey")
	})
}

func TestCheckSecrets(t *testing.T) {
	t.Run("environment_beats_secret", func(t *testing.T) {
		c := mustLoad(t, "clients: [{type: openai, api_key: '{{KEY}}'}]").Client("openai")
		if err := c.CheckSecrets(NewEnv("linux", []string{"OPENAI_API_KEY=k"})); err != nil {
			t.Error(err)
		}
	})
	for _, tt := range []struct{ name, client, want string }{
		{"none", `api_key: "{not one}"`, ""},
		{"field", `region: "x{{R}}"`, "region"},
		{"proxy", `extra: {proxy: "http://u:{{P}}@host"}`, "extra.proxy"},
		{"patch_url", `patch: {rerank: {a: {url: "{{U}}"}}}`, "patch.rerank"},
		{"patch_header", `patch: {embeddings: {a: {headers: {A: null, B: "Bearer {{H}}"}}}}`, "patch.embeddings"},
		{"patch_body", `patch: {chat_completions: {a: {body: {x: [1, {y: "{{B}}"}]}}}}`, "patch.chat_completions"},
		{"model", `models: [{name: m, patch: {body: {k: "{{B}}"}}}]`, "the patch of model m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := mustLoad(t, "clients:\n  - type: openai\n    "+tt.client)
			err := cfg.Client("openai").CheckSecrets(Env{})
			switch {
			case tt.want == "":
				if err != nil {
					t.Error(err)
				}
			case err == nil:
				t.Error("no error")
			case !strings.Contains(err.Error(), ": "+tt.want+" refers to the secret"):
				t.Errorf("%q does not tell of %s", err, tt.want)
			}
		})
	}
}

func TestHasSecretPlaceholder(t *testing.T) {
	for _, tt := range []struct {
		text, name string
		want       bool
	}{
		{"", "", false},
		{"plain", "", false},
		{"{{NAME}}", "NAME", true},
		{"Bearer {{ a name }}.", "a name", true},
		{"{{A}}{{B}}", "A", true},
		{"{{}}", "", false},
		{"{{ \t}}", "", false},
		{"{{ }}{{A}}", "A", true},
		{"{{}}}", "}", true},
		{"{{", "", false},
		{"{{NAME}", "", false},
		{"{NAME}", "", false},
		{"{{a\nb}}", "", false},
		{"{{a\n{{B}}", "B", true},
		{"}}{{", "", false},
	} {
		t.Run(tt.text, func(t *testing.T) {
			if got := HasSecretPlaceholder(tt.text); got != tt.want {
				t.Errorf("got %v", got)
			}
			if p, _ := nextPlaceholder(tt.text); p.name != tt.name {
				t.Errorf("name %q, want %q", p.name, tt.name)
			}
		})
	}
}

func TestPatchRules(t *testing.T) {
	const file = `
clients:
  - type: openai-compatible
    name: my-server
    patch:
      chat_completions:
        'gpt-4.*': {url: "https://one"}
        '.*':
      rerank:
        '.*': {headers: {A: "{{SECRET}}"}}
`
	const json = `{"b.*": {"body": {"text": "\u00e9\ud83d\ude00\/\n", "drop": null, "n": 1.5}, "headers": {"A": "x", "B": null}}, "a": {"url": "u"}}`
	for _, tt := range []struct {
		name    string
		environ []string
		api     wire.API
		want    []wire.PatchRule
		wantErr string
	}{
		{"file", nil, wire.ChatCompletions, []wire.PatchRule{{Pattern: "gpt-4.*", Patch: wire.Patch{URL: "https://one"}}}, ""},
		{"none", nil, wire.Embeddings, nil, ""},
		{"environment", []string{"LOKI_PATCH_MY_SERVER_CHAT_COMPLETIONS=" + json}, wire.ChatCompletions, []wire.PatchRule{
			{Pattern: "b.*", Patch: wire.Patch{
				Body: value.ObjectOf(
					value.Member{Name: "text", Value: value.Of("é😀/\n")},
					value.Member{Name: "drop"},
					value.Member{Name: "n", Value: value.Of(1.5)},
				),
				Headers: []wire.Header{{Name: "A", Value: ptr("x")}, {Name: "B"}},
			}},
			{Pattern: "a", Patch: wire.Patch{URL: "u"}},
		}, ""},
		{"environment_with_hyphen", []string{"LOKI_PATCH_MY-SERVER_EMBEDDINGS={}", "LOKI_PATCH_MY_SERVER_EMBEDDINGS=" + json}, wire.Embeddings, nil, ""},
		{"empty_environment", []string{"LOKI_PATCH_MY_SERVER_CHAT_COMPLETIONS="}, wire.ChatCompletions, []wire.PatchRule{{Pattern: "gpt-4.*", Patch: wire.Patch{URL: "https://one"}}}, ""},
		{
			"bad_environment",
			[]string{"LOKI_PATCH_MY_SERVER_CHAT_COMPLETIONS=[sk-1]"},
			wire.ChatCompletions, nil,
			"environment variable LOKI_PATCH_MY_SERVER_CHAT_COMPLETIONS:1:1: expected a mapping, found a list",
		},
		{"secret", nil, wire.Rerank, nil, `patch.rerank refers to the secret "SECRET"`},
		{
			"secret_in_environment",
			[]string{`LOKI_PATCH_MY_SERVER_RERANK={"a": {"url": "{{S}}"}}`},
			wire.Rerank, nil,
			`environment variable LOKI_PATCH_MY_SERVER_RERANK refers to the secret "S"`,
		},
		{"environment_without_secret", []string{`LOKI_PATCH_MY_SERVER_RERANK={}`}, wire.Rerank, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := mustLoad(t, file).Client("my-server").PatchRules(NewEnv("linux", tt.environ), tt.api)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || fault.CodeOf(err) != fault.Config {
					t.Errorf("error %v, want %s", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sameValue := cmp.Comparer(func(a, b *value.Object) bool { return value.Equal(a.Value(), b.Value()) })
			if diff := cmp.Diff(tt.want, got, sameValue); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClientsPrintNoSecrets(t *testing.T) {
	const secret = "sk-0123456789"
	cfg := mustLoad(t, `
clients:
  - type: openai
    api_key: `+secret+`
    patch: {chat_completions: {'.*': {headers: {Authorization: `+secret+`}, body: {key: `+secret+`}}}}
    extra: {proxy: "http://user:`+secret+`@host"}
`)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", cfg, "client", cfg.Clients[0])
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", cfg, "client", cfg.Clients[0])
	marshalled, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	shown := log.String() + string(marshalled)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		shown += fmt.Sprintf(format, cfg) + fmt.Sprintf(format, *cfg.Clients[0]) + fmt.Sprintf(format, cfg.Clients)
	}
	if strings.Contains(shown, secret) {
		t.Errorf("the key is in %s", shown)
	}
	if !strings.Contains(shown, `client \"openai\" of type openai`) {
		t.Errorf("the client is not in %s", shown)
	}
}

func TestPlatforms(t *testing.T) {
	seen := map[string]bool{}
	local := 0
	for _, p := range Platforms() {
		if seen[p.Name] || !strings.HasPrefix(p.APIBase, "http") || strings.HasSuffix(p.APIBase, "/") {
			t.Errorf("platform %+v", p)
		}
		if p.Local != strings.HasPrefix(p.APIBase, "http://localhost:") {
			t.Errorf("platform %+v", p)
		}
		if p.Local {
			local++
		}
		seen[p.Name] = true
	}
	if len(seen) != 22 || local != 4 {
		t.Errorf("%d platforms, %d of them local", len(seen), local)
	}
}

// TestLocal holds which clients run on the user's machine, so that their models cost nothing.
func TestLocal(t *testing.T) {
	for text, want := range map[string]bool{
		"{type: openai-compatible, name: ollama}":                                          true,
		"{type: openai-compatible, name: mine, api_base: 'http://127.0.0.1:8080/v1'}":      true,
		"{type: openai-compatible, name: mine, api_base: 'http://localhost:8080/v1'}":      true,
		"{type: openai-compatible, name: mine, api_base: 'http://[::1]:8080/v1'}":          true,
		"{type: openai-compatible, name: mine, api_base: 'http://192.168.1.7:8080/v1'}":    false,
		"{type: openai-compatible, name: mine, api_base: 'http://127.0.0.1.example.com/'}": false,
		"{type: openai-compatible, name: deepseek}":                                        false,
		"{type: openai, api_base: 'http://127.0.0.1:8080/v1'}":                             false,
	} {
		cfg := mustLoad(t, "clients: ["+text+"]")
		if got := cfg.Clients[0].Local(); got != want {
			t.Errorf("%s: local %t", text, got)
		}
	}
}
