package openai_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// message returns message i of a request's body, counted from the end if negative.
func message(t *testing.T, r wiretest.Request, i int) map[string]any {
	t.Helper()
	list, _ := r.JSON()["messages"].([]any)
	if i < 0 {
		i += len(list)
	}
	if i < 0 || i >= len(list) {
		t.Fatalf("no message %d in %s", i, r.Body)
	}
	return list[i].(map[string]any)
}

// TestAdaptation has servers reject something: the request is sent again in
// another way, and from then on in that way at once.
func TestAdaptation(t *testing.T) {
	loop := question(reasoned("why", "", chat.ToolCall{ID: "call_1", Name: "f", Arguments: "{}"})...)
	withLimit := question()
	withLimit.MaxOutputTokens = 50
	penalized := question()
	penalized.PresencePenalty = 1
	sampled := question()
	sampled.Temperature, sampled.TopP = float(0.3), float(0.9)
	history := question(slices.Concat(
		[]chat.Message{chat.Text(chat.Assistant, "Answer."), chat.Text(chat.User, "And?")},
		reasoned("why", "", chat.ToolCall{ID: "call_1", Name: "f", Arguments: "{}"}),
	)...)
	for _, tt := range []struct {
		name   string
		status int
		body   string
		req    provider.Request
		before func(*testing.T, wiretest.Request) bool // holds for the request rejected
		after  func(*testing.T, wiretest.Request) bool // holds for those that follow
	}{
		{
			"stream_options", 422,
			`{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options","include_usage"],"msg":"Extra inputs are not permitted"}]}}`,
			question(),
			func(_ *testing.T, r wiretest.Request) bool { return r.JSON()["stream_options"] != nil },
			func(_ *testing.T, r wiretest.Request) bool {
				return r.JSON()["stream_options"] == nil && r.JSON()["stream"] == true
			},
		},
		{
			"max_completion_tokens", 400,
			`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`,
			withLimit,
			func(_ *testing.T, r wiretest.Request) bool { return r.JSON()["max_tokens"] == 50.0 },
			func(_ *testing.T, r wiretest.Request) bool {
				return r.JSON()["max_tokens"] == nil && r.JSON()["max_completion_tokens"] == 50.0
			},
		},
		{
			"penalties", 400,
			`{"error":{"message":"Unsupported parameter: 'presence_penalty' is not supported with this model.","type":"invalid_request_error","param":"presence_penalty","code":"unsupported_parameter"}}`,
			penalized,
			func(_ *testing.T, r wiretest.Request) bool { return r.JSON()["presence_penalty"] == 1.0 },
			func(_ *testing.T, r wiretest.Request) bool { return r.JSON()["presence_penalty"] == nil },
		},
		{
			"reasoning_rejected", 400,
			`{"message":"messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is unsupported","type":"invalid_request_error","code":"wrong_api_format"}`,
			loop,
			func(t *testing.T, r wiretest.Request) bool { return message(t, r, 1)["reasoning_content"] == "why" },
			func(t *testing.T, r wiretest.Request) bool {
				_, has := message(t, r, 1)["reasoning_content"]
				return !has
			},
		},
		{
			"reasoning_demanded", 400,
			"{\"error\":{\"message\":\"Missing `reasoning_content` field in the assistant message at message index 1.\",\"type\":\"invalid_request_error\"}}",
			history,
			func(t *testing.T, r wiretest.Request) bool {
				_, has := message(t, r, 1)["reasoning_content"]
				return !has && message(t, r, 3)["reasoning_content"] == "why"
			},
			func(t *testing.T, r wiretest.Request) bool {
				return message(t, r, 1)["reasoning_content"] == "" && message(t, r, 3)["reasoning_content"] == "why"
			},
		},
		{
			"temperature", 400,
			`{"error":{"message":"Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`,
			sampled,
			func(_ *testing.T, r wiretest.Request) bool {
				return r.JSON()["temperature"] == 0.3 && r.JSON()["top_p"] == 0.9
			},
			func(_ *testing.T, r wiretest.Request) bool {
				return r.JSON()["temperature"] == nil && r.JSON()["top_p"] == nil
			},
		},
		{
			"top_p", 400,
			`{"error":{"message":"Unsupported parameter: 'top_p' is not supported with this model.","type":"invalid_request_error","param":"top_p","code":"unsupported_parameter"}}`,
			sampled,
			func(_ *testing.T, r wiretest.Request) bool { return r.JSON()["top_p"] == 0.9 },
			func(_ *testing.T, r wiretest.Request) bool { return r.JSON()["top_p"] == nil },
		},
		{
			"short_ids", 400,
			`{"object":"error","message":"Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.","type":"invalid_function_call","code":"3280"}`,
			question(round("", chat.ToolCall{ID: "call_1", Name: "f", Arguments: "{}"}, chat.ToolCall{ID: "D681PevKs", Name: "f", Arguments: "{}"})...),
			func(t *testing.T, r wiretest.Request) bool { return message(t, r, -2)["tool_call_id"] == "call_1" },
			func(t *testing.T, r wiretest.Request) bool {
				calls := message(t, r, 1)["tool_calls"].([]any)
				first, second := calls[0].(map[string]any)["id"].(string), calls[1].(map[string]any)["id"].(string)
				return len(first) == 9 && second == "D681PevKs" &&
					message(t, r, -2)["tool_call_id"] == first && message(t, r, -1)["tool_call_id"] == second
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, server := newClient(t, client.Options{}, wiretest.Status(tt.status, tt.body), openaitest.Text("one"), openaitest.Text("two"))
			for _, want := range []string{"one", "two"} {
				if r := collect(t, c, tt.req); r.Text != want {
					t.Fatalf("text %q, error %v", r.Text, r.Err)
				}
			}
			requests := server.Requests()
			if len(requests) != 3 {
				t.Fatalf("%d requests, want 3", len(requests))
			}
			if !tt.before(t, requests[0]) || !tt.after(t, requests[1]) || !tt.after(t, requests[2]) {
				t.Errorf("requests:\n%s\n%s\n%s", requests[0].Body, requests[1].Body, requests[2].Body)
			}
		})
	}
}

