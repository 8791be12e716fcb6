package openai_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

const testKey = "sk-test-1234"

func transcript(t *testing.T, name string) string {
	t.Helper()
	return providertest.Play(t, "testdata/transcripts/"+name+".txt").URL
}

// openAI returns a client of OpenAI that talks to a transcript.
func openAI(t *testing.T, name string) *openai.Client {
	t.Helper()
	o := client.Options{
		Name: "openai", APIBase: transcript(t, name) + "/v1", APIKey: wiretest.Key(testKey), Headers: map[string]string{"OpenAI-Organization": "org-test"},
		Model: func(name string) wire.Model {
			if strings.HasPrefix(name, "o") {
				return wire.Model{Patch: wire.Patch{Body: providertest.Object(map[string]any{"max_tokens": nil})}}
			}
			return wire.Model{}
		},
	}
	if strings.HasPrefix(name, "responses") {
		o.API = "responses"
	}
	c, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// say asks for a reply and puts it into the conversation.
func say(t *testing.T, c provider.Chat, req *provider.Request) providertest.Reply {
	t.Helper()
	r := collect(t, c, *req)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	req.Messages = append(req.Messages, r.Message())
	return r
}

// answerCalls puts the results of a reply's calls into the conversation.
func answerCalls(req *provider.Request, r providertest.Reply) {
	for _, c := range r.ToolCalls {
		req.Messages = append(req.Messages, chat.Message{
			Role: chat.ToolRole, ToolCallID: c.ID, ToolName: c.Name,
			Parts: []chat.Part{{Type: chat.TextPart, Text: "result of " + c.Name}},
		})
	}
}

var picture = chat.Part{Type: chat.ImagePart, URL: "data:image/png;base64,iVBORw0KGgo="}

// apis are the formats of chats, as the names of transcripts begin.
func apis(t *testing.T, test func(t *testing.T, api string)) {
	for _, api := range []string{"chat", "responses"} {
		t.Run(api, func(t *testing.T) { test(t, api) })
	}
}

func TestTranscriptText(t *testing.T) {
	apis(t, func(t *testing.T, api string) {
		c := openAI(t, api+"_text")
		req := provider.Request{
			Model: "gpt-4.1", Sampling: chat.Sampling{Temperature: float(0.5), TopP: float(0.9)}, MaxOutputTokens: 100,
			Messages: []chat.Message{chat.Text(chat.System, "You are terse."), chat.Text(chat.User, "Capital of France?")},
		}
		r := say(t, c, &req)
		want := chat.Usage{InputTokens: 19, CachedInputTokens: 4, OutputTokens: 3}
		if api == "responses" {
			want.CacheWriteTokens = 8
		}
		if r.Text != "Paris." || r.Stop != chat.StopEnd || r.Usage != want {
			t.Errorf("reply %+v", r)
		}
		if api == "chat" {
			return
		}
		req.Messages = append(req.Messages, chat.Text(chat.User, "And of Italy?"))
		if r := say(t, c, &req); r.Text != "Ro" || r.Stop != chat.StopLength {
			t.Errorf("reply %+v", r)
		}
	})
}

func TestTranscriptStream(t *testing.T) {
	req := provider.Request{Model: "gpt-4.1", Stream: true, Messages: []chat.Message{chat.Text(chat.User, "Größe?")}}
	r := say(t, openAI(t, "chat_stream"), &req)
	if r.Text != "12 µm 😀." || r.Chunks != 3 || r.Usage != (chat.Usage{InputTokens: 9, OutputTokens: 6}) {
		t.Errorf("reply %+v", r)
	}
}

func TestTranscriptTools(t *testing.T) {
	apis(t, func(t *testing.T, api string) {
		c := openAI(t, api+"_tools")
		req := provider.Request{
			Model: "gpt-4.1", Stream: true, Messages: []chat.Message{chat.Text(chat.User, "Weather in Zürich? And the time.")},
			Tools: []chat.Tool{
				{Name: "get_weather", Description: "Tells the weather.", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
				{Name: "get_time"},
			},
		}
		usage := chat.Usage{InputTokens: 80, OutputTokens: 45}
		if api == "responses" {
			req.Model, req.Effort = "gpt-5", provider.LowEffort
			usage = chat.Usage{InputTokens: 80, CachedInputTokens: 64, OutputTokens: 145, ReasoningTokens: 128}
		}
		r := say(t, c, &req)
		if len(r.ToolCalls) != 2 || r.ToolCalls[0].Arguments != `{"city":"Zürich"}` || r.Stop != chat.StopToolCalls || r.Usage != usage {
			t.Errorf("reply %+v", r)
		}
		if api == "responses" && r.Reasoning != "**Asking** for the weather.\n\nIn Zürich." {
			t.Errorf("reasoning %q", r.Reasoning)
		}
		answerCalls(&req, r)
		last := &req.Messages[len(req.Messages)-1]
		last.Parts = append(last.Parts, picture)
		if r := say(t, c, &req); r.Text != "Rain, noon." || r.Stop != chat.StopEnd {
			t.Errorf("reply %+v", r)
		}
	})
}

func TestTranscriptImages(t *testing.T) {
	apis(t, func(t *testing.T, api string) {
		req := provider.Request{Model: "gpt-4.1", Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{
			{Type: chat.TextPart, Text: "What is this?"}, picture, {Type: chat.ImagePart, URL: "https://example.com/cat.jpg"},
		}}}}
		if api == "responses" {
			req.Model = "gpt-5"
		}
		if r := say(t, openAI(t, api+"_images"), &req); r.Text != "A cat." {
			t.Errorf("reply %+v", r)
		}
	})
}

