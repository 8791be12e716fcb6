package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/provider/wire"
)

// vaultOf looks secrets up in a map and remembers which.
type vaultOf struct {
	secrets map[string]string
	asked   []string
}

func (v *vaultOf) lookup(name string) (string, error) {
	v.asked = append(v.asked, name)
	switch name {
	case "LOCKED":
		return "", fault.New(fault.Config, "the password does not open the vault").WithHint("check it")
	case "CANCELED":
		return "", fmt.Errorf("asking: %w", context.Canceled)
	}
	if s, ok := v.secrets[name]; ok {
		return s, nil
	}
	return "", fault.New(fault.NotFound, "no").WithHint("loki --secret add '%s'", name)
}

const secretFile = `
user_agent: auto
document_loaders:
  jina: 'curl -H "Authorization: Bearer {{JINA}}" $1'
  lost: 'curl {{LOST}}'
clients:
  - type: openai
    api_key: '{{KEY}}'
    organization_id: 'x{{A}}y{{ B }}z'
    api_base: 'https://{{HOST}}/v1/'
    extra: {proxy: "http://u:{{A}}@host"}
    models:
      - name: m
        patch: {headers: {X: '{{A}}'}}
      - name: lost
        patch: {body: {deep: [{x: '{{LOST}}'}]}}
    patch:
      chat_completions:
        'a.*':
          url: 'https://{{HOST}}'
          headers: {H: 'Bearer {{KEY}}', Gone: null}
          body: {n: 1, list: [true, 'b-{{B}}'], o: {deep: '{{A}}'}, drop: null}
      embeddings:
        '.*': {url: '{{LOCKED}}'}
      rerank:
        '.*':
          headers:
            X: '{{LOST}}'
  - type: claude
    api_key: '{{LOST}}'
  - type: gemini
    api_key: '{{CANCELED}}'
`

func secretConfig(t *testing.T) (*Config, *vaultOf) {
	t.Helper()
	cfg := mustLoad(t, secretFile)
	v := &vaultOf{secrets: map[string]string{
		"KEY": "sk-0123456789", "A": "{{B}}", "B": "bb", "HOST": "example.com", "JINA": "j",
	}}
	cfg.UseSecrets(v.lookup)
	return cfg, v
}

func TestSecretsAreLookedUpWhenTheyAreUsed(t *testing.T) {
	cfg, v := secretConfig(t)
	c := cfg.Client("openai")
	if err := c.CheckSecrets(Env{}); err != nil || len(v.asked) > 0 {
		t.Fatalf("%v, and asked for %q", err, v.asked)
	}
	for field, want := range map[string]string{
		"api_key":         "sk-0123456789",
		"organization_id": "x{{B}}ybbz", // what a secret holds refers to nothing
		"api_base":        "https://example.com/v1",
		"region":          "",
	} {
		if got, err := c.Field(Env{}, field); err != nil || got != want {
			t.Errorf("%s is %q, %v", field, got, err)
		}
	}
	if got, err := c.Field(NewEnv("linux", []string{"OPENAI_API_KEY=env {{B}}"}), "api_key"); err != nil || got != "env bb" {
		t.Errorf("from the environment: %q, %v", got, err)
	}
	if got, err := c.Proxy(); err != nil || *got != "http://u:{{B}}@host" {
		t.Errorf("proxy %v, %v", got, err)
	}
	if got, err := cfg.Client("claude").Proxy(); err != nil || got != nil {
		t.Errorf("proxy %v, %v", got, err)
	}
	m := c.Models[0]
	if p, err := c.ModelPatch(m); err != nil || *p.Headers[0].Value != "{{B}}" || *m.Patch.Headers[0].Value != "{{A}}" {
		t.Errorf("patch %+v, %v", p, err)
	}
	m.Patch = nil
	if p, err := c.ModelPatch(m); err != nil || p != nil {
		t.Errorf("patch %+v, %v", p, err)
	}
	if slices.Contains(v.asked, "LOST") || slices.Contains(v.asked, "JINA") {
		t.Errorf("asked for %q", v.asked)
	}
}