func TestAdaptationEnds(t *testing.T) {
	const body = `{"error":{"message":"stream_options, max_completion_tokens, reasoning_content, Tool call id with a length of 9, missing"}}`
	c, server := newClient(t, client.Options{})
	server.Always(wiretest.Status(400, body))
	req := question(reasoned("why", "", chat.ToolCall{ID: "call_1", Name: "f", Arguments: "{}"})...)
	req.MaxOutputTokens = 1
	if r := collect(t, c, req); r.Err == nil {
		t.Error("no error")
	}
	first := len(server.Requests())
	if first > 6 {
		t.Errorf("%d requests for one reply", first)
	}
	collect(t, c, req)
	if second := len(server.Requests()) - first; second != first {
		t.Errorf("%d and then %d requests: what did not help is remembered", first, second)
	}
}

// TestAdaptationIsPerModel: what one model rejects another may need.
func TestAdaptationIsPerModel(t *testing.T) {
	c, server := newClient(t, client.Options{}, wiretest.Status(400, `{"error":"stream_options?"}`), openaitest.Text("a"), openaitest.Text("b"))
	collect(t, c, question())
	other := question()
	other.Model = "other"
	collect(t, c, other)
	if requests := server.Requests(); requests[2].JSON()["stream_options"] == nil {
		t.Errorf("request for the other model: %s", requests[2].Body)
	}
}

