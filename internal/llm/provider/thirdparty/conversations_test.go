package thirdparty_test

import (
	"encoding/json"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
)

// pixel is a picture of one pixel.
const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const picture = "https://example.com/cat.png"

func ptr[T any](v T) *T { return &v }

func user(text string) chat.Message      { return chat.Text(chat.User, text) }
func assistant(text string) chat.Message { return chat.Text(chat.Assistant, text) }

func image(url string) chat.Part { return chat.Part{Type: chat.ImagePart, URL: url} }

// weatherTools returns declarations of several shapes.
func weatherTools() []chat.Tool {
	return []chat.Tool{
		{Name: "weather", Description: "Tells the weather.", Parameters: json.RawMessage(
			`{"type":"object","properties":{"city":{"type":"string","description":"Where?"},"days":{"type":"integer","minimum":1},"unit":{"enum":["C","F"]},` +
				`"at":{"anyOf":[{"type":"string","format":"date"},{"type":"null"}]},"tags":{"type":"array","items":{"type":"string"}}},"required":["city"],"additionalProperties":false}`,
		)},
		{Name: "get_weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"$ref":"#/$defs/city"}},"$defs":{"city":{"type":"string"}}}`)},
		{Name: "get_time", Description: "Tells the time."},
		{Name: "empty", Parameters: json.RawMessage(`{"type":"object"}`)},
	}
}

// conversation is a request that every API has to be able to express.
type conversation struct {
	name   string
	req    provider.Request
	remote bool // holds the URL of an image
}

func conversations() []conversation {
	call := chat.ToolCall{ID: "call_abc", Name: "weather", Arguments: `{"city":"Zürich"}`}
	result := func(id string, parts ...chat.Part) chat.Message {
		return chat.Message{Role: chat.ToolRole, ToolCallID: id, ToolName: "weather", Parts: parts}
	}
	text := func(s string) chat.Part { return chat.Part{Type: chat.TextPart, Text: s} }
	list := []conversation{
		{name: "text", req: provider.Request{Messages: []chat.Message{user("Hello.")}}},
		{name: "system", req: provider.Request{Messages: []chat.Message{chat.Text(chat.System, "Be brief."), user("Hello <b>&</b> \u2028 \U0001F600")}}},
		{name: "turns", req: provider.Request{Messages: []chat.Message{
			chat.Text(chat.System, "Be brief."), user("One?"), assistant("<think>hm</think>Two."), user("Three?"), {Role: chat.Assistant}, user("Still there?"),
		}}},
		{name: "sampling", req: provider.Request{
			Messages: []chat.Message{user("Hello.")}, Sampling: chat.Sampling{Temperature: ptr(0.5), TopP: ptr(0.9)}, MaxOutputTokens: 2000,
		}},
		{name: "image", req: provider.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{text("What is it?"), image(pixel)}}}}},
		{name: "image_url", remote: true, req: provider.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{image(picture), text("What is it?")}}}}},
		{name: "tools", req: provider.Request{Messages: []chat.Message{user("What is the weather?")}, Tools: weatherTools()}},
		{name: "rounds", req: provider.Request{Tools: weatherTools(), Messages: []chat.Message{
			user("What is the weather?"),
			{Role: chat.Assistant, Parts: []chat.Part{text("I look.")}, ToolCalls: []chat.ToolCall{call, {ID: "call_2", Name: "get_time", Arguments: "{}"}}},
			result("call_abc", text(`{"degrees":18}`)),
			{Role: chat.ToolRole, ToolCallID: "call_2", ToolName: "get_time", Failed: true, Parts: []chat.Part{text("no clock")}},
			{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "call_3", Name: "weather", Arguments: "not JSON"}}},
			result("call_3"),
		}}},
		{name: "image_of_a_tool", req: provider.Request{Tools: weatherTools(), Messages: []chat.Message{
			user("Show the weather."), {Role: chat.Assistant, ToolCalls: []chat.ToolCall{call}}, result("call_abc", text("a map"), image(pixel)),
		}}},
		{name: "calls_of_other_providers", req: provider.Request{Tools: weatherTools(), Messages: []chat.Message{
			user("Hello."),
			{
				Role: chat.Assistant, Parts: []chat.Part{{Type: chat.ReasoningPart, Text: "Hm."}, {Type: chat.ReasoningPart, Signature: "b3RoZXI="}, text("I look.")},
				ToolCalls: []chat.ToolCall{{ID: strings.Repeat("x", 70) + ":|", Name: "weather", Arguments: "", Signature: "c2ln"}},
			},
			result(strings.Repeat("x", 70)+":|", text("rain")),
		}}},
		{name: "withdrawn_tools", req: provider.Request{Messages: []chat.Message{
			user("Hello."), {Role: chat.Assistant, ToolCalls: []chat.ToolCall{call}}, result("call_abc", text("rain")), assistant("It rains."), user("Thanks."),
		}}},
	}
	for _, e := range []provider.Effort{provider.NoEffort, provider.MinimalEffort, provider.LowEffort, provider.MediumEffort, provider.HighEffort} {
		list = append(list, conversation{name: "effort_" + string(e), req: provider.Request{
			Messages: []chat.Message{user("Think.")}, Sampling: chat.Sampling{Effort: e, Temperature: ptr(0.5)}, MaxOutputTokens: 6000, Tools: weatherTools(),
		}})
	}
	return list
}