func TestSecretsInPatches(t *testing.T) {
	cfg, _ := secretConfig(t)
	c := cfg.Client("openai")
	for range 2 { // the second time from the same configuration
		rules, err := c.PatchRules(Env{}, wire.ChatCompletions)
		if err != nil || len(rules) != 1 {
			t.Fatalf("%v, %v", rules, err)
		}
		p := rules[0].Patch
		want, err := value.ParseJSON([]byte(`{"n": 1, "list": [true, "b-bb"], "o": {"deep": "{{B}}"}, "drop": null}`))
		if err != nil {
			t.Fatal(err)
		}
		if p.URL != "https://example.com" || *p.Headers[0].Value != "Bearer sk-0123456789" || p.Headers[1].Value != nil || !value.Equal(p.Body.Value(), want) {
			t.Errorf("%s, %+v, %v", p.URL, p.Headers, p.Body.Value())
		}
	}
}

func TestSecretErrors(t *testing.T) {
	cfg, _ := secretConfig(t)
	openai := cfg.Client("openai")
	field := func(client string) func() error {
		return func() error { _, err := cfg.Client(client).Field(Env{}, "api_key"); return err }
	}
	rules := func(api wire.API, environ ...string) func() error {
		return func() error { _, err := openai.PatchRules(NewEnv("linux", environ), api); return err }
	}
	for _, tt := range []struct {
		name       string
		do         func() error
		code       fault.Code
		want, hint string
	}{
		{
			"field", field("claude"), fault.Config,
			`client "claude" (FILE:30:14): api_key refers to the secret "LOST", which the vault does not have`,
			`loki --secret add 'LOST', or export CLAUDE_API_KEY=..., which beats the file`,
		},
		{
			"environment", func() error {
				_, err := openai.Field(NewEnv("linux", []string{"OPENAI_API_KEY={{LOST}}"}), "api_key")
				return err
			}, fault.Config,
			`client "openai" (FILE:7:5): environment variable OPENAI_API_KEY refers to the secret "LOST", which the vault does not have`,
			`loki --secret add 'LOST'`,
		},
		{
			"patch", rules(wire.Rerank), fault.Config,
			`client "openai" (FILE:28:16): patch.rerank refers to the secret "LOST", which the vault does not have`,
			`loki --secret add 'LOST'`,
		},
		{
			"locked", rules(wire.Embeddings), fault.Config,
			`client "openai" (FILE:24:21): patch.embeddings refers to the secret "LOCKED": the password does not open the vault`,
			`check it`,
		},
		{
			"patch_in_environment", rules(wire.Rerank, `LOKI_PATCH_OPENAI_RERANK={"a": {"url": "{{LOST}}"}}`), fault.Config,
			`client "openai" (FILE:7:5): environment variable LOKI_PATCH_OPENAI_RERANK refers to the secret "LOST", which the vault does not have`,
			`loki --secret add 'LOST'`,
		},
		{
			"model", func() error { _, err := openai.ModelPatch(openai.Models[1]); return err }, fault.Config,
			`client "openai" (FILE:16:35): the patch of model lost refers to the secret "LOST", which the vault does not have`,
			`loki --secret add 'LOST'`,
		},
		{
			"setting", func() error {
				text, _ := cfg.DocumentLoaders.Get("lost")
				_, err := cfg.Expand("document_loaders.lost", text)
				return err
			}, fault.Config,
			`FILE:5:9: document_loaders.lost refers to the secret "LOST", which the vault does not have`,
			`loki --secret add 'LOST'`,
		},
		{
			"setting_from_elsewhere", func() error { _, err := cfg.Expand("editor", "{{LOST}}"); return err }, fault.Config,
			`editor refers to the secret "LOST", which the vault does not have`,
			`loki --secret add 'LOST'`,
		},
		{"canceled", field("gemini"), fault.Canceled, `client "gemini" (FILE:32:14): api_key refers to the secret "CANCELED": asking: context canceled`, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.do()
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), cfg.File, "FILE")
			if got != tt.want || fault.HintOf(err) != tt.hint || fault.CodeOf(err) != tt.code {
				t.Errorf("got  %s\nwant %s\nhint %s\ncode %s", got, tt.want, fault.HintOf(err), fault.CodeOf(err))
			}
		})
	}
}

