package openai_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

func float(f float64) *float64 { return &f }

// round is one round of tool use.
func round(text string, calls ...chat.ToolCall) []chat.Message {
	m := chat.Message{Role: chat.Assistant, ToolCalls: calls}
	if text != "" {
		m.Parts = []chat.Part{{Type: chat.TextPart, Text: text}}
	}
	messages := []chat.Message{m}
	for _, c := range calls {
		messages = append(messages, chat.Message{
			Role: chat.ToolRole, ToolCallID: c.ID, ToolName: c.Name,
			Parts: []chat.Part{{Type: chat.TextPart, Text: "result of " + c.ID}},
		})
	}
	return messages
}

func reasoned(reasoning, text string, calls ...chat.ToolCall) []chat.Message {
	messages := round(text, calls...)
	messages[0].Parts = append([]chat.Part{{Type: chat.ReasoningPart, Text: reasoning, Signature: "s"}}, messages[0].Parts...)
	return messages
}

// TestRequests compares the bodies of requests with golden files.
func TestRequests(t *testing.T) {
	user := func(s string) chat.Message { return chat.Text(chat.User, s) }
	call := func(id, arguments string) chat.ToolCall {
		return chat.ToolCall{ID: id, Name: "f", Arguments: arguments}
	}
	image := chat.Part{Type: chat.ImagePart, URL: "data:image/png;base64,AAAA"}
	withImage := round("", call("c1", "{}"), call("c2", "{}"))
	withImage[1].Parts = append(withImage[1].Parts, image)
	for _, tt := range []struct {
		name string
		req  provider.Request
	}{
		{"text", provider.Request{Messages: []chat.Message{user("Hi <&>")}}},
		{"all_parameters", provider.Request{
			Stream: true, Sampling: chat.Sampling{Temperature: float(0), TopP: float(0.9)}, MaxOutputTokens: 100,
			Messages: []chat.Message{chat.Text(chat.System, "Be brief."), user("Hi")},
			Origin:   provider.Origin{Node: "secret_node", Turn: 3},
		}},
		{"constraints", provider.Request{Messages: []chat.Message{user("Hi")}, Tools: []chat.Tool{{Name: "f"}, {Name: "g"}}, Constraints: chat.Constraints{Stop: []string{"END", "\n", "a", "b", "c", "d", "e"}, Seed: new(int64(7)), FrequencyPenalty: 0.5, PresencePenalty: 1, Choice: chat.ToolChoice{Required: true, Name: "f"}}}},
		{"any_tool", provider.Request{Messages: []chat.Message{user("Hi")}, Tools: []chat.Tool{{Name: "f"}, {Name: "g"}}, Constraints: chat.Constraints{Choice: chat.ToolChoice{Required: true}}}},
		{"turns", provider.Request{Messages: []chat.Message{user("1+1?"), chat.Text(chat.Assistant, "2"), user("Sure?")}}},
		{"images", provider.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{
			{Type: chat.TextPart, Text: "What are these?"}, image, {Type: chat.ImagePart, URL: "https://example.com/a.jpg"},
		}}}}},
		{"text_parts_joined", provider.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{
			{Type: chat.TextPart, Text: "a"}, {Type: chat.TextPart, Text: "b"},
		}}}}},
		{"tools", provider.Request{Messages: []chat.Message{user("Hi")}, Tools: []chat.Tool{
			{Name: "f", Description: "Does it.", Parameters: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}`)},
			{Name: "without_parameters"},
			{Name: "without_properties", Parameters: json.RawMessage(`{"type":"object"}`)},
			{Name: "null_parameters", Parameters: json.RawMessage(`null`)},
		}}},
		{"tool_rounds", provider.Request{Messages: slices.Concat(
			[]chat.Message{user("Hi")},
			round("Let me see.", call("c1", `{"x":1}`), call("c2", "{}")),
			round("", call("c3", "{}")),
		)}},
		{"tool_images_after_the_round", provider.Request{Messages: slices.Concat([]chat.Message{user("Hi")}, withImage, round("", call("c3", "{}")))}},
		{"tool_images_at_the_end", provider.Request{Messages: slices.Concat([]chat.Message{user("Hi")}, withImage)}},
		{"arguments", provider.Request{Messages: slices.Concat([]chat.Message{user("Hi")}, round("",
			call("c1", `{"broken": `), call("c2", ""), call("c3", "null"), call("c4", `[1]`), call("c5", ` {"x":1} `), call("c6", `"<"`),
		))}},
		{"long_ids", provider.Request{Messages: slices.Concat([]chat.Message{user("Hi")}, round("", call(strings.Repeat("x", 41), "{}"), call(strings.Repeat("x", 40), "{}")))}},
		{"reasoning_only_in_the_loop", provider.Request{Messages: slices.Concat(
			[]chat.Message{user("Hi")}, reasoned("old", "", call("c1", "{}")), reasoned("old", "answer"),
			[]chat.Message{user("And?")}, reasoned("new", "", call("c2", "{}")),
		)}},
		{"thinking_left_out", provider.Request{Messages: []chat.Message{
			user("Hi"), chat.Text(chat.Assistant, "\n<think>\nhm\n</think>\n\nYes"), user("Sure?"),
			chat.Text(chat.Assistant, "<think>never ends"), user("And?"), chat.Text(chat.Assistant, "<think>go</think>on"),
		}}},
		{"empty_answer_left_out", provider.Request{Messages: []chat.Message{
			user("Hi"), {Role: chat.Assistant}, {Role: chat.Assistant, Parts: []chat.Part{{Type: chat.ReasoningPart, Text: "hm"}}}, user("Hi?"),
		}}},
		{"effort", provider.Request{Sampling: chat.Sampling{Effort: provider.HighEffort}, Messages: []chat.Message{user("Hi")}}},
		{"effort_none", provider.Request{Sampling: chat.Sampling{Effort: provider.NoEffort}, Messages: []chat.Message{user("Hi")}}},
		{"proofs_of_reasoning", provider.Request{Messages: []chat.Message{
			user("Hi"),
			{
				Role: chat.Assistant,
				Parts: []chat.Part{
					{Type: chat.ReasoningPart, Text: "of another provider", Signature: "EqQBCgIYAhIM"},
					{Type: chat.ReasoningPart, Text: "one", Signature: `{"id":"rs_1","encrypted_content":"e1"}`},
					{Type: chat.TextPart, Text: "Let me see."},
					{Type: chat.ReasoningPart, Signature: `{"id":"rs_2","encrypted_content":"e2"}`},
				},
				ToolCalls: []chat.ToolCall{
					{ID: "c1", Name: "f", Arguments: "{}"},
					{ID: "c2", Name: "g", Arguments: "{}", Signature: `{"id":"rs_2"}`},
					{ID: "c3", Name: "h", Arguments: "{}", Signature: `{"id":"rs_2"}`},
					{ID: "c4", Name: "i", Arguments: "{}", Signature: "of another provider"},
				},
			},
			{Role: chat.ToolRole, ToolCallID: "c1", ToolName: "f", Parts: []chat.Part{{Type: chat.TextPart, Text: "ok"}}},
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.req.Model = "m"
			for api, dir := range map[string]string{"chat_completions": "requests", "responses": "requests_responses"} {
				c, server := newClient(t, client.Options{API: api}, openaitest.Text("ok"))
				if r := collect(t, c, tt.req); r.Err != nil {
					t.Fatal(r.Err)
				}
				var b bytes.Buffer
				if err := json.Indent(&b, server.Requests()[0].Body, "", "  "); err != nil {
					t.Fatal(err)
				}
				providertest.Golden(t, "testdata/"+dir+"/"+tt.name+".golden", b.String()+"\n", *update)
			}
		})
	}
}

// TestHeaders looks at URL and header of the three kinds of clients and calls.
func TestHeaders(t *testing.T) {
	const key = "sk-1234567890"
	embed := func(t *testing.T, c provider.Chat) {
		if _, _, err := c.(provider.Embedder).Embed(t.Context(), provider.EmbedRequest{Model: "m/1", Texts: []string{"a"}}); err != nil {
			t.Error(err)
		}
	}
	ask := func(t *testing.T, c provider.Chat) {
		req := question()
		req.Model = "m/1"
		if r := collect(t, c, req); r.Err != nil {
			t.Error(r.Err)
		}
	}
	rerank := func(t *testing.T, c provider.Chat) {
		if _, _, err := c.(provider.Reranker).Rerank(t.Context(), provider.RerankRequest{Model: "m", Query: "q", Documents: []string{"a"}}); err != nil {
			t.Error(err)
		}
	}
	openAI := func(o client.Options) (provider.Chat, error) { return openai.New(o) }
	azure := func(o client.Options) (provider.Chat, error) { return openai.NewAzure(o) }
	compatible := func(o client.Options) (provider.Chat, error) { return openai.NewCompatible(o) }
	text, vectors, ranking := openaitest.Text("ok"), openaitest.Embeddings([]float32{1}), openaitest.Ranking(openaitest.Rank{Index: 0, Score: 1})
	for _, tt := range []struct {
		name string
		make func(client.Options) (provider.Chat, error)
		o    client.Options
		send func(*testing.T, provider.Chat)
		re   wiretest.Reply
		path string
		want map[string]string
	}{
		{"openai_chat", openAI, client.Options{Name: "openai", APIKey: wiretest.Key(" " + key + "\n"), Headers: map[string]string{"OpenAI-Organization": "org-1"}, HTTP: wired(t, wire.Options{UserAgent: "loki/1"})}, ask, text, "/chat/completions", map[string]string{
			"Authorization": "Bearer " + key, "Openai-Organization": "org-1", "User-Agent": "loki/1", "Api-Key": "",
			"Accept": "text/event-stream", "Cache-Control": "no-store", "Content-Type": "application/json",
		}},
		{"openai_embeddings", openAI, client.Options{Name: "openai", APIKey: wiretest.Key(key)}, embed, vectors, "/embeddings", map[string]string{
			"Authorization": "Bearer " + key, "Accept": "application/json", "Openai-Organization": "",
		}},
		{"without_key", compatible, client.Options{Name: "local"}, ask, text, "/chat/completions", map[string]string{"Authorization": ""}},
		{"rerank", compatible, client.Options{Name: "jina", APIKey: wiretest.Key(key)}, rerank, ranking, "/rerank", map[string]string{"Authorization": "Bearer " + key}},
		{"rerank_of_ernie", compatible, client.Options{Name: "ernie-2"}, rerank, ranking, "/rerankers", nil},
		{"azure_chat", azure, client.Options{Name: "azure", APIKey: wiretest.Key(key)}, ask, text, "/openai/deployments/m%2F1/chat/completions?api-version=2024-12-01-preview", map[string]string{
			"Authorization": "", "Api-Key": key,
		}},
		{"azure_embeddings", azure, client.Options{Name: "azure", APIKey: wiretest.Key(key)}, embed, vectors, "/openai/deployments/m%2F1/embeddings?api-version=2024-10-21", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := openaitest.New(t)
			server.Script(tt.re)
			tt.o.APIBase = server.URL() + "//"
			c, err := tt.make(tt.o)
			if err != nil {
				t.Fatal(err)
			}
			tt.send(t, c)
			got := server.Requests()[0]
			if got.Path != tt.path || got.Method != http.MethodPost {
				t.Errorf("%s %s, want POST %s", got.Method, got.Path, tt.path)
			}
			for _, name := range slices.Sorted(maps.Keys(tt.want)) {
				if v := got.Header.Get(name); v != tt.want[name] {
					t.Errorf("%s = %q, want %q", name, v, tt.want[name])
				}
			}
		})
	}
}

// TestPatchForRemovedMaxTokens: a model whose patch deletes max_tokens gets the
// limit under its newer name.
func TestPatchForRemovedMaxTokens(t *testing.T) {
	patch := wire.Patch{Body: providertest.Object(map[string]any{"max_tokens": nil})}
	c, server := newClient(t, client.Options{Model: func(string) wire.Model { return wire.Model{Patch: patch} }}, openaitest.Text("a"), openaitest.Text("b"))
	req := question()
	collect(t, c, req)
	req.MaxOutputTokens = 9
	collect(t, c, req)
	for i, want := range []any{nil, 9.0} {
		body := server.Requests()[i].JSON()
		if body["max_completion_tokens"] != want || body["max_tokens"] != nil {
			t.Errorf("request %d: %v", i, body)
		}
	}
}
