package cohere

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

const (
	textWhole = `{"id":"1","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"Hello"}]},
"usage":{"billed_units":{"input_tokens":5,"output_tokens":2},"tokens":{"input_tokens":71,"output_tokens":4}}}`
	toolsWhole = `{"id":"1","finish_reason":"TOOL_CALL","message":{"role":"assistant","tool_plan":"I will look.","tool_calls":[
{"id":"weather_a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}},
{"id":"time_b","type":"function","function":{"name":"time","arguments":""}}]},
"usage":{"billed_units":{"input_tokens":30,"output_tokens":12},"tokens":{"input_tokens":900,"output_tokens":60}}}`
	cutOffWhole = `{"id":"1","finish_reason":"MAX_TOKENS","message":{"role":"assistant","tool_calls":[
{"id":"del_a","type":"function","function":{"name":"del","arguments":"{\"path\":\"build\""}}]},"usage":{"tokens":{"input_tokens":9,"output_tokens":6}}}`
)

// cutOffStream is a call that the output limit has cut off.
func cutOffStream() string {
	return `data: {"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"del_a","type":"function","function":{"name":"del","arguments":""}}}}}

data: {"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"path\":\"build\""}}}}}

data: {"type":"message-end","delta":{"finish_reason":"MAX_TOKENS","usage":{"tokens":{"input_tokens":9,"output_tokens":6}}}}

`
}

func toolCalls() []chat.ToolCall {
	return []chat.ToolCall{
		{ID: "weather_a", Name: "weather", Arguments: `{"city":"Paris"}`},
		{ID: "time_b", Name: "time", Arguments: `{}`},
	}
}

func TestConformance(t *testing.T) {
	text := fixture(t, "text.sse")
	page := wiretest.Status(200, "<html>gateway</html>", "Content-Type", "text/html")
	scripts := map[providertest.Scenario]wiretest.Reply{
		providertest.TextReply:     wiretest.Either(wiretest.Events(text), wiretest.Status(200, textWhole)),
		providertest.ToolCallReply: wiretest.Either(wiretest.Events(fixture(t, "tools.sse")), wiretest.Status(200, toolsWhole)),
		providertest.CutOffCall:    wiretest.Either(wiretest.Events(cutOffStream()), wiretest.Status(200, cutOffWhole)),
		providertest.RateLimited:   wiretest.Status(429, `{"id":"1","message":"You are using a Trial key, which is limited."}`, "Retry-After", "3"),
		providertest.DropMidStream: wiretest.Then(wiretest.Events(before(text, "content-end")), wiretest.Drop),
		providertest.Garbage:       page,
		providertest.Hang:          wiretest.Hang,
		providertest.Stall:         wiretest.Then(wiretest.Events(before(text, "content-end")), wiretest.Hang),
	}
	providertest.Run(t, providertest.Case{New: func(t *testing.T, s providertest.Scenario) providertest.Subject {
		srv := newServer(t, scripts[s])
		return providertest.Subject{
			Chat: srv.client(nil, nil), Request: provider.Request{Model: "command-a-03-2025"},
			Text: "Hello", ToolCalls: toolCalls(), RetryAfter: 3 * time.Second, WaitIdle: srv.WaitIdle, CutOff: `{"path":"build"`,
		}
	}})
}

func user(text string) chat.Message { return chat.Text(chat.User, text) }

func number(f float64) *float64 { return &f }

func wantJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRequestBody(t *testing.T) {
	const pixel = "data:image/png;base64,iVBORw0KGgo="
	calls := chat.Message{
		Role: chat.Assistant,
		Parts: []chat.Part{
			{Type: chat.ReasoningPart, Text: "hm"},
			{Type: chat.ReasoningPart, Text: "foreign", Signature: "x"},
			{Type: chat.TextPart, Text: "I look."},
		},
		ToolCalls: []chat.ToolCall{{ID: "t1", Name: "weather", Arguments: `{"c":"<Paris>"}`}, {ID: "t2", Name: "weather", Arguments: `{"c":`}},
	}
	result := chat.Message{Role: chat.ToolRole, ToolCallID: "t1", ToolName: "weather", Parts: []chat.Part{{Type: chat.TextPart, Text: "21"}, {Type: chat.ImagePart, URL: pixel}}}
	sentCalls := `"tool_calls":[{"id":"t1","type":"function","function":{"name":"weather","arguments":"{\"c\":\"<Paris>\"}"}},
		{"id":"t2","type":"function","function":{"name":"weather","arguments":"{\"malformed_arguments\":\"{\\\"c\\\":\"}"}}]`
	images := `{"role":"user","content":[{"type":"text","text":"Images returned by the tool weather:"},{"type":"image_url","image_url":{"url":"` + pixel + `"}}]}`
	for _, tt := range []struct {
		name string
		req  provider.Request
		want string
	}{
		{
			"parameters",
			provider.Request{
				Model: "m", Messages: []chat.Message{chat.Text(chat.System, "S"), user("a")}, Sampling: chat.Sampling{Temperature: number(0), TopP: number(0.9)}, MaxOutputTokens: 7,
				Tools: []chat.Tool{{Name: "now"}, {Name: "f", Description: "F", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{}}}`)}},
			},
			`{"model":"m","messages":[{"role":"system","content":"S"},{"role":"user","content":"a"}],"temperature":0,"p":0.9,"max_tokens":7,
			"tools":[{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}},
			{"type":"function","function":{"name":"f","description":"F","parameters":{"type":"object","properties":{"a":{}}}}}]}`,
		},
		{
			"constraints",
			provider.Request{Model: "m", Messages: []chat.Message{user("a")}, Tools: []chat.Tool{{Name: "f"}, {Name: "g"}}, Constraints: chat.Constraints{Stop: []string{"END", "\n", "a", "b", "c", "d", "e"}, Seed: new(int64(7)), FrequencyPenalty: 0.5, PresencePenalty: 1, Choice: chat.ToolChoice{Required: true, Name: "f"}}},
			`{"model":"m","messages":[{"role":"user","content":"a"}],"stop_sequences":["END","a","b","c","d"],"seed":7,"frequency_penalty":0.5,"presence_penalty":1,"tool_choice":"REQUIRED",
			"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]}`,
		},
		{
			"penalty_out_of_range",
			provider.Request{Model: "m", Messages: []chat.Message{user("a")}, Constraints: chat.Constraints{FrequencyPenalty: 0.5, PresencePenalty: -1}},
			`{"model":"m","messages":[{"role":"user","content":"a"}]}`,
		},
		{
			"history",
			provider.Request{Model: "m", Messages: []chat.Message{
				user("a"), chat.Text(chat.Assistant, "<think>x</think>\nb"), chat.Text(chat.Assistant, ""), user("c"), chat.Text(chat.Assistant, "<think>y</think>d"),
			}},
			`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":"<think>y</think>d"}]}`,
		},
		{
			"image",
			provider.Request{Model: "m", Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{
				{Type: chat.TextPart, Text: "a"}, {Type: chat.ImagePart, URL: pixel}, {Type: chat.ImagePart, URL: "https://example.org/b.png"},
			}}}},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"` + pixel + `"}},
			{"type":"image_url","image_url":{"url":"https://example.org/b.png"}}]}]}`,
		},
		{
			"tool_round",
			provider.Request{Model: "m", Messages: []chat.Message{user("a"), calls, result, {Role: chat.ToolRole, ToolCallID: "t2"}}},
			`{"model":"m","messages":[{"role":"user","content":"a"},
			{"role":"assistant","tool_plan":"I look.","content":[{"type":"thinking","thinking":"hm"}],` + sentCalls + `},
			{"role":"tool","tool_call_id":"t1","content":"21"},{"role":"tool","tool_call_id":"t2","content":""},` + images + `]}`,
		},
		{
			"tool_round_of_the_past",
			provider.Request{Model: "m", Messages: []chat.Message{user("a"), calls, result, user("b")}},
			`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_plan":"I look.",` + sentCalls + `},
			{"role":"tool","tool_call_id":"t1","content":"21"},` + images + `,{"role":"user","content":"b"}]}`,
		},
		{
			"effort",
			provider.Request{Model: "command-a-reasoning-08-2025", Sampling: chat.Sampling{Effort: provider.MediumEffort}, Messages: []chat.Message{user("a")}},
			`{"model":"command-a-reasoning-08-2025","messages":[{"role":"user","content":"a"}],"thinking":{"type":"enabled","token_budget":16000}}`,
		},
		{
			"effort_within_limit",
			provider.Request{Model: "reasoning", Sampling: chat.Sampling{Effort: provider.HighEffort}, MaxOutputTokens: 1000, Messages: []chat.Message{user("a")}},
			`{"model":"reasoning","max_tokens":1000,"messages":[{"role":"user","content":"a"}],"thinking":{"type":"enabled","token_budget":500}}`,
		},
		{
			"effort_none",
			provider.Request{Model: "reasoning", Sampling: chat.Sampling{Effort: provider.NoEffort}, Messages: []chat.Message{user("a")}},
			`{"model":"reasoning","messages":[{"role":"user","content":"a"}],"thinking":{"type":"disabled"}}`,
		},
		{
			"effort_of_others",
			provider.Request{Model: "command-r", Sampling: chat.Sampling{Effort: provider.HighEffort}, Messages: []chat.Message{user("a")}},
			`{"model":"command-r","messages":[{"role":"user","content":"a"}]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := newServer(t, wiretest.Either(wiretest.Events(fixture(t, "text.sse")), wiretest.Status(200, textWhole)))
			c := srv.client(nil, nil)
			if r := providertest.Collect(t, c.Chat(t.Context(), tt.req)); r.Err != nil {
				t.Fatal(r.Err)
			}
			wantJSON(t, srv.Last().Text(), tt.want)
			tt.req.Stream = true
			if r := providertest.Collect(t, c.Chat(t.Context(), tt.req)); r.Err != nil {
				t.Fatal(r.Err)
			}
			wantJSON(t, srv.Last().Text(), strings.TrimSuffix(tt.want, "}")+`,"stream":true}`)
		})
	}
}