func TestTranscriptReasoning(t *testing.T) {
	c := openAI(t, "chat_reasoning")
	req := provider.Request{
		Model: "o4-mini", Sampling: chat.Sampling{Effort: provider.MinimalEffort}, MaxOutputTokens: 1000,
		Messages: []chat.Message{chat.Text(chat.User, "1+1?")}, Tools: []chat.Tool{{Name: "add"}},
	}
	r := say(t, c, &req)
	if r.Reasoning != "One and one." || r.Usage.ReasoningTokens != 64 {
		t.Errorf("reply %+v", r)
	}
	answerCalls(&req, r)
	if r := say(t, c, &req); r.Text != "2" {
		t.Errorf("reply %+v", r)
	}
}

func TestTranscriptErrors(t *testing.T) {
	apis(t, func(t *testing.T, api string) {
		c := openAI(t, api+"_errors")
		type failed struct {
			kind  provider.ErrorKind
			after time.Duration
			text  string
			msg   string
		}
		wants := []failed{
			{provider.RateLimited, 1200 * time.Millisecond, "", "Rate limit reached for gpt-4.1"},
			{provider.Transient, 0, "Hel", "The server had an error"},
		}
		req := provider.Request{Model: "gpt-4.1", Stream: true, Messages: []chat.Message{chat.Text(chat.User, "Hello")}}
		if api == "responses" {
			req.Model = "gpt-5"
			wants = []failed{
				{provider.ContextOverflow, 0, "", "exceeds the context window"},
				{provider.RateLimited, 1500 * time.Millisecond, "Hel", "Rate limit reached"},
				{provider.Transient, 0, "", "The model failed to generate a response. (code: server_error)"},
			}
		}
		for _, want := range wants {
			r := collect(t, c, req)
			e, ok := errors.AsType[*provider.Error](r.Err)
			if !ok || e.Kind != want.kind || e.RetryAfter != want.after || r.Text != want.text || !strings.Contains(e.Msg, want.msg) || r.ToolCalls != nil {
				t.Errorf("text %q, error %+v, want %+v", r.Text, r.Err, want)
			}
		}
	})
}

func TestTranscriptAzure(t *testing.T) {
	c, err := openai.NewAzure(client.Options{
		Name: "azure-openai", APIBase: transcript(t, "azure") + "/", APIKey: wiretest.Key("azure-key-1234"),
		Model: func(name string) wire.Model { return wire.Model{RealName: "my-" + name} },
	})
	if err != nil {
		t.Fatal(err)
	}
	req := provider.Request{Model: "gpt", Stream: true, Messages: []chat.Message{chat.Text(chat.User, "Hello")}}
	again := req
	if r := say(t, c, &req); r.Text != "Hi." || r.Usage != (chat.Usage{InputTokens: 8, OutputTokens: 3}) {
		t.Errorf("reply %+v", r)
	}
	if e, ok := errors.AsType[*provider.Error](collect(t, c, again).Err); !ok || e.Kind != provider.Refused {
		t.Errorf("error = %+v", e)
	}
	vectors, _, err := c.Embed(t.Context(), provider.EmbedRequest{Model: "embed", Texts: []string{"a", "b"}})
	if err != nil || !reflect.DeepEqual(vectors, [][]float32{{0.5, 1}, {-1, 0.25}}) {
		t.Errorf("vectors %v, %v", vectors, err)
	}
}

// TestTranscriptRetrieval asks those that serve retrieval.
func TestTranscriptRetrieval(t *testing.T) {
	for _, tt := range []struct{ name, version, key, embedder, reranker string }{
		{"jina", "v1", "jina_1234", "jina-embeddings-v3", "jina-reranker-v2-base-multilingual"},
		{"voyageai", "v1", "pa-1234", "voyage-3.5", "rerank-2.5"},
		{"ernie", "v2", "", "", "bce-reranker-base"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := transcript(t, tt.name) + "/" + tt.version
			c, err := openai.NewCompatible(client.Options{Name: tt.name, APIBase: base, APIKey: wiretest.Key(tt.key)})
			if err != nil {
				t.Fatal(err)
			}
			if tt.embedder != "" {
				vectors, usage, err := c.Embed(t.Context(), provider.EmbedRequest{Model: tt.embedder, Texts: []string{"a", "b"}})
				if err != nil || !reflect.DeepEqual(vectors, [][]float32{{0.5, 1}, {-1, 0.25}}) || usage.InputTokens != 6 {
					t.Errorf("vectors %v, usage %+v, %v", vectors, usage, err)
				}
				_, _, err = c.Embed(t.Context(), provider.EmbedRequest{Model: tt.embedder, Texts: []string{"q"}, Query: true})
				if e, ok := errors.AsType[*provider.Error](err); !ok || e.Kind != provider.Invalid || !strings.Contains(e.Msg, "Validation error") {
					t.Errorf("error = %v", err)
				}
			}
			ranked, usage, err := c.Rerank(t.Context(), provider.RerankRequest{Model: tt.reranker, Query: "q", Documents: []string{"a", "b", "c"}, TopN: 2})
			if err != nil || !reflect.DeepEqual(ranked, []provider.Ranked{{Index: 2, Score: 0.9}, {Index: 0, Score: 0.1}}) || usage.InputTokens != 15 {
				t.Errorf("ranking %v, usage %+v, %v", ranked, usage, err)
			}
		})
	}
}
