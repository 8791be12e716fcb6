package gemini_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/geminitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

func user(text string) chat.Message { return chat.Text(chat.User, text) }

func call(id, arguments, signature string) chat.ToolCall {
	return chat.ToolCall{ID: id, Name: "f_" + id, Arguments: arguments, Signature: signature}
}

// round is one round of tool use whose results are given in the order of the calls.
func round(parts []chat.Part, calls []chat.ToolCall, results ...string) []chat.Message {
	messages := []chat.Message{{Role: chat.Assistant, Parts: parts, ToolCalls: calls}}
	for i, c := range calls {
		m := chat.Text(chat.ToolRole, results[i])
		m.ToolCallID, m.ToolName = c.ID, c.Name
		messages = append(messages, m)
	}
	return messages
}

func conversation(parts ...[]chat.Message) []chat.Message {
	messages := []chat.Message{user("Question?")}
	for _, p := range parts {
		messages = append(messages, p...)
	}
	return messages
}

func text(s string) chat.Part { return chat.Part{Type: chat.TextPart, Text: s} }

func reasoning(s, signature string) chat.Part {
	return chat.Part{Type: chat.ReasoningPart, Text: s, Signature: signature}
}

func image(url string) chat.Part { return chat.Part{Type: chat.ImagePart, URL: url} }

func ptr[T any](v T) *T { return &v }