func TestPatches(t *testing.T) {
	srv := newServer(t, wiretest.Status(200, textWhole))
	c := srv.client(
		func(string) wire.Model {
			return wire.Model{RealName: "real", Patch: wire.Patch{Body: providertest.Object(map[string]any{"safety_mode": "OFF"})}}
		},
		wire.Patches{wire.ChatCompletions: {{Pattern: "al.*", Patch: wire.Patch{Headers: []wire.Header{{Name: "X-Client-Name", Value: new("loki")}}}}}},
	)
	providertest.Collect(t, c.Chat(t.Context(), provider.Request{Model: "alias", Messages: []chat.Message{user("a")}}))
	wantJSON(t, srv.Last().Text(), `{"model":"real","safety_mode":"OFF","messages":[{"role":"user","content":"a"}]}`)
	if got := srv.Last(); got.Header.Get("X-Client-Name") != "loki" || got.Path != "/v2/chat" {
		t.Errorf("%s %v", got.Path, got.Header)
	}
}

// chunks returns the chunks of a reply, and its failure.
func chunks(t *testing.T, s wiretest.Reply, stream bool, history ...chat.Message) ([]provider.Chunk, error) {
	t.Helper()
	srv := newServer(t, s)
	req := provider.Request{Model: "m", Stream: stream, Messages: append([]chat.Message{user("a")}, history...)}
	var got []provider.Chunk
	r := providertest.Collect(t, func(yield func(provider.Chunk, error) bool) {
		for c, err := range srv.client(nil, nil).Chat(t.Context(), req) {
			if err == nil {
				got = append(got, c)
			}
			if !yield(c, err) {
				return
			}
		}
	})
	return got, r.Err
}

func text(s string) provider.Chunk { return provider.Chunk{Kind: provider.Text, Text: s} }

func thought(s string) provider.Chunk { return provider.Chunk{Kind: provider.Reasoning, Text: s} }

func call(c chat.ToolCall) provider.Chunk {
	return provider.Chunk{Kind: provider.ToolCall, ToolCall: c}
}

func ended(stop chat.StopReason, in, cached, out int) provider.Chunk {
	return provider.Chunk{Kind: provider.End, Stop: stop, Usage: chat.Usage{InputTokens: in, CachedInputTokens: cached, OutputTokens: out}}
}

