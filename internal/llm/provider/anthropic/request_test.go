package anthropic_test

import (
	"encoding/json"
	"flag"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func text(s string) chat.Part { return chat.Part{Type: chat.TextPart, Text: s} }

func image(url string) chat.Part { return chat.Part{Type: chat.ImagePart, URL: url} }

func reasoning(s, signature string) chat.Part {
	return chat.Part{Type: chat.ReasoningPart, Text: s, Signature: signature}
}

func user(parts ...chat.Part) chat.Message { return chat.Message{Role: chat.User, Parts: parts} }

func assistant(parts ...chat.Part) chat.Message {
	return chat.Message{Role: chat.Assistant, Parts: parts}
}

func calling(m chat.Message, calls ...chat.ToolCall) chat.Message {
	m.ToolCalls = calls
	return m
}

func result(id string, parts ...chat.Part) chat.Message {
	return chat.Message{Role: chat.ToolRole, ToolCallID: id, ToolName: "f", Parts: parts}
}

func failed(m chat.Message) chat.Message {
	m.Failed = true
	return m
}

func call(id string) chat.ToolCall {
	return chat.ToolCall{ID: id, Name: "f", Arguments: `{"n":12345678901234567890}`}
}

const pixel = "data:image/png;base64,iVBORw0KGgo="

// TestRequests compares the bodies of requests with golden files.
func TestRequests(t *testing.T) {
	ask := chat.Text(chat.User, "Question?")
	half, most := 0.5, 0.9
	weather := chat.Tool{Name: "weather", Description: "Tells the weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}
	for _, tt := range []struct {
		name string
		req  provider.Request
	}{
		{"plain", provider.Request{Messages: []chat.Message{ask}, Sampling: chat.Sampling{Temperature: &half, TopP: &most}}},
		{"system", provider.Request{Messages: []chat.Message{{Role: chat.System, Parts: []chat.Part{text("Be brief."), text(" "), text("Be kind.")}}, ask}, MaxOutputTokens: 100, Stream: true}},
		{"constraints", provider.Request{Messages: []chat.Message{ask}, Tools: []chat.Tool{{Name: "f"}, {Name: "g"}}, Constraints: chat.Constraints{Stop: []string{"END", "\n", "a", "b", "c", "d", "e"}, Seed: new(int64(7)), FrequencyPenalty: 0.5, PresencePenalty: 1, Choice: chat.ToolChoice{Required: true, Name: "f"}}}},
		{"any_tool", provider.Request{Messages: []chat.Message{ask}, Tools: []chat.Tool{{Name: "f"}, {Name: "g"}}, Constraints: chat.Constraints{Choice: chat.ToolChoice{Required: true}}}},
		{"turns", provider.Request{Messages: []chat.Message{
			chat.Text(chat.System, "Be brief."),
			ask, assistant(text("<think>\nHm.\n</think>\n\nFirst answer.")),
			user(text("Second?")), assistant(reasoning("old", "sig"), text("Second answer.")),
			user(text("Third?")), user(text("")), user(text("And quickly.")),
		}}},
		{"go_on", provider.Request{Messages: []chat.Message{ask, assistant(text("<think>a</think> The answer is \n"))}}},
		{"images", provider.Request{Messages: []chat.Message{user(
			text("What is this?"), image(pixel), image("DATA:image/jpg;charset=x;BASE64,AAAA"), image("data:image/webp,RIFF%20"),
			image("https://example.com/a.png"), image("data:application/pdf;base64,JVBERg"),
		)}}},
		{"tools", provider.Request{Messages: []chat.Message{chat.Text(chat.System, "Use tools."), ask}, Tools: []chat.Tool{
			{Name: "now"},
			{Name: "null", Parameters: json.RawMessage("null")},
			{Name: "empty", Parameters: json.RawMessage(` {"type":"object"} `)},
			{Name: "untyped", Parameters: json.RawMessage(`{"properties":{"a":{"type":"number"}},"$defs":{}}`)},
			weather,
		}}},
		{"rounds", provider.Request{Messages: []chat.Message{
			ask,
			calling(assistant(text("Two at once.")), call("toolu_1"), call("toolu_2")),
			result("toolu_1", text("one")), failed(result("toolu_2", text("no such file"))),
			calling(assistant(), call("toolu_3")),
			result("toolu_3", text("seen"), image(pixel)),
			calling(assistant(text(" \n")), call("toolu_4"), call("toolu_5")),
			result("toolu_4"), failed(result("toolu_5")),
			user(text("What now?")),
		}}},
		{"odd_calls", provider.Request{Messages: []chat.Message{
			ask,
			calling(
				assistant(), chat.ToolCall{ID: "functions.f:0", Name: "made up", Arguments: `{"broken`}, chat.ToolCall{ID: "a", Name: "", Arguments: ""},
				chat.ToolCall{ID: "b", Name: "f", Arguments: "[1]"}, chat.ToolCall{ID: "c", Name: "f", Arguments: "{\"s\":\"\xff\"}"},
			),
			result("functions.f:0", text("?")), result("a", text("?")), result("b", text("?")), result("c", text("?")),
		}}},
		{"thinking_in_the_last_loop", provider.Request{Sampling: chat.Sampling{Effort: provider.LowEffort}, Messages: []chat.Message{
			ask,
			calling(assistant(reasoning("of an old loop", "sig0"), text("Wait.")), call("old")), result("old", text("0")), assistant(text("Done.")),
			user(text("Again?")),
			calling(assistant(reasoning("first <b>", "sig1"), reasoning("", "secret"), reasoning("", "thinking:sig2"), text("I call."), reasoning("not mine", "")), call("new")),
			result("new", text("1")),
			assistant(reasoning("only thoughts", "sig3")),
		}}},
		{"thinking_in_the_middle_of_a_loop", provider.Request{Sampling: chat.Sampling{Effort: provider.HighEffort, Temperature: &half}, Messages: []chat.Message{
			ask, calling(assistant(text("Without thinking.")), call("a")), result("a", text("1")),
			calling(assistant(reasoning("now", "sig"), text("With.")), call("b")), result("b", text("2")),
		}}},
		{"effort_none", provider.Request{Sampling: chat.Sampling{Effort: provider.NoEffort}, Messages: []chat.Message{ask}}},
		{"effort_minimal", provider.Request{Sampling: chat.Sampling{Effort: provider.MinimalEffort, Temperature: &half, TopP: &most}, Messages: []chat.Message{ask}}},
		{"effort_high_of_few_tokens", provider.Request{Sampling: chat.Sampling{Effort: provider.HighEffort}, Messages: []chat.Message{ask}, MaxOutputTokens: 4096}},
		{"effort_of_too_few_tokens", provider.Request{Sampling: chat.Sampling{Effort: provider.HighEffort, Temperature: &half}, Messages: []chat.Message{ask}, MaxOutputTokens: 1000}},
		{"effort_unknown", provider.Request{Sampling: chat.Sampling{Effort: "extreme"}, Messages: []chat.Message{ask}}},
		{"adaptive_high", provider.Request{Model: "claude-opus-5-5", Sampling: chat.Sampling{Effort: provider.HighEffort, Temperature: &half}, Messages: []chat.Message{ask}}},
		{"adaptive_minimal", provider.Request{Model: "claude-opus-4-6", Sampling: chat.Sampling{Effort: provider.MinimalEffort}, Messages: []chat.Message{ask}, MaxOutputTokens: 500}},
		{"adaptive_none", provider.Request{Model: "claude-opus-4-8", Sampling: chat.Sampling{Effort: provider.NoEffort, Temperature: &half}, Messages: []chat.Message{ask}}},
		{"adaptive_by_itself", provider.Request{Model: "claude-opus-5-5", Messages: []chat.Message{ask}, Sampling: chat.Sampling{Temperature: &half}}},
		{"adaptive_max", provider.Request{Model: "claude-opus-4-8", Sampling: chat.Sampling{Effort: provider.MaxEffort}, Messages: []chat.Message{ask}}},
		{"effort_max", provider.Request{Sampling: chat.Sampling{Effort: provider.MaxEffort}, Messages: []chat.Message{ask}}},
		{"single_question_of_a_cheap_model", provider.Request{Model: "claude-haiku-4-5", Messages: []chat.Message{chat.Text(chat.System, "Be brief."), ask}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, answer([]string{"Hi"}))
			if tt.req.Model == "" {
				tt.req.Model = "claude-sonnet-4-5"
			}
			if r := collect(t, s.client(nil), tt.req); r.Err != nil {
				t.Fatal(r.Err)
			}
			body := s.Last().Body
			switch n := strings.Count(string(body), `"cache_control"`); {
			case provider.GoesOn(tt.req) && (n == 0 || n > 4):
				t.Errorf("%d marks for the cache, want 1 to 4", n)
			case !provider.GoesOn(tt.req) && n > 0:
				t.Errorf("%d marks for the cache, want none for a single question", n)
			}
			if !strings.Contains(string(body), "12345678901234567890") && strings.Contains(string(body), `"n":`) {
				t.Error("a large integer has been rounded")
			}
			providertest.Golden(t, "testdata/requests/"+tt.name+".json", providertest.Indented(t, json.RawMessage(s.Last().Body)), *update)
		})
	}
}

// TestBadImages asks about images that cannot be sent.
func TestBadImages(t *testing.T) {
	for name, url := range map[string]string{
		"file":           "file:///etc/passwd",
		"no_scheme":      "picture.png",
		"no_data":        "data:image/png;base64",
		"empty":          "data:image/png;base64,",
		"padding_only":   "data:image/png;base64,==",
		"not_base64":     "data:image/png;base64,!!!!",
		"malformed":      "data:image/png,%zz",
		"other_type":     "data:image/tiff;base64,AAAA",
		"type_not_given": "data:,abc",
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, answer([]string{"Hi"}))
			for _, m := range []chat.Message{user(image(url)), result("a", image(url))} {
				r := collect(t, s.client(nil), question(m))
				wantError(t, r.Err, provider.Invalid, "an image cannot be sent")
			}
			if n := len(s.Requests()); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}

// TestFormOfThinking checks what is guessed from the names of models.
func TestFormOfThinking(t *testing.T) {
	for name, want := range map[string]string{
		"claude-3-5-haiku-latest": "enabled", "claude-3-7-sonnet-20250219": "enabled", "claude-opus-4-20250514": "enabled",
		"claude-sonnet-4@20250514": "enabled", "claude-opus-4-1": "enabled", "claude-sonnet-4-5-20250929": "enabled",
		"claude-haiku-4-5@20251001": "enabled", "claude-2.1": "enabled", "glm-4.7": "enabled", "deepseek-chat": "enabled",
		"claude-opus-4-6": "adaptive", "anthropic/claude-sonnet-4.6": "adaptive", "claude-opus-4-7@default": "adaptive",
		"claude-opus-4-8-20260501": "adaptive", "claude-sonnet-5": "adaptive", "claude-haiku-5-5": "adaptive",
		"claude-fable-5-1": "adaptive", "claude-mythos-preview": "adaptive", "Claude-Opus-10": "adaptive",
	} {
		s := newServer(t, answer([]string{"Hi"}))
		req := question()
		req.Model, req.Effort = name, provider.MediumEffort
		if r := collect(t, s.client(nil), req); r.Err != nil {
			t.Fatal(r.Err)
		}
		if got := s.Last().JSON()["thinking"].(object)["type"]; got != want {
			t.Errorf("%s: thinking of type %v, want %s", name, got, want)
		}
	}
}

// TestNoCache: where the configuration says so nothing is marked for the cache.
func TestNoCache(t *testing.T) {
	s := newServer(t, answer([]string{"Hi"}))
	req := question()
	req.Tools = []chat.Tool{{Name: "f"}}
	for _, off := range []bool{false, true} {
		c := s.client(func(o *client.Options) {
			o.Model = func(string) wire.Model { return wire.Model{NoCache: off} }
		})
		if r := collect(t, c, req); r.Err != nil {
			t.Fatal(r.Err)
		}
		if marked := strings.Contains(string(s.Last().Body), "cache_control"); marked == off {
			t.Errorf("marked %v, switched off %v", marked, off)
		}
	}
}