// TestReasoningGoesBackUnderItsName: servers name it in two ways, and some reject
// the other name.
func TestReasoningGoesBackUnderItsName(t *testing.T) {
	for _, field := range []string{"reasoning", "reasoning_content"} {
		t.Run(field, func(t *testing.T) {
			first := wiretest.Body("application/json", `{"choices":[{"message":{"content":"x","`+field+`":"because"},"finish_reason":"stop"}]}`)
			c, server := newClient(t, client.Options{}, first, openaitest.Text("ok"))
			if r := collect(t, c, question()); r.Reasoning != "because" {
				t.Errorf("reasoning = %q", r.Reasoning)
			}
			collect(t, c, question(reasoned("why", "", chat.ToolCall{ID: "c", Name: "f", Arguments: "{}"})...))
			if got := message(t, server.Requests()[1], 1)[field]; got != "why" {
				t.Errorf("%s = %v", field, got)
			}
		})
	}
}

// TestEffort: what a model does not take is replaced by the nearest effort that it names,
// or left out, and both are remembered. The user is shown what is used instead.
func TestEffort(t *testing.T) {
	const lacks = `{"error":{"message":"Unsupported value: 'reasoning_effort' does not support '%s' with this model. Supported values are: %s.","param":"reasoning_effort"}}`
	for _, tt := range []struct {
		name string
		api  string
		body string // of the rejection
		asks []provider.Effort
		want []any // what is sent for each, the first one being sent again
	}{
		{"next_higher", "", fmt.Sprintf(lacks, "minimal", "'none', 'low', 'medium', and 'high'"), []provider.Effort{"minimal", "none", "high", ""}, []any{"low", "none", "high", nil}},
		{"quoted_as_json", "", `{"detail":[{"loc":["body","reasoning_effort"],"msg":"Input should be \"low\" or \"high\""}]}`, []provider.Effort{"medium", "medium"}, []any{"high", "high"}},
		{"lower", "", fmt.Sprintf(lacks, "high", "'low'"), []provider.Effort{"high", "low"}, []any{"low", "low"}},
		{"new_efforts", "", fmt.Sprintf(lacks, "max", "'low', 'medium', 'high', and 'xhigh'"), []provider.Effort{"max", "xhigh", "low"}, []any{"xhigh", "xhigh", "low"}},
		{"unnamed", "", `{"error":{"message":"Invalid value for reasoning_effort"}}`, []provider.Effort{"max", "xhigh"}, []any{"high", "xhigh"}},
		{"unknown", "", `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort"}}`, []provider.Effort{"low", "high"}, []any{nil, nil}},
		{"ollama", "", `{"error":{"message":"\"llama3.2\" does not support thinking"}}`, []provider.Effort{"low", "high"}, []any{nil, nil}},
		{"responses", "responses", `{"error":{"message":"Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported values are: 'none', 'low', 'medium', and 'high'.","param":"reasoning.effort"}}`, []provider.Effort{"minimal", "none"}, []any{"low", "none"}},
		{"responses_unknown", "responses", `{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","param":"reasoning.effort"}}`, []provider.Effort{"low", "high"}, []any{nil, nil}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, server := newClient(t, client.Options{API: tt.api}, wiretest.Status(400, tt.body))
			server.Always(openaitest.Text("ok"))
			for i, e := range tt.asks {
				req := question()
				req.Effort = e
				r := collect(t, c, req)
				if r.Text != "ok" {
					t.Fatalf("text %q, error %v", r.Text, r.Err)
				}
				sent, _ := tt.want[i].(string)
				if replaced := e != "" && string(e) != sent; replaced != (len(r.Notes) == 1) {
					t.Errorf("notes of %q: %q", e, r.Notes)
				} else if replaced && r.Notes[0] != e.ReplacedNote(provider.Effort(sent)) {
					t.Errorf("note %q", r.Notes[0])
				}
			}
			requests := server.Requests()
			if len(requests) != len(tt.want)+1 {
				t.Fatalf("%d requests, want %d", len(requests), len(tt.want)+1)
			}
			for i, r := range requests[1:] {
				got := r.JSON()["reasoning_effort"]
				if tt.api == "responses" {
					reasoning, _ := r.JSON()["reasoning"].(map[string]any)
					got = reasoning["effort"]
				}
				if got != tt.want[i] {
					t.Errorf("request %d: effort %v, want %v", i+2, got, tt.want[i])
				}
			}
		})
	}
}

