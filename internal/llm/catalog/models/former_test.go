package models

import (
	"os"
	"strings"
	"testing"
	"time"

	"loki/internal/llm/catalog"
)

// providerCatalog returns a catalog with one client for each provider, of its name.
func providerCatalog() *catalog.Catalog {
	var clients []catalog.Client
	for _, p := range BuiltinList() {
		typ := catalog.CompatibleType
		switch p.Name {
		case "openai", "gemini", "claude", "cohere", "vertexai", "bedrock":
			typ = p.Name
		}
		clients = append(clients, catalog.Client{Name: p.Name, Type: typ})
	}
	return catalog.New(clients, BuiltinList()).On(time.Date(2026, time.November, 22, 0, 0, 0, 0, time.UTC))
}

// TestFormerModels checks that what older files name is known: with its limits, and as a
// name that the provider has, not as an alias that means nothing to it.
func TestFormerModels(t *testing.T) {
	c := providerCatalog()
	src, err := os.ReadFile("testdata/former.txt")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for line := range strings.Lines(string(src)) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		for _, name := range words[1:] {
			total++
			id := words[0] + ":" + name
			m, err := resolveAny(c, id)
			if err != nil || !m.Listed {
				t.Errorf("%s is not known: %v", id, err)
				continue
			}
			if sent := m.APIName(); words[0] != "openrouter" && (strings.HasSuffix(sent, ":thinking") || strings.HasSuffix(sent, ":instruct")) {
				t.Errorf("%s is sent as %s", id, sent)
			}
		}
	}
	if total < 325 {
		t.Errorf("only %d models", total)
	}
}

// resolveAny resolves id as a model of whatever type it has.
func resolveAny(c *catalog.Catalog, id string) (catalog.Model, error) {
	m, err := c.Resolve(id, catalog.Chat)
	for _, t := range []catalog.Type{catalog.Embedding, catalog.Reranker} {
		if err != nil || !m.Listed {
			m, err = c.Resolve(id, t)
		}
	}
	return m, err
}

// TestHiddenModels checks that no list shows what is hidden or retired, that what retires
// later is shown until then, and that each replacement exists and is itself in the list.
func TestHiddenModels(t *testing.T) {
	c := providerCatalog()
	shown := make(map[string]bool)
	for _, typ := range []catalog.Type{catalog.Chat, catalog.Embedding, catalog.Reranker} {
		for _, id := range c.IDs(typ) {
			shown[id] = true
		}
	}
	hidden, retired := 0, 0
	for _, p := range BuiltinList() {
		for _, m := range p.Models() {
			id := p.Name + ":" + m.Name
			switch {
			case m.Hidden:
				hidden++
			case m.Retired != "" && m.Retired <= "2026-11-22":
				retired++
			case !shown[id]:
				t.Errorf("%s is in no list", id)
				continue
			default:
				continue
			}
			if shown[id] {
				t.Errorf("%s is in a list", id)
			}
			if m.ReplacedBy != "" && !shown[p.Name+":"+m.ReplacedBy] {
				t.Errorf("%s is replaced by %s, which is in no list", id, m.ReplacedBy)
			}
		}
	}
	if hidden < 100 || retired < 40 {
		t.Errorf("only %d hidden and %d retired models", hidden, retired)
	}
	for _, id := range []string{"openai:gpt-5", "gemini:gemini-2.5-pro", "openai:gpt-4o"} {
		if !shown[id] {
			t.Errorf("%s has not been retired yet and is in no list", id)
		}
	}
}

// TestSnapshots resolves names without the date of the snapshot, and with one that no list
// has. The other half: a name that differs in more is not known.
func TestSnapshots(t *testing.T) {
	c := providerCatalog()
	for id, want := range map[string]string{
		"claude:claude-sonnet-4-5":             "claude-sonnet-4-5-20250929 priced",
		"claude:claude-sonnet-4-5:thinking":    "claude-sonnet-4-5-20250929 priced",
		"claude:claude-opus-4-5":               "claude-opus-4-5-20251101 priced",
		"claude:claude-opus-5-5-20260922":      "claude-opus-5-5-20260922",
		"vertexai:claude-sonnet-4-5":           "claude-sonnet-4-5@20250929 priced",
		"openai:gpt-4o-2024-08-06":             "gpt-4o-2024-08-06",
		"claude:claude-sonnet-4-7":             "unknown",
		"claude:claude-sonnet-4-5:no-thinking": "unknown",
		"claude:sonnet":                        "unknown",
	} {
		m, err := c.Resolve(id, catalog.Chat)
		if err != nil {
			t.Fatal(err)
		}
		got := "unknown"
		if m.Listed {
			if got = m.APIName(); m.InputPrice != nil {
				got += " priced"
			}
			if m.MaxInputTokens == 0 || !m.SupportsFunctionCalling {
				t.Errorf("%s has lost its limits or its tools", id)
			}
		}
		if got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	// An embedding model that no list has can be named like a model for chat.
	m, err := c.Resolve("openai:text-embedding-9", catalog.Embedding)
	if err != nil || m.Listed || m.DefaultChunkSize == 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestBedrockRegions resolves the names that people have from Amazon's lists.
func TestBedrockRegions(t *testing.T) {
	c := providerCatalog()
	for id, want := range map[string]string{
		"global.anthropic.claude-opus-5-5":                      "global.anthropic.claude-opus-5-5 priced",
		"us.anthropic.claude-opus-5-5":                          "us.anthropic.claude-opus-5-5",
		"jp.anthropic.claude-opus-5-5":                          "jp.anthropic.claude-opus-5-5",
		"au.anthropic.claude-fable-5-1":                         "au.anthropic.claude-fable-5-1",
		"eu.anthropic.claude-sonnet-4-5":                        "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
		"eu.anthropic.claude-sonnet-4-5:thinking":               "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
		"us.anthropic.claude-haiku-4-5-20251001-v1:0":           "us.anthropic.claude-haiku-4-5-20251001-v1:0",
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0:thinking": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
		"anthropic.claude-sonnet-4-5-20250929-v1:0":             "anthropic.claude-sonnet-4-5-20250929-v1:0",
		"claude-sonnet-4-5":                                     "global.anthropic.claude-sonnet-4-5-20250929-v1:0 priced",
		"eu.amazon.nova-pro-v1:0":                               "eu.amazon.nova-pro-v1:0",
	} {
		m, err := c.Resolve("bedrock:"+id, catalog.Chat)
		if err != nil || !m.Listed {
			t.Errorf("%s is not known: %v", id, err)
			continue
		}
		got := m.APIName()
		if m.InputPrice != nil {
			got += " priced"
		}
		if got != want || m.MaxInputTokens == 0 || m.Name != id {
			t.Errorf("%s is %s with %d tokens, want %s", id, got, m.MaxInputTokens, want)
		}
	}
}