func TestConfigExpand(t *testing.T) {
	cfg, _ := secretConfig(t)
	text, _ := cfg.DocumentLoaders.Get("jina")
	if got, err := cfg.Expand("document_loaders.jina", text); err != nil || got != `curl -H "Authorization: Bearer j" $1` {
		t.Errorf("%q, %v", got, err)
	}
	cfg.UseSecrets(nil)
	if _, err := cfg.Expand("document_loaders.jina", text); err == nil || !strings.Contains(err.Error(), "there is no vault") {
		t.Errorf("error %v", err)
	}
}

func TestImpliedClientHasSecrets(t *testing.T) {
	cfg, _ := secretConfig(t)
	if got, err := cfg.Client("builtin").Field(NewEnv("linux", []string{"BUILTIN_SCRIPT={{B}}"}), "script"); err != nil || got != "bb" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSecretsStayOutOfSight(t *testing.T) {
	cfg, _ := secretConfig(t)
	if _, err := cfg.Client("openai").PatchRules(Env{}, wire.ChatCompletions); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", cfg, "client", cfg.Clients[0])
	marshalled, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	shown := log.String() + string(marshalled)
	for _, format := range []string{"%v", "%+v", "%#v"} {
		shown += fmt.Sprintf(format, cfg) + fmt.Sprintf(format, *cfg.Clients[0])
	}
	if strings.Contains(shown, "sk-0123456789") {
		t.Errorf("the key is in %s", shown)
	}
}

func TestCredentials(t *testing.T) {
	cfg := mustLoad(t, `
clients:
  - {type: openai, api_key: plain-key, session_token: '{{IN_VAULT}}'}
  - {type: claude, auth: oauth, oauth: {client_secret: oauth-secret}}
  - type: openai-compatible
    name: corp
    patch: {chat_completions: {'.*': {headers: {X-Corp-Key: in-a-patch, Authorization: 'Bearer {{IN_VAULT}}', X-Title: plain}}}}
    models: [{name: m, patch: {headers: {X-Model-Token: of-a-model}}}]
`)
	for client, want := range map[string][]Var{
		"openai": {{"OPENAI_API_KEY", "from-env"}, {"OPENAI_SECRET_ACCESS_KEY", "plain-secret"}},
		"claude": {{"CLAUDE_OAUTH_CLIENT_SECRET", "oauth-secret"}},
		"corp":   {{"CORP_X_CORP_KEY", "in-a-patch"}, {"CORP_X_MODEL_TOKEN", "of-a-model"}, {"CORP_AUTHORIZATION", "of-a-variable"}},
	} {
		env := NewEnv("linux", []string{
			"OPENAI_API_KEY=from-env", "OPENAI_SECRET_ACCESS_KEY=plain-secret",
			`LOKI_PATCH_CORP_EMBEDDINGS={".*": {"headers": {"Authorization": "Bearer of-a-variable"}}}`,
		})
		if got := cfg.Client(client).Credentials(env); !slices.Equal(got, want) {
			t.Errorf("%s has %q", client, got)
		}
	}
}

func TestVaultSettings(t *testing.T) {
	t.Run("environment", func(t *testing.T) {
		cfg := mustLoad(t, "vault_password_file: /a\nvault_keychain: true", "LOKI_VAULT_PASSWORD_FILE=/b", "LOKI_VAULT_PASSWORD_COMMAND=pass x", "LOKI_VAULT_KEYCHAIN=false")
		if *cfg.VaultPasswordFile != "/b" || *cfg.VaultPasswordCommand != "pass x" || cfg.VaultKeychain {
			t.Errorf("%q, %q, %v", *cfg.VaultPasswordFile, *cfg.VaultPasswordCommand, cfg.VaultKeychain)
		}
	})
	for _, tt := range []struct{ name, text, environ, want string }{
		{"file", "vault_password_file: '/x/{{USER}}'", "", "config.yaml:1:22: vault_password_file: what opens the vault"},
		{"command", "vault_password_command: 'pass {{USER}}'", "", "config.yaml:1:25: vault_password_command: what opens the vault"},
		{"variable", "", "LOKI_VAULT_PASSWORD_FILE={{USER}}", "environment variable LOKI_VAULT_PASSWORD_FILE: what opens the vault"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := load(t, tt.text, tt.environ)
			if err == nil || !strings.Contains(err.Error(), tt.want) || fault.CodeOf(err) != fault.Config {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("comment", func(t *testing.T) { mustLoad(t, "# vault_password_file: '{{X}}'\n") })
}

func TestExpand(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		missing          []string
	}{
		{"nothing", "plain\n# {{A}}\n", "plain\n# {{A}}\n", nil},
		{"one", `{"env": {"T": "{{A}}"}}`, `{"env": {"T": "1"}}`, nil},
		{"several_on_a_line", "{{A}}-{{ B }}{{A}}", "1-221", nil},
		{"comments", "#{{A}}\n \t# {{A}}\nx # {{A}}\n", "#{{A}}\n \t# {{A}}\nx # 1\n", nil},
		{"missing", "{{X}} {{A}} {{ Y Z }} {{X}}", "{{X}} 1 {{ Y Z }} {{X}}", []string{"X", "Y Z"}},
		{"secret_like_a_reference", "{{R}}{{A}}", "{{A}}1", nil},
		{"over_lines", "{{A\n}}", "{{A\n}}", nil},
		{"line_ends", "a{{A}}\r\nb{{B}}", "a1\r\nb22", nil},
		{"empty", "{{E}}", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &vaultOf{secrets: map[string]string{"A": "1", "B": "22", "R": "{{A}}", "E": ""}}
			got, missing, err := Expand(tt.text, v.lookup)
			if err != nil || got != tt.want || !slices.Equal(missing, tt.missing) {
				t.Errorf("got %q, missing %q, %v", got, missing, err)
			}
			slices.Sort(v.asked)
			if names := slices.Compact(slices.Clone(v.asked)); len(names) != len(v.asked) {
				t.Errorf("asked for %q", v.asked)
			}
		})
	}
	t.Run("error", func(t *testing.T) {
		broken := errors.New("broken")
		if _, _, err := Expand("{{A}}", func(string) (string, error) { return "", broken }); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"a {{A}} b", "{{{{A}}}}", "{{}}}", "#{{A}}\n{{B}}\r\n", "{{ }}{{\t}}{{A"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		same, missing, err := Expand(text, func(string) (string, error) { return "", fault.New(fault.NotFound, "no") })
		if err != nil || same != text {
			t.Fatalf("%q became %q, %v", text, same, err)
		}
		all := make(map[string]bool)
		out, none, err := Expand(text, func(name string) (string, error) { all[name] = true; return "", nil })
		if err != nil || len(none) > 0 || len(all) != len(missing) || len(out) > len(text) {
			t.Fatalf("%q became %q, missing %q, %q, %v", text, out, none, missing, err)
		}
		for name := range all {
			if name == "" || strings.TrimSpace(name) != name || strings.Contains(name, "\n") {
				t.Fatalf("name %q", name)
			}
		}
	})
}