func TestReplies(t *testing.T) {
	made := toolCalls()
	for _, tt := range []struct {
		name   string
		script wiretest.Reply
		stream bool
		want   []provider.Chunk
	}{
		{"text_streamed", wiretest.Events(fixture(t, "text.sse")), true, []provider.Chunk{text("Hel"), text("lo"), ended(chat.StopEnd, 5, 0, 2)}},
		{"crlf", wiretest.Events(strings.ReplaceAll(fixture(t, "text.sse"), "\n", "\r\n")), true, []provider.Chunk{text("Hel"), text("lo"), ended(chat.StopEnd, 5, 0, 2)}},
		{"tools_streamed", wiretest.Events(fixture(t, "tools.sse")), true, []provider.Chunk{
			text("I will "), text("look."), call(made[0]), call(made[1]), ended(chat.StopToolCalls, 30, 0, 12),
		}},
		{"tools_whole", wiretest.Status(200, toolsWhole), false, []provider.Chunk{text("I will look."), call(made[0]), call(made[1]), ended(chat.StopToolCalls, 30, 0, 12)}},
		{"whole_although_streamed", wiretest.Status(200, toolsWhole), true, []provider.Chunk{text("I will look."), call(made[0]), call(made[1]), ended(chat.StopToolCalls, 30, 0, 12)}},
		{"whole_as_an_event_stream", wiretest.Status(200, toolsWhole, "Content-Type", "text/event-stream"), true, []provider.Chunk{text("I will look."), call(made[0]), call(made[1]), ended(chat.StopToolCalls, 30, 0, 12)}},
		{
			"call_that_is_lost", wiretest.Status(200, `{"message":{"content":[{"text":"I look."}]},"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":1,"output_tokens":1}}}`), false,
			[]provider.Chunk{text("I look."), {
				Kind: provider.End, Stop: chat.StopToolCalls, Usage: chat.Usage{InputTokens: 1, OutputTokens: 1},
				Body: `{"message":{"content":[{"text":"I look."}]},"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":1,"output_tokens":1}}}`,
			}},
		},
		{"plan_after_text", wiretest.Events(`data: {"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":"I look."}}}}` + "\n\n" +
			`data: {"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I will use a tool."}}}` + "\n\n" +
			`data: {"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":1,"output_tokens":2}}}}` + "\n\n"), true, []provider.Chunk{
			text("I look."), ended(chat.StopEnd, 1, 0, 2),
		}},
		{"thinking_streamed", wiretest.Events(fixture(t, "thinking.sse")), true, []provider.Chunk{
			thought("Hm "), thought("[DONE]."), text("One"), text("Two"), ended(chat.StopLength, 80, 16, 40),
		}},
		{
			"thinking_whole", wiretest.Status(200, `{"message":{"content":[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"One"},{"type":"text","text":"Two"}],"tool_plan":"not shown"},
			"finish_reason":"STOP_SEQUENCE","usage":{"tokens":{"input_tokens":8,"output_tokens":4},"billed_units":null}}`), false,
			[]provider.Chunk{thought("Hm."), text("One"), text("Two"), ended(chat.StopEnd, 8, 0, 4)},
		},
		{
			"done_without_message_end", wiretest.Events(before(fixture(t, "text.sse"), "message-end") + "data: [DONE]\n\n"), true,
			[]provider.Chunk{text("Hel"), text("lo"), {Kind: provider.End, Stop: chat.StopEnd, Usage: chat.Usage{InputTokens: 6, OutputTokens: 2, Estimated: true}}},
		},
		{
			"ids", wiretest.Status(200, `{"message":{"tool_calls":[{"function":{"name":"f"}},{"id":"call_2","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"call_2","function":{"name":"g"}}]},
			"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":1,"output_tokens":1}}}`), false,
			[]provider.Chunk{
				call(chat.ToolCall{ID: "call_1", Name: "f", Arguments: "{}"}), call(chat.ToolCall{ID: "call_2", Name: "f", Arguments: `{"a":1}`}),
				call(chat.ToolCall{ID: "call_3", Name: "g", Arguments: "{}"}), ended(chat.StopToolCalls, 1, 0, 1),
			},
		},
		{
			"loop", wiretest.Status(200, `{"message":{"tool_calls":[`+strings.Repeat(`{"function":{"name":"f"}},`, 5)+`{"id":"x","function":{"name":"g"}}]},
			"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":1,"output_tokens":1}}}`), false,
			[]provider.Chunk{
				call(chat.ToolCall{ID: "call_1", Name: "f", Arguments: "{}"}), call(chat.ToolCall{ID: "call_2", Name: "f", Arguments: "{}"}),
				call(chat.ToolCall{ID: "call_3", Name: "f", Arguments: "{}"}), call(chat.ToolCall{ID: "x", Name: "g", Arguments: "{}"}),
				ended(chat.StopToolCalls, 1, 0, 1),
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := chunks(t, tt.script, tt.stream)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("error %v, chunks (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	begin := before(fixture(t, "text.sse"), "content-end")
	ending := func(delta string) string { return begin + `data: {"type":"message-end","delta":` + delta + "}\n\n" }
	for _, tt := range []struct {
		name   string
		script wiretest.Reply
		stream bool
		kind   provider.ErrorKind
		words  string
	}{
		{"error_at_end", wiretest.Events(ending(`{"finish_reason":"ERROR","error":"The model broke."}`)), true, provider.Transient, "The model broke."},
		{"error_without_words", wiretest.Events(ending(`{"finish_reason":"ERROR"}`)), true, provider.Transient, "error"},
		{"timeout", wiretest.Events(ending(`{"finish_reason":"TIMEOUT"}`)), true, provider.Transient, "timeout"},
		{"error_object", wiretest.Events(begin + "data: {\"message\":\"too many tokens: total number of tokens 9 cannot exceed 8\"}\n\n"), true, provider.ContextOverflow, "too many tokens"},
		{"not_json", wiretest.Events(begin + "data: {\n\n"), true, provider.BadReply, ""},
		{"no_end", wiretest.Events(begin), true, provider.Transient, ""},
		{"calls_and_no_end", wiretest.Events(before(fixture(t, "tools.sse"), "message-end")), true, provider.Transient, ""},
		{"document_for_stream", wiretest.Status(200, `{"message":"internal server_error"}`), true, provider.Transient, "internal"},
		{"whole_error", wiretest.Status(200, `{"finish_reason":"ERROR","message":{"content":[]}}`), false, provider.Transient, ""},
		{"no_message", wiretest.Status(200, `{"id":"1"}`), false, provider.BadReply, ""},
		{"key", wiretest.Status(401, `{"message":"invalid api token"}`), true, provider.Authentication, "invalid api token"},
		{"key_echoed", wiretest.Status(401, `{"message":"invalid api token `+testKey+`"}`), false, provider.Authentication, "invalid api token"},
		{"too_long", wiretest.Status(400, `{"message":"too many tokens: total number of tokens in the prompt exceeded the limit"}`), true, provider.ContextOverflow, "too many tokens"},
		{"no_model", wiretest.Status(404, `{"message":"model 'x' not found"}`), false, provider.Invalid, "not found"},
		{"server", wiretest.Status(500, `{"message":"internal server error"}`), false, provider.Transient, "internal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := chunks(t, tt.script, tt.stream)
			e, ok := errors.AsType[*provider.Error](err)
			if !ok || e.Kind != tt.kind || !strings.Contains(e.Error(), tt.words) {
				t.Errorf("error %v (%T), want %s with %q", err, err, tt.kind, tt.words)
			}
			if err != nil && strings.Contains(err.Error(), testKey) {
				t.Errorf("the error %v tells the key", err)
			}
			for _, c := range got {
				if c.Kind != provider.Text {
					t.Errorf("chunk %+v of a failed reply", c)
				}
			}
		})
	}
}

func TestKey(t *testing.T) {
	for name, get := range map[string]func() (string, error){
		"none": nil, "empty": wiretest.Key(" "), "failing": func() (string, error) { return "", errors.New("the vault is locked") },
	} {
		c, err := New(client.Options{Name: "my-cohere", APIKey: get})
		if err != nil {
			t.Fatal(err)
		}
		r := providertest.Collect(t, c.Chat(t.Context(), provider.Request{Model: "m"}))
		if e, ok := errors.AsType[*provider.Error](r.Err); !ok || e.Kind != provider.Authentication {
			t.Errorf("%s: %v", name, r.Err)
		}
	}
	for name, o := range map[string]client.Options{"no_name": {}, "base": {Name: "a", APIBase: "ftp://a"}} {
		if _, err := New(o); fault.CodeOf(err) != fault.Config {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEmbed(t *testing.T) {
	srv := newServer(t, wiretest.Status(200, `{"id":"1","embeddings":{"float":[[0.5,1],[2,3]]},"meta":{"billed_units":{"input_tokens":4}}}`))
	for query, want := range map[bool]string{false: "search_document", true: "search_query"} {
		vectors, usage, err := srv.client(nil, nil).Embed(t.Context(), provider.EmbedRequest{Model: "embed-v4.0", Texts: []string{"a", "b"}, Query: query})
		if diff := cmp.Diff([][]float32{{0.5, 1}, {2, 3}}, vectors); diff != "" || err != nil || usage != (chat.Usage{InputTokens: 4}) {
			t.Errorf("%v, %+v, %s", err, usage, diff)
		}
		wantJSON(t, srv.Last().Text(), `{"model":"embed-v4.0","texts":["a","b"],"input_type":"`+want+`","embedding_types":["float"]}`)
	}
	if v, _, err := srv.client(nil, nil).Embed(t.Context(), provider.EmbedRequest{Model: "m"}); v != nil || err != nil || len(srv.Requests()) != 2 {
		t.Errorf("no texts: %v, %v after %d requests", v, err, len(srv.Requests()))
	}
}

func TestEmbedBatches(t *testing.T) {
	var sizes []int
	srv := newServer(t)
	srv.Always(func(c *wiretest.Call) {
		var body struct{ Texts []string }
		if err := json.Unmarshal([]byte(srv.Last().Text()), &body); err != nil {
			t.Error(err)
		}
		sizes = append(sizes, len(body.Texts))
		wiretest.Status(200, `{"embeddings":{"float":[`+strings.TrimSuffix(strings.Repeat("[1],", len(body.Texts)), ",")+`]}}`)(c)
	})
	vectors, usage, err := srv.client(nil, nil).Embed(t.Context(), provider.EmbedRequest{Model: "m", Texts: make([]string, 100)})
	if diff := cmp.Diff([]int{96, 4}, sizes); err != nil || len(vectors) != 100 || diff != "" || !usage.Estimated {
		t.Errorf("%d vectors, usage %+v, error %v, batches %s", len(vectors), usage, err, diff)
	}
}

func TestRerank(t *testing.T) {
	srv := newServer(t, wiretest.Status(200, `{"results":[{"index":2,"relevance_score":0.1},{"index":0,"relevance_score":0.9}],"meta":{"billed_units":{"search_units":1}}}`))
	ranked, usage, err := srv.client(nil, nil).Rerank(t.Context(), provider.RerankRequest{Model: "rerank-v3.5", Query: "q", Documents: []string{"a", "b", "c"}, TopN: 2})
	if diff := cmp.Diff([]provider.Ranked{{Index: 0, Score: 0.9}, {Index: 2, Score: 0.1}}, ranked); diff != "" || err != nil || !usage.Estimated {
		t.Errorf("%v, %+v, %s", err, usage, diff)
	}
	wantJSON(t, srv.Last().Text(), `{"model":"rerank-v3.5","query":"q","documents":["a","b","c"],"top_n":2}`)
	ranked, _, err = srv.client(nil, nil).Rerank(t.Context(), provider.RerankRequest{Model: "m", Query: "q", Documents: []string{"a", "b", "c"}})
	if err != nil || len(ranked) != 2 || strings.Contains(srv.Last().Text(), "top_n") {
		t.Errorf("%v, %v, %s", ranked, err, srv.Last().Text())
	}
	if r, _, err := srv.client(nil, nil).Rerank(t.Context(), provider.RerankRequest{Model: "m", Query: "q"}); r != nil || err != nil || len(srv.Requests()) != 2 {
		t.Errorf("no documents: %v, %v after %d requests", r, err, len(srv.Requests()))
	}
}

func TestBadVectorsAndRankings(t *testing.T) {
	for _, body := range []string{
		`{}`, `[]`, `{"embeddings":{"float":[[1]]},"results":[{"index":2}]}`, `{"embeddings":{"float":[[1],[1,2]]},"results":[{"index":-1}]}`,
		`{"embeddings":{"float":[[],[]]},"results":[{"relevance_score":1}]}`, `{"embeddings":[],"results":[{"index":0},{"index":0}]}`,
	} {
		c := newServer(t, wiretest.Status(200, body)).client(nil, nil)
		_, _, embed := c.Embed(t.Context(), provider.EmbedRequest{Model: "m", Texts: []string{"a", "b"}})
		_, _, rerank := c.Rerank(t.Context(), provider.RerankRequest{Model: "m", Query: "q", Documents: []string{"a", "b"}})
		for _, err := range []error{embed, rerank} {
			if e, ok := errors.AsType[*provider.Error](err); !ok || e.Kind != provider.BadReply {
				t.Errorf("%s: %v", body, err)
			}
		}
	}
}

// canned is a transport that answers with a body.
type canned struct {
	kind string
	body []byte
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(bytes.NewReader(c.body)),
	}, nil
}

func (c canned) ask(t *testing.T, stream bool) {
	client, err := New(client.Options{Name: "cohere", APIKey: wiretest.Key("k"), HTTP: &http.Client{Transport: c}})
	if err != nil {
		t.Fatal(err)
	}
	r := providertest.Collect(t, client.Chat(t.Context(), provider.Request{Model: "m", Stream: stream, Messages: []chat.Message{user("a")}}))
	if _, ok := errors.AsType[*provider.Error](r.Err); r.Err != nil && !ok {
		t.Errorf("error %v (%T)", r.Err, r.Err)
	}
}

func FuzzStream(f *testing.F) {
	for _, name := range []string{"text.sse", "tools.sse", "thinking.sse"} {
		f.Add([]byte(fixture(f, name)))
	}
	f.Add([]byte("data: {\"type\":\"tool-call-start\",\"index\":-1,\"delta\":{\"message\":{\"tool_calls\":[]}}}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: {\"message\":\"no\"}\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) { canned{"text/event-stream", stream}.ask(t, true) })
}

func FuzzReply(f *testing.F) {
	f.Add([]byte(textWhole))
	f.Add([]byte(toolsWhole))
	f.Add([]byte(`{"message":{"content":{"text":"x"},"tool_calls":null},"usage":{"tokens":{"input_tokens":1e300,"output_tokens":-5}}}`))
	f.Fuzz(func(t *testing.T, data []byte) { canned{"application/json", data}.ask(t, false) })
}

// A tool loop as the API's documentation has it, put together from what came.
func TestToolRound(t *testing.T) {
	p := providertest.Play(t, "testdata/tool_round.txt")
	c, err := New(client.Options{Name: "cohere", APIBase: p.URL + "/v2", APIKey: wiretest.Key(testKey)})
	if err != nil {
		t.Fatal(err)
	}
	req := provider.Request{
		Model: "command-a-03-2025", Stream: true, Messages: []chat.Message{user("What is it like in Paris?")},
		Tools: []chat.Tool{{Name: "weather", Description: "Tells the weather.", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}},
	}
	r := providertest.Collect(t, c.Chat(t.Context(), req))
	if diff := cmp.Diff(toolCalls(), r.ToolCalls); diff != "" || r.Err != nil || r.Text != "I will look." {
		t.Fatalf("error %v, text %q, calls (-want +got):\n%s", r.Err, r.Text, diff)
	}
	reply := chat.Text(chat.Assistant, r.Text)
	reply.ToolCalls = r.ToolCalls
	req.Messages = append(req.Messages, reply)
	for i, output := range []string{"21 degrees", "noon"} {
		result := chat.Text(chat.ToolRole, output)
		result.ToolCallID = r.ToolCalls[i].ID
		req.Messages = append(req.Messages, result)
	}
	if r := providertest.Collect(t, c.Chat(t.Context(), req)); r.Err != nil || r.Text != "Hello" || r.Stop != chat.StopEnd {
		t.Errorf("error %v, text %q, stop %q", r.Err, r.Text, r.Stop)
	}
}
