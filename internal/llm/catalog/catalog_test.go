package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/provider/wire"
)

// sample is a configuration with something of everything.
func sample() *Catalog {
	return New([]Client{
		{Name: "openai", Type: "openai", Models: []Model{
			{Name: "text-embedding-3-small", Type: Embedding, DefaultChunkSize: 2000},
			{Name: "gpt-4o", RealName: "gpt-4o-2024", MaxInputTokens: 128000},
			{Name: "gpt-4o-mini"},
			{Name: "both", Type: Embedding},
			{Name: "both", Type: Chat},
		}},
		{Name: "ollama", Type: CompatibleType, Models: []Model{
			{Name: "llama3.2:3b"},
			{Name: "nomic", Type: Embedding},
			{Name: "bge", Type: Reranker},
		}},
		{Name: "bare", Type: CompatibleType},
		{Name: "nameless", Type: CompatibleType, Models: []Model{{Name: ""}}},
	}, nil)
}

func TestIDs(t *testing.T) {
	c := sample()
	for _, tt := range []struct {
		name string
		c    *Catalog
		t    Type
		want string
	}{
		{"chat", c, Chat, "openai:gpt-4o openai:gpt-4o-mini openai:both ollama:llama3.2:3b nameless builtin:extract builtin:echo builtin:script"},
		{"embedding", c, Embedding, "openai:text-embedding-3-small openai:both ollama:nomic builtin:hash"},
		{"reranker", c, Reranker, "ollama:bge"},
		{"nothing_configured", New(nil, nil), Chat, "builtin:extract builtin:echo builtin:script"},
		{
			"builtin_configured", New([]Client{{Name: "builtin", Type: Builtin}, {Name: "x", Type: "openai", Models: []Model{{Name: "m"}}}}, nil), Chat,
			"builtin:extract builtin:echo builtin:script x:m",
		},
		{"builtin_replaced", New([]Client{{Name: "builtin", Type: "openai", Models: []Model{{Name: "m"}}}}, nil), Chat, "builtin:m"},
		{
			"builtin_by_another_name", New([]Client{{Name: "offline", Type: Builtin, Models: []Model{{Name: "echo"}}}}, nil), Chat,
			"offline:echo builtin:extract builtin:echo builtin:script",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Fields(tt.want), tt.c.IDs(tt.t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestModelsStopsEarly(t *testing.T) {
	for m := range sample().Models(Chat) {
		if m.ID() != "openai:gpt-4o" {
			t.Errorf("first is %s", m.ID())
		}
		break
	}
}

func list(models ...Model) func() []Model { return func() []Model { return models } }

func TestKnownProviders(t *testing.T) {
	known := []Provider{
		{Name: "openai", Models: list(Model{Name: "gpt-4o"})},
		{Name: "open", Models: list(Model{Name: "never"})},
		{Name: "groq", Models: list(Model{Name: "llama"})},
	}
	for _, tt := range []struct {
		name   string
		client Client
		want   string
	}{
		{"by_type", Client{Name: "mine", Type: "openai"}, "mine:gpt-4o"},
		{"type_must_be_equal", Client{Name: "openai", Type: "openai-x"}, ""},
		{"compatible_by_name", Client{Name: "groq", Type: CompatibleType}, "groq:llama"},
		{"compatible_by_beginning_of_name", Client{Name: "openai-proxy", Type: CompatibleType}, "openai-proxy:gpt-4o"},
		{"compatible_unknown", Client{Name: "ope", Type: CompatibleType}, ""},
		{"compatible_builtin", Client{Name: "builtin-proxy", Type: CompatibleType}, ""},
		{"own_models_replace_known", Client{Name: "groq", Type: CompatibleType, Models: []Model{{Name: "own"}}}, "groq:own"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New([]Client{tt.client}, known)
			got := strings.Join(c.IDs(Chat), " ")
			if want := strings.TrimSpace(tt.want + " builtin:extract builtin:echo builtin:script"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	if known[0].Models()[0].Client != "" {
		t.Error("New changed the known providers")
	}
}

func TestResolve(t *testing.T) {
	c := sample()
	for _, tt := range []struct {
		name, id string
		t        Type
		want     Model
	}{
		{"exact", "openai:gpt-4o", Chat, Model{
			Client: "openai", ClientType: "openai", Name: "gpt-4o", Type: Chat, RealName: "gpt-4o-2024", Listed: true, MaxInputTokens: 128000,
		}},
		{"forgotten_client", "gpt-4o", Chat, Model{
			Client: "openai", ClientType: "openai", Name: "gpt-4o", Type: Chat, RealName: "gpt-4o-2024", Listed: true, MaxInputTokens: 128000,
		}},
		{"exact_with_colon", "ollama:llama3.2:3b", Chat, Model{Client: "ollama", ClientType: CompatibleType, Name: "llama3.2:3b", Type: Chat, Listed: true}},
		{"exact_of_this_type", "openai:both", Chat, Model{Client: "openai", ClientType: "openai", Name: "both", Type: Chat, Listed: true}},
		{"embedding", "openai:text-embedding-3-small", Embedding, Model{
			Client: "openai", ClientType: "openai", Name: "text-embedding-3-small", Type: Embedding, Listed: true, DefaultChunkSize: 2000,
		}},
		{"embedding_chunk_size", "ollama:nomic", Embedding, Model{
			Client: "ollama", ClientType: CompatibleType, Name: "nomic", Type: Embedding, Listed: true, DefaultChunkSize: 2000,
		}},
		{"client", "ollama", Chat, Model{Client: "ollama", ClientType: CompatibleType, Name: "llama3.2:3b", Type: Chat, Listed: true}},
		{"client_with_colon", "ollama:", Reranker, Model{Client: "ollama", ClientType: CompatibleType, Name: "bge", Type: Reranker, Listed: true}},
		{"builtin_embedding", "builtin", Embedding, Model{
			Client: Builtin, ClientType: Builtin, Name: "hash", Type: Embedding, Listed: true, InputPrice: new(0.0), DefaultChunkSize: 2000, MaxBatchSize: 256,
		}},
		{"client_embedding", "ollama", Embedding, Model{Client: "ollama", ClientType: CompatibleType, Name: "nomic", Type: Embedding, Listed: true, DefaultChunkSize: 2000}},
		{"nameless", "nameless", Chat, Model{Client: "nameless", ClientType: CompatibleType, Type: Chat, Listed: true}},
		{"assumed_chat", "bare:some:thing", Chat, Model{Client: "bare", ClientType: CompatibleType, Name: "some:thing", Type: Chat}},
		{"assumed_reranker", "bare:r", Reranker, Model{Client: "bare", ClientType: CompatibleType, Name: "r", Type: Reranker}},
		{"builtin", "builtin:extract", Chat, Model{
			Client: "builtin", ClientType: Builtin, Name: "extract", Type: Chat, Listed: true, SupportsFunctionCalling: true,
		}},
		{"empty", "", Chat, Model{
			Client: "openai", ClientType: "openai", Name: "gpt-4o", Type: Chat, RealName: "gpt-4o-2024", Listed: true, MaxInputTokens: 128000,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.Resolve(tt.id, tt.t)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	c := sample()
	unlisted := New([]Client{{Name: "openai", Type: "openai"}, {Name: "groq", Type: CompatibleType}}, nil)
	const ways = "the shortest ways to a model:"
	for _, tt := range []struct {
		name string
		c    *Catalog
		id   string
		t    Type
		code fault.Code
		msg  string
		hint string // what the hint begins with
	}{
		{"wrong_type", c, "openai:gpt-4o", Embedding, fault.NotFound, `"openai:gpt-4o" is not an embedding model but a chat model`, ""},
		{"wrong_type_reranker", c, "ollama:bge", Chat, fault.NotFound, `"ollama:bge" is not a chat model but a reranker`, ""},
		{"misspelt_client", c, "opneai:gpt-4o", Chat, fault.NotFound, `unknown chat model "opneai:gpt-4o"`, "did you mean openai:gpt-4o?"},
		{"misspelt_client_of_unlisted", c, "olama:mistral", Chat, fault.NotFound, `unknown chat model "olama:mistral"`, "did you mean ollama:mistral?"},
		{
			"forgotten_client_of_two", New([]Client{
				{Name: "a", Type: CompatibleType, Models: []Model{{Name: "gpt-4o"}}}, {Name: "b", Type: CompatibleType, Models: []Model{{Name: "gpt-4o"}}},
			}, nil), "gpt-4o", Chat, fault.NotFound, `unknown chat model "gpt-4o"`, "did you mean a:gpt-4o or b:gpt-4o?",
		},
		{"misspelt_client_alone", c, "olama", Chat, fault.NotFound, `unknown chat model "olama"`, "did you mean ollama?"},
		{"unknown_builtin", New(nil, nil), "builtin:exract", Chat, fault.NotFound, `client "builtin" has no chat model "exract"`, "did you mean builtin:extract? it has builtin:extract, builtin:echo, builtin:script"},
		{"unknown_builtin_reranker", c, "builtin:x", Reranker, fault.NotFound, `client "builtin" has no reranker model "x"`, ""},
		{"forgotten_builtin", New(nil, nil), "echo", Chat, fault.NotFound, `unknown chat model "echo"`, "did you mean builtin:echo?"},
		{"nothing_like_it", c, "zzz:qqqqqq", Chat, fault.NotFound, `unknown chat model "zzz:qqqqqq"`, "a model id is client:model, and the configured clients are openai, ollama, bare, nameless. loki --setup adds others; a key in the environment is enough only while config.yaml lists no clients"},
		{"none_of_type", c, "bare", Chat, fault.NotFound, `client "bare" lists no chat model`, "name one as bare:MODEL, or list it under models: of the client"},
		{"none_of_type_implied", New([]Client{{Name: "ollama", Type: CompatibleType, Implied: true}}, nil), "ollama", Chat, fault.NotFound, `client "ollama" lists no chat model`, "start its server, or name a model as ollama:MODEL"},
		{"none_of_type_embedding", c, "bare", Embedding, fault.NotFound, `client "bare" lists no embedding model`, "list one under models: of the client, with type: embedding"},
		{"builtin_reranker", c, "builtin", Reranker, fault.NotFound, `client "builtin" lists no reranker model`, "list one under models: of another client"},
		{"empty_embedding", c, "", Embedding, fault.NotFound, "no embedding model is named", ""},
		{"nothing_configured", New(nil, nil), "", Chat, fault.Config, "no model to talk to: nothing is configured", ways},
		{"nothing_configured_but_named", New(nil, nil), "openai:gpt-4o", Chat, fault.Config, `unknown chat model "openai:gpt-4o": no client is configured`, ways},
		{
			"no_model_listed", unlisted, "", Chat, fault.Config, "no model chosen, and no configured client lists a chat model",
			"name one with -m openai:MODEL, set model: openai:MODEL in config.yaml, or list models: under the client",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := tt.c.Resolve(tt.id, tt.t)
			if err == nil {
				t.Fatalf("no error, but %+v", m)
			}
			if got := fault.CodeOf(err); got != tt.code {
				t.Errorf("code %q, want %q", got, tt.code)
			}
			if err.Error() != tt.msg {
				t.Errorf("\n got %s\nwant %s", err, tt.msg)
			}
			if hint := fault.HintOf(err); !strings.HasPrefix(hint, tt.hint) || tt.hint == "" && hint != "" {
				t.Errorf("hint\n got %s\nwant %s", hint, tt.hint)
			}
		})
	}
}

// TestWaysToAModel follows the hint of someone who has configured nothing.
func TestWaysToAModel(t *testing.T) {
	_, err := New(nil, nil).Default()
	hint := fault.HintOf(err)
	for _, way := range []string{"OPENAI_API_KEY", "ollama pull llama3.2", "-m builtin:extract", "config.yaml"} {
		if !strings.Contains(hint, way) {
			t.Errorf("%q does not name %s", hint, way)
		}
	}
	if _, err := New(nil, nil).Resolve("builtin:extract", Chat); err != nil {
		t.Error(err)
	}
}

func TestSameNameTwice(t *testing.T) {
	c := New([]Client{
		{Name: "a", Type: "openai", Models: []Model{{Name: "m", MaxInputTokens: 1}}},
		{Name: "a", Type: "claude", Models: []Model{{Name: "m", MaxInputTokens: 2}}},
	}, nil)
	m, err := c.Resolve("a:m", Chat)
	if err != nil || m.MaxInputTokens != 1 {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestModelNames(t *testing.T) {
	m := Model{Client: "c", Name: "n"}
	if m.ID() != "c:n" || m.APIName() != "n" {
		t.Errorf("id %s, API name %s", m.ID(), m.APIName())
	}
	m.RealName = "r"
	if m.APIName() != "r" {
		t.Errorf("API name %s", m.APIName())
	}
}

func TestParseType(t *testing.T) {
	for name, want := range map[string]Type{
		"chat": Chat, "": Chat, "completion": Chat,
		"embed": Embedding, "embedding": Embedding, "embeddings": Embedding,
		"rerank": Reranker, "reranker": Reranker,
	} {
		if got := ParseType(name); got != want {
			t.Errorf("ParseType(%q) = %s, want %s", name, got, want)
		}
	}
}

func TestDecodeModel(t *testing.T) {
	doc, err := yamldoc.Parse("models.yaml", []byte(`
name: 4.10
type: embeddings
real_name: r
input_price: 0
max_batch_size: 9
patch:
  body: {a: null, b: [1.0]}
  headers: {N: 5, R: null, T: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	zero, five, yes := 0.0, "5", "true"
	want := Model{
		Name: "4.10", Type: Embedding, RealName: "r", InputPrice: &zero, MaxBatchSize: 9,
		Patch: &wire.Patch{
			Body: value.ObjectOf(
				value.Member{Name: "a"},
				value.Member{Name: "b", Value: value.ListOf(value.Of(1.0)).Value()},
			),
			Headers: []wire.Header{{Name: "N", Value: &five}, {Name: "R"}, {Name: "T", Value: &yes}},
		},
	}
	got := DecodeModel(doc.Root())
	if doc.Err() != nil || len(doc.Warnings()) > 0 {
		t.Fatalf("error %v, warnings %v", doc.Err(), doc.Warnings())
	}
	sameValue := cmp.Comparer(func(a, b *value.Object) bool { return value.Equal(a.Value(), b.Value()) })
	if diff := cmp.Diff(want, got, sameValue); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