// sent is the body of a request and what it is of.
type sent struct {
	name string
	body json.RawMessage
	typ  string // in wire.ts
}

// requests returns what the client of a sends for all conversations, and for one that
// goes on after a recorded reply.
func (a api) requests(t *testing.T) []sent {
	t.Helper()
	var all []sent
	for _, model := range a.models {
		for _, stream := range []bool{false, true} {
			suffix := "/" + model + "/whole"
			if stream {
				suffix = "/" + model + "/stream"
			}
			for _, c := range conversations() {
				if c.remote && a.localOnly {
					continue
				}
				c.req.Model, c.req.Stream = model, stream
				server := newPlayer(t, unavailable)
				a.ask(t, server, c.req)
				all = append(all, sent{a.name + "/" + c.name + suffix, server.last(t), a.body})
			}
			all = append(all, sent{a.name + "/replay" + suffix, a.replay(t, model, stream), a.body})
		}
	}
	return all
}

// replay returns the request that answers the calls of the recorded reply.
func (a api) replay(t *testing.T, model string, stream bool) []byte {
	t.Helper()
	server := newPlayer(t, readRecording(t, a.tools), unavailable)
	client := a.client(t, server.url)
	req := provider.Request{
		Model: model, Stream: true, Sampling: chat.Sampling{Effort: provider.MediumEffort}, MaxOutputTokens: 12000, Tools: weatherTools(),
		Messages: []chat.Message{user("What is the weather in Zürich?")},
	}
	reply := providertest.Collect(t, client.Chat(t.Context(), req))
	if reply.Err != nil || len(reply.ToolCalls) == 0 {
		t.Fatalf("%s: %d calls in the recorded reply: %v", a.name, len(reply.ToolCalls), reply.Err)
	}
	req.Messages = append(req.Messages, reply.Message())
	for _, c := range reply.ToolCalls {
		req.Messages = append(req.Messages, chat.Message{
			Role: chat.ToolRole, ToolCallID: c.ID, ToolName: c.Name, Parts: []chat.Part{{Type: chat.TextPart, Text: "18 degrees"}},
		})
	}
	req.Stream = stream
	for _, err := range client.Chat(t.Context(), req) {
		wantUnavailable(t, a.name, err)
	}
	return server.last(t)
}

// ask sends one request, which the server refuses.
func (a api) ask(t *testing.T, server *player, req provider.Request) {
	t.Helper()
	for _, err := range a.client(t, server.url).Chat(t.Context(), req) {
		wantUnavailable(t, a.name, err)
	}
}

// searches returns what the client of a sends for vectors and for the order of documents.
func (a api) searches(t *testing.T) []sent {
	t.Helper()
	var all []sent
	texts := []string{"One.", "Größe \U0001F600"}
	if a.embedding != "" {
		for _, query := range []bool{false, true} {
			server := newPlayer(t, unavailable)
			_, _, err := a.client(t, server.url).(provider.Embedder).Embed(t.Context(), provider.EmbedRequest{Model: "m", Texts: texts, Query: query})
			wantUnavailable(t, a.name, err)
			all = append(all, sent{a.name + "/embed", server.last(t), a.embedding})
		}
	}
	if a.rerank != "" {
		for _, n := range []int{0, 1} {
			server := newPlayer(t, unavailable)
			_, _, err := a.client(t, server.url).(provider.Reranker).Rerank(t.Context(), provider.RerankRequest{Model: "m", Query: "Which?", Documents: texts, TopN: n})
			wantUnavailable(t, a.name, err)
			all = append(all, sent{a.name + "/rerank", server.last(t), a.rerank})
		}
	}
	return all
}
