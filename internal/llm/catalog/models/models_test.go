package models

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/catalog"
)

var update = flag.Bool("update", false, "write the generated files")

// sameValue compares what patches hold.
var sameValue = cmp.Comparer(func(a, b *value.Object) bool { return value.Equal(a.Value(), b.Value()) })

// source reads models.yaml.
func source(t testing.TB) []provider {
	t.Helper()
	src, err := os.ReadFile("models.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := yamldoc.Parse("models.yaml", src)
	if err != nil {
		t.Fatal(err)
	}
	list := decodeList(doc.Root())
	for _, p := range append(doc.Errors(), doc.Warnings()...) {
		t.Error(p)
	}
	return list
}

// TestGenerated checks that known.jsonl is what models.yaml says, or writes it.
func TestGenerated(t *testing.T) {
	var want bytes.Buffer // a line for each provider
	for _, p := range source(t) {
		if err := encode(&want, p); err != nil {
			t.Fatal(err)
		}
		want.WriteByte('\n')
	}
	if *update {
		if err := os.WriteFile("known.jsonl", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want.Bytes(), []byte(known)) {
		t.Error("known.jsonl is not what models.yaml says: run go generate ./internal/llm/catalog/models")
	}
}

// TestEmbedded compares the decoded list with models.yaml, model by model.
func TestEmbedded(t *testing.T) {
	src := source(t)
	embedded := BuiltinList()
	if len(embedded) != len(src) {
		t.Fatalf("%d providers, want %d", len(embedded), len(src))
	}
	for i, p := range src {
		if embedded[i].Name != p.Name {
			t.Errorf("provider %d is %q, want %q", i, embedded[i].Name, p.Name)
		}
		if diff := cmp.Diff(p.models(), embedded[i].Models(), sameValue); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.Name, diff)
		}
	}
}