// TestRequests compares the bodies of requests with golden files.
func TestRequests(t *testing.T) {
	const schema = `{"type":"object","properties":{"zone":{"type":"string"},"city":{"type":["string","null"],"maxLength":9007199254740993}},"required":["zone"],"additionalProperties":false}`
	withImages := round(nil, []chat.ToolCall{call("a", "{}", ""), call("b", "{}", "")}, "1", "2")
	withImages[1].Parts = append(withImages[1].Parts, image("data:image/png;base64,AAAA"))
	failed := round(nil, []chat.ToolCall{call("a", "{}", "")}, "no such file")
	failed[1].Failed = true
	for _, tt := range []struct {
		name string
		req  provider.Request
	}{
		{"text", provider.Request{Messages: []chat.Message{user("Hi <&>")}}},
		{"parameters", provider.Request{
			Stream: true, Sampling: chat.Sampling{Temperature: ptr(0.7), TopP: ptr(0.95)}, MaxOutputTokens: 100,
			Messages: []chat.Message{chat.Text(chat.System, "Be brief."), user("Hi")},
		}},
		{"zero_temperature", provider.Request{Sampling: chat.Sampling{Temperature: ptr(0.0)}, Messages: []chat.Message{user("Hi")}}},
		{"constraints", provider.Request{Messages: []chat.Message{user("Hi")}, Tools: []chat.Tool{{Name: "f"}, {Name: "g"}}, Constraints: chat.Constraints{Stop: []string{"END", "\n", "a", "b", "c", "d", "e"}, Seed: new(int64(7)), FrequencyPenalty: 0.5, PresencePenalty: 1, Choice: chat.ToolChoice{Required: true, Name: "f"}}}},
		{"turns", provider.Request{Messages: []chat.Message{
			user("Hi"), chat.Text(chat.Assistant, "<think>hm</think>\n\nHello."), user("Bye"),
			chat.Text(chat.Assistant, ""), user(""), chat.Text(chat.Assistant, "<think>kept</think>So"),
		}}},
		{"images", provider.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{
			text("What are these?"), image("data:image/png;base64,iVBORw0KGgo="), image("data:image/svg+xml,%3Csvg%2F%3E"),
			image("https://example.com/a/cat.WEBP?size=1"), image("gs://bucket/cat"),
		}}}}},
		{"tools", provider.Request{Messages: []chat.Message{user("Hi")}, Tools: []chat.Tool{
			{Name: "get_weather", Description: "The weather.", Parameters: json.RawMessage(schema)},
			{Name: "no_schema"},
			{Name: "no_properties", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
			{Name: "any", Parameters: json.RawMessage(`{"type":"object","additionalProperties":{"type":"string"}}`)},
		}}},
		{"tool_rounds", provider.Request{Messages: conversation(
			round([]chat.Part{reasoning("secret", ""), text("Let me see.")}, []chat.ToolCall{
				call("call_1", `{"z":12345678901234567890,"a":1.0}`, "AVSoXO4x"), call("call_2", "", ""),
			}, `{"b":12345678901234567890,"a":null}`, "plain text"),
			round(nil, []chat.ToolCall{call("fc-9", "not json", "c2ln")}, ""),
			[]chat.Message{user("And now?")},
		)}},
		{"tool_images", provider.Request{Messages: conversation(withImages)}},
		{"tool_failed", provider.Request{Messages: conversation(failed)}},
		{"foreign_calls", provider.Request{Model: "gemini-3.1-pro", Messages: conversation(
			round([]chat.Part{reasoning("", "not base64!")}, []chat.ToolCall{call("toolu_1", "{}", ""), call("toolu_2", "{}", "")}, "1", "2"),
		)}},
		{"signed_text", provider.Request{Model: "gemini-3-flash", Messages: []chat.Message{
			user("Hi"),
			{Role: chat.Assistant, Parts: []chat.Part{reasoning("before", "YmVmb3Jl"), text("One.")}},
			user("Hi"),
			{Role: chat.Assistant, Parts: []chat.Part{text("Two."), reasoning("", "YWZ0ZXI=")}},
			user("Hi"),
			{Role: chat.Assistant, Parts: []chat.Part{reasoning("", "YWxvbmU=")}},
			user("Hi"),
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.req.Model == "" {
				tt.req.Model = "gemini-2.0-flash"
			}
			server := geminitest.New(t, geminitest.Text("ok"))
			if r := ask(t, newClient(t, server, options{}), tt.req); r.Err != nil {
				t.Fatal(r.Err)
			}
			providertest.Golden(t, "testdata/requests/"+tt.name+".golden", providertest.Indented(t, json.RawMessage(server.Requests()[0].Body)), *update)
		})
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	withImage := func(url string) provider.Request {
		return provider.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{image(url)}}}}
	}
	for _, tt := range []struct {
		name string
		req  provider.Request
		want string
	}{
		{"no_url", withImage("cat.png"), "its URL is not data:, https: or gs:"},
		{"no_data", withImage("data:image/png;base64"), "has no data"},
		{"no_media_type", withImage("data:;base64,AAAA"), "names no media type"},
		{"no_base64", withImage("data:image/png;base64,?"), "cannot be decoded"},
		{"model_with_query", provider.Request{Model: "a?b"}, `"a?b" cannot be the name of a model`},
		{"model_elsewhere", provider.Request{Model: "models/../files/x"}, "cannot be the name of a model"},
		{"model_malformed", provider.Request{Model: "a\x7f"}, "the request cannot be made"},
		{"no_number", provider.Request{Model: "m", Sampling: chat.Sampling{Temperature: ptr(math.NaN())}}, "cannot be written as JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := geminitest.New(t, geminitest.Text("ok"))
			r := ask(t, newClient(t, server, options{}), tt.req)
			e, ok := errors.AsType[*provider.Error](r.Err)
			if !ok || e.Kind != provider.Invalid || !strings.Contains(e.Error(), tt.want) {
				t.Errorf("error = %v, want an invalid request with %q", r.Err, tt.want)
			}
			if n := len(server.Requests()); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}

// thinking returns the thinking configuration of a request.
func thinking(t *testing.T, r wiretest.Request) string {
	t.Helper()
	var body struct {
		GenerationConfig struct {
			ThinkingConfig json.RawMessage `json:"thinkingConfig"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	return string(body.GenerationConfig.ThinkingConfig)
}

func TestEffort(t *testing.T) {
	for _, tt := range []struct {
		model  string
		effort provider.Effort
		want   string
	}{
		{"gemini-2.0-flash", provider.HighEffort, ""},
		{"gemma-3-27b-it", provider.HighEffort, ""},
		{"gemini-2.5-flash-image", provider.HighEffort, ""},
		{"gemini-2.5-flash", "", `{"includeThoughts":true}`},
		{"gemini-2.5-flash", provider.NoEffort, `{"thinkingBudget":0}`},
		{"gemini-2.5-pro", provider.NoEffort, `{"thinkingBudget":128}`},
		{"gemini-2.5-flash-lite", provider.MinimalEffort, `{"includeThoughts":true,"thinkingBudget":512}`},
		{"models/gemini-2.5-pro", provider.LowEffort, `{"includeThoughts":true,"thinkingBudget":2048}`},
		{"gemini-2.5-pro", provider.MediumEffort, `{"includeThoughts":true,"thinkingBudget":8192}`},
		{"gemini-2.5-pro-preview-06-05", provider.HighEffort, `{"includeThoughts":true,"thinkingBudget":24576}`},
		{"gemini-3-flash-preview", "", `{"includeThoughts":true}`},
		{"gemini-3-flash-preview", provider.NoEffort, `{"thinkingLevel":"MINIMAL"}`},
		{"gemini-3-flash-preview", provider.MinimalEffort, `{"includeThoughts":true,"thinkingLevel":"MINIMAL"}`},
		{"gemini-3-flash-preview", provider.MediumEffort, `{"includeThoughts":true,"thinkingLevel":"MEDIUM"}`},
		{"gemini-3-pro-preview", provider.MinimalEffort, `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
		{"gemini-3-pro-preview", provider.MediumEffort, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"gemini-3.1-pro-preview", provider.MediumEffort, `{"includeThoughts":true,"thinkingLevel":"MEDIUM"}`},
		{"gemini-4-argon", provider.HighEffort, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"gemini-4-argon", provider.MaxEffort, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"gemini-2.5-pro", provider.XHighEffort, `{"includeThoughts":true,"thinkingBudget":24576}`},
		{"gemini-flash-latest", provider.LowEffort, `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
	} {
		t.Run(tt.model+"_"+string(tt.effort), func(t *testing.T) {
			server := geminitest.New(t, geminitest.Text("ok"))
			if r := ask(t, newClient(t, server, options{}), provider.Request{Model: tt.model, Sampling: chat.Sampling{Effort: tt.effort}}); r.Err != nil {
				t.Fatal(r.Err)
			}
			if got := thinking(t, server.Requests()[0]); got != tt.want {
				t.Errorf("thinkingConfig = %s, want %s", got, tt.want)
			}
		})
	}
}

func rejection(message string) wiretest.Reply {
	return wiretest.Status(http.StatusBadRequest, `{"error":{"code":400,"message":"`+message+`","status":"INVALID_ARGUMENT"}}`)
}

// TestThinkingRejected checks that a model that does not take an effort is asked with
// less, and remembered.
func TestThinkingRejected(t *testing.T) {
	server := geminitest.New(
		t, rejection("Thinking level MINIMAL is not supported for this model."), rejection("Thinking is not enabled for this model."), geminitest.Text("ok"),
	)
	c := newClient(t, server, options{})
	for range 2 {
		if r := ask(t, c, provider.Request{Model: "gemini-9-tiny", Sampling: chat.Sampling{Effort: provider.MinimalEffort}, Stream: true}); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	var got []string
	for _, r := range server.Requests() {
		got = append(got, thinking(t, r))
	}
	want := []string{`{"includeThoughts":true,"thinkingLevel":"MINIMAL"}`, `{"includeThoughts":true,"thinkingLevel":"LOW"}`, "", ""}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("thinking configurations %q, want %q", got, want)
	}
}

// TestPenaltiesRejected checks that a model that takes no penalties is asked without them, and remembered.
func TestPenaltiesRejected(t *testing.T) {
	server := geminitest.New(t, rejection("Penalty is not enabled for this model"), geminitest.Text("ok"))
	c := newClient(t, server, options{})
	req := provider.Request{Model: "gemini-9-tiny", Constraints: chat.Constraints{PresencePenalty: 1}}
	for range 2 {
		if r := ask(t, c, req); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	for i, r := range server.Requests() {
		if sent := strings.Contains(string(r.Body), "presencePenalty"); sent != (i == 0) {
			t.Errorf("request %d: %s", i, r.Body)
		}
	}
}

// TestSignatureRejected checks that signatures that the model does not know are left out.
func TestSignatureRejected(t *testing.T) {
	server := geminitest.New(t, rejection("Corrupted thought signature."), geminitest.Text("ok"))
	messages := conversation(
		round([]chat.Part{reasoning("", "Zm9yZWlnbg=="), text("Hm.")}, []chat.ToolCall{call("a", "{}", "Zm9yZWlnbg==")}, "1"),
	)
	if r := ask(t, newClient(t, server, options{}), provider.Request{Model: "gemini-3.1-pro", Messages: messages}); r.Err != nil {
		t.Fatal(r.Err)
	}
	bodies := server.Requests()
	if n := bytes.Count(bodies[0].Body, []byte("Zm9yZWlnbg==")); n != 2 {
		t.Errorf("%d signatures in the first request, want 2", n)
	}
	// The call has the value that stands for a missing signature, in base64.
	if second := string(bodies[1].Body); strings.Contains(second, "Zm9yZWlnbg==") || strings.Count(second, `"thoughtSignature":"c2tpcF90aG91Z2h0`) != 1 {
		t.Errorf("second request: %s", second)
	}
}

func TestOtherRejectionsAreFinal(t *testing.T) {
	server := geminitest.New(t, rejection("Unable to process input image."), geminitest.Text("ok"))
	r := ask(t, newClient(t, server, options{}), provider.Request{Model: "gemini-2.5-pro"})
	if e, ok := errors.AsType[*provider.Error](r.Err); !ok || e.Kind != provider.Invalid || e.Status != http.StatusBadRequest {
		t.Errorf("error = %v", r.Err)
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// TestIDsAreUnique checks the ids of calls against those of the conversation.
func TestIDsAreUnique(t *testing.T) {
	reply := wiretest.JSON(geminitest.Document("STOP",
		`{"functionCall":{"name":"f","args":{"n":1}}}`, `{"functionCall":{"id":"call_3","name":"f","args":{"n":2}}}`, `{"functionCall":{"id":"call_1","name":"f","args":{"n":3}}}`))
	server := geminitest.New(t, reply)
	messages := conversation(round(nil, []chat.ToolCall{call("call_1", "{}", ""), call("call_2", "{}", "")}, "1", "2"))
	r := ask(t, newClient(t, server, options{}), provider.Request{Model: "gemini-2.5-pro", Messages: messages})
	var got []string
	for _, c := range r.ToolCalls {
		got = append(got, c.ID)
	}
	if want := "call_4 call_3 call_5"; strings.Join(got, " ") != want {
		t.Errorf("ids = %v, want %s", got, want)
	}
}

// TestRoundTrip sends a reply back and checks that parts and signatures are the same.
func TestRoundTrip(t *testing.T) {
	const id = "12345678901234567890"
	server := geminitest.New(t,
		wiretest.JSON(geminitest.Document("STOP", `{"text":"Hm.","thought":true}`, `{"text":"See.","thoughtSignature":"AAEC"}`,
			`{"functionCall":{"name":"f","args":{"z":`+id+`,"a":{"y":1,"b":2}}},"thoughtSignature":"AwQF"}`)),
		geminitest.Text("ok"),
	)
	c := newClient(t, server, options{})
	answer := chat.Message{Role: chat.Assistant}
	for chunk, err := range c.Chat(t.Context(), provider.Request{Model: "gemini-3.1-pro", Messages: conversation()}) {
		if err != nil {
			t.Fatal(err)
		}
		switch chunk.Kind {
		case provider.Text:
			answer.Parts = append(answer.Parts, text(chunk.Text))
		case provider.Reasoning:
			answer.Parts = append(answer.Parts, reasoning(chunk.Text, chunk.Signature))
		case provider.ToolCall:
			answer.ToolCalls = append(answer.ToolCalls, chunk.ToolCall)
		}
	}
	result := chat.Message{Role: chat.ToolRole, ToolCallID: answer.ToolCalls[0].ID, ToolName: "f", Parts: []chat.Part{text(id)}}
	if r := ask(t, c, provider.Request{Model: "gemini-3.1-pro", Messages: conversation([]chat.Message{answer, result})}); r.Err != nil {
		t.Fatal(r.Err)
	}
	providertest.Golden(t, "testdata/requests/round_trip.golden", providertest.Indented(t, json.RawMessage(server.Requests()[1].Body)), *update)
}

// TestNearestEffort: a model that lacks an effort gets its nearest, and the user is shown
// which. The effort of a request comes before that of a model's patch.
func TestNearestEffort(t *testing.T) {
	for _, tt := range []struct {
		model  string
		list   []provider.Effort
		effort provider.Effort
		patch  string
		want   string // generationConfig.thinkingConfig
		note   string
	}{
		{"gemini-3.1-pro-preview", nil, "max", `{}`, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`, "effort max is not available, so high is used"},
		{"gemini-3-flash-preview", nil, "none", `{}`, `{"thinkingLevel":"MINIMAL"}`, "effort none is not available, so minimal is used"},
		{"gemini-4-argon", []provider.Effort{"low", "medium"}, "max", `{}`, `{"includeThoughts":true,"thinkingLevel":"MEDIUM"}`, "effort max is not available, so medium is used"},
		{"gemini-4-argon", nil, "low", `{}`, `{"includeThoughts":true,"thinkingLevel":"LOW"}`, ""},
		{"gemini-2.5-pro", nil, "max", `{}`, `{"includeThoughts":true,"thinkingBudget":24576}`, ""},
		{"gemini-4-argon", nil, "low", `{"generationConfig":{"thinkingConfig":{"thinkingLevel":"HIGH"}}}`, `{"includeThoughts":true,"thinkingLevel":"LOW"}`, ""},
		{"gemini-4-argon", nil, "", `{"generationConfig":{"thinkingConfig":{"thinkingLevel":"HIGH"}}}`, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`, ""},
	} {
		for _, stream := range []bool{false, true} {
			server := geminitest.New(t, geminitest.Text("Hi"))
			c := newClient(t, server, options{Options: client.Options{Model: func(string) wire.Model {
				return wire.Model{Efforts: tt.list, Patch: wire.Patch{Body: providertest.Object(json.RawMessage(tt.patch))}}
			}}})
			r := ask(t, c, provider.Request{Model: tt.model, Sampling: chat.Sampling{Effort: tt.effort}, Stream: stream, Messages: []chat.Message{chat.Text(chat.User, "Hi")}})
			if r.Err != nil || strings.Join(r.Notes, "|") != tt.note {
				t.Errorf("%s, effort %s: notes %q, error %v", tt.model, tt.effort, r.Notes, r.Err)
			}
			if got := thinking(t, server.Requests()[0]); got != tt.want {
				t.Errorf("%s, effort %s, patch %s: %s, want %s", tt.model, tt.effort, tt.patch, got, tt.want)
			}
		}
	}
}
