package catalog

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
)

func price(p float64) *float64 { return &p }

func TestCost(t *testing.T) {
	full := Model{InputPrice: price(5), OutputPrice: price(25), CachedInputPrice: price(0.5), CacheWritePrice: price(6.25)}
	plain := Model{InputPrice: price(2), OutputPrice: price(8)}
	for _, tt := range []struct {
		name  string
		m     Model
		u     chat.Usage
		want  float64 // dollars for a million
		known bool
	}{
		{"nothing_used", Model{}, chat.Usage{}, 0, true},
		{"input_and_output", full, chat.Usage{InputTokens: 10, OutputTokens: 2}, 100, true},
		{"cached_at_its_price", full, chat.Usage{InputTokens: 10, CachedInputTokens: 4}, 6*5 + 4*0.5, true},
		{"written_at_its_price", full, chat.Usage{InputTokens: 10, CacheWriteTokens: 8}, 2*5 + 8*6.25, true},
		{"cached_and_written", full, chat.Usage{InputTokens: 10, CachedInputTokens: 4, CacheWriteTokens: 5, OutputTokens: 1}, 5 + 2 + 31.25 + 25, true},
		{"cached_at_input_price", plain, chat.Usage{InputTokens: 10, CachedInputTokens: 4, CacheWriteTokens: 5}, 20, true},
		{"reasoning_is_output", plain, chat.Usage{OutputTokens: 10, ReasoningTokens: 9}, 80, true},
		{"more_cached_than_input", full, chat.Usage{InputTokens: 10, CachedInputTokens: 40, CacheWriteTokens: 3}, 5, true},
		{"free", Model{InputPrice: price(0), OutputPrice: price(0)}, chat.Usage{InputTokens: 10, OutputTokens: 10}, 0, true},
		{"unknown", Model{}, chat.Usage{InputTokens: 1}, 0, false},
		{"output_unknown", Model{InputPrice: price(3)}, chat.Usage{InputTokens: 10, OutputTokens: 1}, 30, false},
		{"output_unknown_but_unused", Model{InputPrice: price(3)}, chat.Usage{InputTokens: 10}, 30, true},
		{"only_cached_known", Model{CachedInputPrice: price(1)}, chat.Usage{InputTokens: 4, CachedInputTokens: 4}, 4, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			usd, known := tt.m.Cost(tt.u)
			if math.Abs(usd*1e6-tt.want) > 1e-9 || known != tt.known {
				t.Errorf("%g millionths of a dollar, known %t; want %g, %t", usd*1e6, known, tt.want, tt.known)
			}
		})
	}
}