func TestProviders(t *testing.T) {
	want := strings.Fields(`openai gemini claude mistral ai21 cohere xai perplexity groq vertexai bedrock cloudflare ernie
		qianwen hunyuan moonshot deepseek zhipuai minimax openrouter github deepinfra jina voyageai`)
	var names []string
	for _, p := range BuiltinList() {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFacts looks for numbers that cannot be right.
func TestFacts(t *testing.T) {
	total := 0
	for _, p := range BuiltinList() {
		models := p.Models()
		total += len(models)
		for _, m := range models {
			bad := func(what string) { t.Errorf("%s:%s %s", p.Name, m.Name, what) }
			if m.Name == "" {
				bad("has no name")
			}
			if m.OutputPrice != nil && m.InputPrice == nil {
				bad("has a price for output only")
			}
			if m.Type == catalog.Chat && m.InputPrice != nil && m.OutputPrice == nil {
				bad("has a price for input only")
			}
			if m.CachedInputPrice != nil && (m.InputPrice == nil || *m.CachedInputPrice > *m.InputPrice) {
				bad("has cached input that costs more than input")
			}
			if m.InputPrice != nil && m.OutputPrice != nil && *m.OutputPrice < *m.InputPrice {
				bad("has output that costs less than input")
			}
			if m.RequireMaxTokens && m.MaxOutputTokens == 0 {
				bad("requires a maximum it does not have")
			}
			if m.RealName == m.Name {
				bad("is an alias of itself")
			}
			if m.Type == catalog.Embedding && (m.MaxBatchSize == 0 || m.DefaultChunkSize == 0) {
				bad("has no batch or chunk size")
			}
			if m.Type == catalog.Embedding && m.MaxTokensPerChunk > 0 && m.DefaultChunkSize > 4*m.MaxTokensPerChunk {
				bad("has chunks that do not fit")
			}
			if strings.HasPrefix(m.Name, "mistralai/") { // a name of the provider's, not an alias of ours
				continue
			}
			if strings.Contains(m.Name, ":thinking") != (strings.HasSuffix(m.Name, ":thinking") && m.Patch != nil && m.SupportsReasoning) {
				bad("is an alias for reasoning that does not reason")
			}
		}
	}
	if total < 330 {
		t.Errorf("%d models", total)
	}
}

// TestAliases checks that what an alias stands for is in the list too, with the same
// prices.
func TestAliases(t *testing.T) {
	aliases := 0
	for _, p := range BuiltinList() {
		models := p.Models()
		for _, m := range models {
			if m.RealName == "" {
				continue
			}
			aliases++
			i := slices.IndexFunc(models, func(o catalog.Model) bool { return o.Name == m.RealName })
			if i < 0 {
				t.Errorf("%s:%s stands for %s, which is not listed", p.Name, m.Name, m.RealName)
				continue
			}
			o := models[i]
			for _, pair := range [][2]*float64{
				{m.InputPrice, o.InputPrice},
				{m.OutputPrice, o.OutputPrice},
				{m.CachedInputPrice, o.CachedInputPrice},
				{m.CacheWritePrice, o.CacheWritePrice},
			} {
				if !cmp.Equal(pair[0], pair[1]) {
					t.Errorf("%s:%s has other prices than %s", p.Name, m.Name, o.Name)
				}
			}
		}
	}
	if aliases < 50 {
		t.Errorf("only %d aliases", aliases)
	}
}

// TestFirstModels guards what people get who name a client and no model.
func TestFirstModels(t *testing.T) {
	for _, p := range BuiltinList() {
		switch first := p.Models()[0]; p.Name {
		case "perplexity", "jina", "voyageai":
		default:
			if first.Type != catalog.Chat || !first.SupportsFunctionCalling {
				t.Errorf("%s begins with %s, which cannot use tools", p.Name, first.Name)
			}
		}
	}
}

// TestInCatalog asks a catalog for models of clients that list none.
func TestInCatalog(t *testing.T) {
	c := catalog.New([]catalog.Client{
		{Name: "anthropic", Type: "claude"},
		{Name: "groq-eu", Type: catalog.CompatibleType},
		{Name: "voyageai", Type: catalog.CompatibleType},
	}, BuiltinList())
	thinking, err := c.Resolve("anthropic:claude-haiku-4-5-20251001:thinking", catalog.Chat)
	if err != nil {
		t.Fatal(err)
	}
	if thinking.APIName() != "claude-haiku-4-5-20251001" || !thinking.RequireMaxTokens || thinking.Patch == nil || thinking.Client != "anthropic" {
		t.Errorf("got %+v", thinking)
	}
	for id, typ := range map[string]catalog.Type{
		"anthropic": catalog.Chat, "groq-eu:llama-3.3-70b-versatile": catalog.Chat,
		"voyageai": catalog.Embedding, "voyageai:rerank-2.5": catalog.Reranker,
	} {
		if m, err := c.Resolve(id, typ); err != nil || !m.Listed {
			t.Errorf("%s: %+v, %v", id, m, err)
		}
	}
}

// TestLazy checks that providers nobody asks for are not decoded.
func TestLazy(t *testing.T) {
	var asked []string
	providers := BuiltinList()
	for i, p := range providers {
		providers[i].Models = func() []catalog.Model {
			asked = append(asked, p.Name)
			return p.Models()
		}
	}
	c := catalog.New([]catalog.Client{
		{Name: "x", Type: "cohere"},
		{Name: "y", Type: "openai", Models: []catalog.Model{{Name: "own"}}},
		{Name: "gemini", Type: "gemini", Implied: true},
		{Name: "claude", Type: "claude", Implied: true},
	}, providers)
	c.IDs(catalog.Chat)
	if _, err := c.Resolve("x:command-a-03-2025", catalog.Chat); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"cohere"}, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m, err := c.Resolve("claude:claude-opus-5-5", catalog.Chat); err != nil || !m.Listed {
		t.Errorf("%+v, %v", m, err)
	}
	if diff := cmp.Diff([]string{"cohere", "claude"}, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func BenchmarkEmbedded(b *testing.B) {
	for b.Loop() {
		for _, p := range BuiltinList() {
			if p.Name == "openai" {
				p.Models()
			}
		}
	}
}

func BenchmarkEmbeddedAll(b *testing.B) {
	for b.Loop() {
		for _, p := range BuiltinList() {
			p.Models()
		}
	}
}