// TestResponsesAdaptation has servers reject what only the responses format has.
func TestResponsesAdaptation(t *testing.T) {
	proved := chat.Message{Role: chat.Assistant, Parts: []chat.Part{
		{Type: chat.ReasoningPart, Text: "why", Signature: `{"id":"rs_1","encrypted_content":"e"}`},
		{Type: chat.TextPart, Text: "Answer."},
	}}
	has := func(word string) func(string) bool { return func(s string) bool { return strings.Contains(s, word) } }
	for _, tt := range []struct {
		name, body string
		in         func(string) bool // holds for the request rejected and not for the next
		remembered bool
	}{
		{"include", `{"error":{"message":"Encrypted content is not supported with this model.","param":"include"}}`, has(`"include"`), true},
		{"summary", `{"error":{"message":"Your organization must be verified to generate reasoning summaries.","param":"reasoning.summary"}}`, has(`"summary":"auto"`), true},
		{"other_models_reasoning", `{"error":{"message":"The encrypted content for item rs_1 could not be verified.","code":"invalid_encrypted_content"}}`, has(`"rs_1"`), false},
		{"reasoning_alone", `{"error":{"message":"Item 'rs_1' of type 'reasoning' was provided without its required following item."}}`, has(`"rs_1"`), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, server := newClient(t, client.Options{API: "responses"}, wiretest.Status(400, tt.body))
			server.Always(openaitest.Text("ok"))
			req := question(proved, chat.Text(chat.User, "And?"))
			req.Effort = provider.HighEffort
			for range 2 {
				if r := collect(t, c, req); r.Text != "ok" {
					t.Fatalf("text %q, error %v", r.Text, r.Err)
				}
			}
			r := server.Requests()
			if len(r) != 3 || !tt.in(string(r[0].Body)) || tt.in(string(r[1].Body)) || tt.in(string(r[2].Body)) == tt.remembered {
				t.Errorf("%d requests: %s\n%s", len(r), r[0].Body, r[1].Body)
			}
			for _, sent := range r[1:] {
				if !strings.Contains(string(sent.Body), "Answer.") {
					t.Errorf("the answer is gone: %s", sent.Body)
				}
			}
		})
	}
}

// TestModelPatchInResponses: patches of models are written for chat completions.
func TestModelPatchInResponses(t *testing.T) {
	for _, tt := range []struct {
		patch map[string]any
		want  any
	}{
		{map[string]any{"reasoning_effort": "high", "max_tokens": nil}, map[string]any{"effort": "high"}},
		{map[string]any{"reasoning_effort": "high", "reasoning": map[string]any{"effort": "low"}}, map[string]any{"effort": "low"}},
		{map[string]any{"seed": 1}, nil},
	} {
		c, server := newClient(t, client.Options{API: "responses", Model: func(string) wire.Model {
			return wire.Model{Patch: wire.Patch{Body: providertest.Object(tt.patch)}}
		}}, openaitest.Text("ok"))
		if r := collect(t, c, question()); r.Err != nil {
			t.Fatal(r.Err)
		}
		body := server.Requests()[0].JSON()
		if !reflect.DeepEqual(body["reasoning"], tt.want) || body["reasoning_effort"] != nil {
			t.Errorf("patch %v: %v", tt.patch, body)
		}
	}
}

// TestUnrelatedRejectionsAreNotRepeated guards against needless second requests.
func TestUnrelatedRejectionsAreNotRepeated(t *testing.T) {
	for status, body := range map[int]string{400: `{"error":"temperature: 3 is above the maximum of 2"}`, 401: `{"error":"stream_options"}`, 429: `{"error":"stream_options"}`} {
		c, server := newClient(t, client.Options{}, wiretest.Status(status, body))
		req := question()
		req.Temperature = float(3)
		collect(t, c, req)
		if n := len(server.Requests()); n != 1 {
			t.Errorf("status %d: %d requests", status, n)
		}
	}
}