func TestDescription(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    Model
		want string
	}{
		{
			"everything",
			Model{MaxInputTokens: 128000, MaxOutputTokens: 4096, InputPrice: price(5), OutputPrice: price(15), SupportsVision: true, SupportsFunctionCalling: true},
			"  128000 /     4096  |       5 /     15    👁 ⚒ ",
		},
		{"nothing", Model{Type: Chat}, "       - /        -  |       - /      -        "},
		{
			"fractions",
			Model{MaxInputTokens: 1048576, InputPrice: price(0.075), OutputPrice: price(0.3), SupportsFunctionCalling: true},
			" 1048576 /        -  |   0.075 /    0.3      ⚒ ",
		},
		{"free", Model{InputPrice: price(0), OutputPrice: price(0), SupportsVision: true}, "       - /        -  |       0 /      0      👁 "},
		{"embedding", Model{Type: Embedding, MaxInputTokens: 300000, MaxTokensPerChunk: 8191, MaxBatchSize: 100, InputPrice: price(0.02)}, "max-tokens:8191;max-batch:100;price:0.02"},
		{"embedding_of_a_whole_request", Model{Type: Embedding, MaxInputTokens: 512}, "max-tokens:512;max-batch:-;price:-"},
		{"reranker", Model{Type: Reranker, MaxInputTokens: 512, InputPrice: price(1)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.m.Description(); got != tt.want {
				t.Errorf("\n got %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestGuess(t *testing.T) {
	embedding := func(name string) Model {
		return Model{Name: name, Type: Embedding, DefaultChunkSize: 1000, MaxBatchSize: 100}
	}
	for _, want := range []Model{
		{Name: "llama3.2:3b", Type: Chat},
		{Name: "context-7b", Type: Chat},
		{Name: "my-bge-chat", Type: Chat},
		{Name: "Llama-3.2-11B-Vision", Type: Chat, SupportsVision: true},
		{Name: "bge-reranker-v2-m3", Type: Reranker},
		{Name: "jina-ReRank", Type: Reranker},
		embedding("nomic-embed-text"),
		embedding("BAAI/bge-m3"),
		embedding("text-embedding-3-small"),
		embedding("intfloat/E5-large"),
		embedding("thenlper/gte-large"),
		embedding("WhereIsAI/UAE-Large"),
		embedding("all-MiniLM-L6-v2"),
		embedding("paraphrase-multilingual"),
	} {
		t.Run(want.Name, func(t *testing.T) {
			if diff := cmp.Diff(want, Guess(want.Name)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFallbacks(t *testing.T) {
	c := New([]Client{
		{Name: "a", Type: "openai", Fallbacks: []string{"a:small", "b"}, Models: []Model{
			{Name: "big"},
			{Name: "small"},
			{Name: "own", Fallbacks: []string{"b:two", "a:big", "b:two"}},
			{Name: "none", Fallbacks: []string{}},
			{Name: "lost", Fallbacks: []string{"zzz:qqqqqq", "a:big"}},
			{Name: "vectors", Type: Embedding, Fallbacks: []string{"b:other"}},
		}},
		{Name: "b", Type: CompatibleType, Models: []Model{{Name: "one"}, {Name: "two"}, {Name: "other", Type: Embedding}}},
	}, nil)
	for _, tt := range []struct {
		id      string
		t       Type
		want    string
		wantErr string
	}{
		{"a:big", Chat, "a:small b:one", ""},
		{"a:small", Chat, "b:one", ""},
		{"a:own", Chat, "b:two a:big", ""},
		{"a:none", Chat, "", ""},
		{"a:unlisted", Chat, "a:small b:one", ""},
		{"a:vectors", Embedding, "b:other", ""},
		{"b:one", Chat, "", ""},
		{"a:lost", Chat, "a:big", `fallback of a:lost: unknown chat model "zzz:qqqqqq"`},
	} {
		t.Run(strings.ReplaceAll(tt.id, ":", "_"), func(t *testing.T) {
			m, err := c.Resolve(tt.id, tt.t)
			if err != nil {
				t.Fatal(err)
			}
			next, err := c.Fallbacks(m)
			var ids []string
			for _, n := range next {
				ids = append(ids, n.ID())
			}
			if got := strings.Join(ids, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if (err == nil) != (tt.wantErr == "") || err != nil && (err.Error() != tt.wantErr || fault.CodeOf(err) != fault.NotFound) {
				t.Errorf("error %v, want %s", err, tt.wantErr)
			}
		})
	}
}

func TestDecodeFacts(t *testing.T) {
	doc, err := yamldoc.Parse("m.yaml", []byte("name: n\ncached_input_price: 0.5\ncache_write_price: 6.25\nsupports_reasoning: true\nreasoning_levels: [none, xhigh]\napi: chat_completions\ntools_api: responses\nfallback_models: [a, 'b:c']\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Model{Name: "n", Type: Chat, CachedInputPrice: price(0.5), CacheWritePrice: price(6.25), SupportsReasoning: true, Fallbacks: []string{"a", "b:c"}, ReasoningLevels: []string{"none", "xhigh"}, API: "chat_completions", ToolsAPI: "responses"}
	if diff := cmp.Diff(want, DecodeModel(doc.Root())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if doc.Err() != nil || len(doc.Warnings()) > 0 {
		t.Errorf("error %v, warnings %v", doc.Err(), doc.Warnings())
	}
}

func TestDecodeWrongFacts(t *testing.T) {
	for src, want := range map[string]string{
		"name: n\napi: completions\n": `"completions" is neither chat_completions nor responses`,
		"name: n\ntools_api: chat\n":  `"chat" is neither chat_completions nor responses`,
	} {
		doc, err := yamldoc.Parse("m.yaml", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		DecodeModel(doc.Root())
		if err := doc.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v", src, err)
		}
	}
}

// TestInfo compares the JSON form of some models with the example on the page.
func TestInfo(t *testing.T) {
	c := New([]Client{
		{Name: "claude", Type: "claude", Fallbacks: []string{"ollama:llama3.2"}, Models: []Model{{
			Name: "claude-haiku-4-5-20251001:thinking", RealName: "claude-haiku-4-5-20251001", MaxInputTokens: 200000, MaxOutputTokens: 24000,
			InputPrice: price(1), OutputPrice: price(5), CachedInputPrice: price(0.1), CacheWritePrice: price(1.25),
			SupportsVision: true, SupportsFunctionCalling: true, SupportsReasoning: true,
		}}},
		{Name: "ollama", Type: CompatibleType, Models: []Model{
			{Name: "llama3.2"},
			{Name: "nomic-embed-text", Type: Embedding, MaxTokensPerChunk: 2048, MaxBatchSize: 100},
		}},
	}, nil)
	var infos []Info
	for _, id := range []struct {
		id string
		t  Type
	}{{"claude", Chat}, {"ollama", Chat}, {"ollama", Embedding}} {
		m, err := c.Resolve(id.id, id.t)
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, m.Info())
	}
	got, err := json.MarshalIndent(infos, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(page, []byte("\n```json\n"))
	want, _, _ := bytes.Cut(rest, []byte("\n```"))
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/models.md (-page +got):\n%s", diff)
	}
}
