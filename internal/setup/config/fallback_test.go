package config

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/llm/catalog"
)

func TestFallbacks(t *testing.T) {
	cfg, _, err := load(t, `
clients:
  - type: openai
    fallback_models: ['claude:haiku', groq, 'later:x', 'builtin:echo']
    models:
      - name: big
      - name: small
        fallback_models: ['openai:big']
  - type: claude
  - type: openai-compatible
    name: groq
    fallback_models: ['groq:llama']
  - type: from-the-future
    name: later
`)
	if err != nil {
		t.Fatal(err)
	}
	c := cfg.Catalog(catalog.Provider{Name: "groq", Models: func() []catalog.Model { return []catalog.Model{{Name: "llama"}, {Name: "qwen"}} }})
	for id, want := range map[string]string{
		"openai:big": "claude:haiku groq later:x builtin:echo", "openai:small": "openai:big",
		"groq:llama": "", "groq:qwen": "groq:llama", "claude:haiku": "",
	} {
		m, err := c.Resolve(id, catalog.Chat)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, strings.Join(m.Fallbacks, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

func TestFallbackErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want, hint string }{
		{
			"unknown_client", "clients:\n  - type: openai\n    fallback_models: ['opnai:x']\n",
			`FILE:3:23: clients[0].fallback_models[0]: no client is called "opnai"`, "did you mean openai:x?",
		},
		{
			"unknown_client_at_model", "clients:\n  - type: openai\n    models:\n      - {name: m, fallback_models: [zzzzzz]}\n",
			`FILE:4:37: clients[0].models[0].fallback_models[0]: no client is called "zzzzzz"`, "a fallback is client:model; the clients are builtin, openai",
		},
		{
			"itself", "clients:\n  - type: openai\n    name: o\n    models:\n      - {name: m, fallback_models: ['o:n', 'o:m']}\n",
			"FILE:5:44: clients[0].models[0].fallback_models[1]: a model cannot be its own fallback", "",
		},
		{
			"no_list", "clients:\n  - type: openai\n    fallback_models: x\n",
			"FILE:3:22: clients[0].fallback_models: expected a list, found a string", "write a list as [a, b], or as lines that begin with \"- \"",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := load(t, tt.text)
			if err == nil {
				t.Fatal("no error")
			}
			got := err.Error()
			if i := strings.Index(got, "config.yaml:"); i >= 0 {
				got = "FILE:" + got[i+len("config.yaml:"):]
			}
			if got != tt.want || fault.HintOf(err) != tt.hint || fault.CodeOf(err) != fault.Config {
				t.Errorf("\n got %s | %s\nwant %s | %s", got, fault.HintOf(err), tt.want, tt.hint)
			}
		})
	}
}

// TestFallbackPage loads the configuration that the page on models shows.
func TestFallbackPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, example := range blocks(string(page), "yaml") {
		if strings.HasPrefix(example, "clients:") {
			examples++
			if cfg := mustLoad(t, example); len(cfg.Clients[0].Fallbacks) != 2 {
				t.Errorf("fallbacks %q", cfg.Clients[0].Fallbacks)
			}
		}
	}
	if examples != 1 {
		t.Errorf("%d examples", examples)
	}
}
