package openai_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
)

// asJSON returns text decoded, for comparisons.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// TestSignaturesGoBack: what a compatible server signs comes back to it unchanged within a
// tool loop, and nothing of it once the loop is over, save for the signatures of calls.
func TestSignaturesGoBack(t *testing.T) {
	const details = `[{"type":"reasoning.text","text":"I look. Then <b>.","signature":"sig-1","format":"anthropic-claude-v1","index":0},` +
		`{"type":"reasoning.encrypted","data":"c2VjcmV0","id":"rs_1","index":1}]`
	const google = `{"google":{"thought_signature":"Signature-A=="}}`
	const call = `{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}`
	events := func(deltas ...string) wiretest.Reply {
		var b strings.Builder
		for _, d := range deltas {
			b.WriteString(`data: {"choices":[{"index":0,"delta":` + d + "}]}\n\n")
		}
		b.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n")
		return wiretest.Body("text/event-stream", b.String())
	}
	document := func(message string) wiretest.Reply {
		return wiretest.Body("application/json", `{"choices":[{"message":`+message+`,"finish_reason":"tool_calls"}]}`)
	}
	for _, tt := range []struct {
		name      string
		reply     wiretest.Reply
		reasoning string
		details   string // of the message that goes back, "" for none
		extra     string // of its call
	}{
		{
			"openrouter_stream",
			events(
				`{"reasoning":"I look.","reasoning_details":[{"type":"reasoning.text","text":"I look.","format":"anthropic-claude-v1","index":0}]}`,
				`{"reasoning":" Then <b>.","reasoning_details":[{"type":"reasoning.text","text":" Then <b>.","index":0}]}`,
				`{"content":"Wait.","reasoning_details":[{"type":"reasoning.text","signature":"sig-1","format":"anthropic-claude-v1","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.encrypted","data":"c2Vj","id":"rs_1","index":1},{"type":"reasoning.encrypted","data":"cmV0","index":1}],"tool_calls":[`+call+`}]}`,
			),
			"I look. Then <b>.", details, "",
		},
		{
			"openrouter_document",
			document(`{"content":"Wait.","reasoning":"I look. Then <b>.","reasoning_details":` + details + `,"tool_calls":[` + call + `}]}`),
			"I look. Then <b>.", details, "",
		},
		{
			"words_of_the_details",
			document(`{"content":"Wait.","reasoning_details":[{"type":"reasoning.summary","summary":"Short."}],"tool_calls":[` + call + `}]}`),
			"Short.", `[{"type":"reasoning.summary","summary":"Short."}]`, "",
		},
		{
			"details_of_another_form",
			document(`{"content":"Wait.","reasoning":"So.","reasoning_details":{"a":1},"tool_calls":[` + call + `}]}`),
			"So.", "", "",
		},
		{"google_stream", events(`{"content":"Wait.","tool_calls":[` + call + `,"extra_content":` + google + `}]}`), "", "", google},
		{"google_document", document(`{"content":"Wait.","tool_calls":[` + call + `,"extra_content":` + google + `}]}`), "", "", google},
		{"neither", document(`{"content":"Wait.","tool_calls":[` + call + `}]}`), "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, server := newClient(t, client.Options{}, tt.reply)
			server.Always(openaitest.Text("Done."))
			req := question()
			req.Tools = []chat.Tool{{Name: "f"}}
			r := collect(t, c, req)
			if r.Err != nil || r.Reasoning != tt.reasoning || r.Text != "Wait." || len(r.ToolCalls) != 1 {
				t.Fatalf("reply %+v", r)
			}
			result := chat.Text(chat.ToolRole, "1")
			result.ToolCallID = "c1"
			req.Messages = append(req.Messages, r.Message(), result)
			collect(t, c, req)
			req.Messages = append(req.Messages, chat.Text(chat.Assistant, "Done."), chat.Text(chat.User, "Thanks."))
			collect(t, c, req)
			for i, inLoop := range []bool{true, false} {
				m := message(t, server.Requests()[i+1], 1)
				want := any(nil)
				if tt.details != "" && inLoop {
					want = asJSON(t, tt.details)
				}
				if !reflect.DeepEqual(m["reasoning_details"], want) {
					t.Errorf("request %d: reasoning_details %v, want %v", i+2, m["reasoning_details"], want)
				}
				if tt.details != "" && (m["reasoning"] != nil || m["reasoning_content"] != nil) {
					t.Errorf("request %d: the words go back twice: %v", i+2, m)
				}
				want = nil
				if tt.extra != "" {
					want = asJSON(t, tt.extra)
				}
				if got := m["tool_calls"].([]any)[0].(map[string]any)["extra_content"]; !reflect.DeepEqual(got, want) {
					t.Errorf("request %d: extra_content %v, want %v", i+2, got, want)
				}
			}
		})
	}
}

// TestSignaturesAreDemanded: calls of another model have no signature, and get the one that
// Google names for them where the server demands it. Signatures that a server rejects are
// left out of that conversation.
func TestSignaturesAreDemanded(t *testing.T) {
	extra := func(r wiretest.Request, i int) any {
		return message(t, r, 1)["tool_calls"].([]any)[i].(map[string]any)["extra_content"]
	}
	two := []chat.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "b", Name: "f", Arguments: "{}"}}
	c, server := newClient(t, client.Options{}, wiretest.Status(400, `[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}]`))
	server.Always(openaitest.Text("ok"))
	for range 2 {
		if r := collect(t, c, question(round("", two...)...)); r.Text != "ok" {
			t.Fatal(r.Err)
		}
	}
	requests := server.Requests()
	want := map[string]any{"google": map[string]any{"thought_signature": "skip_thought_signature_validator"}}
	if len(requests) != 3 || extra(requests[0], 0) != nil {
		t.Fatalf("%d requests", len(requests))
	}
	for _, r := range requests[1:] {
		if !reflect.DeepEqual(extra(r, 0), want) || extra(r, 1) != nil {
			t.Errorf("extra_content %v and %v", extra(r, 0), extra(r, 1))
		}
	}
	two[0].Signature = "google:foreign"
	c, server = newClient(t, client.Options{}, wiretest.Status(400, `{"error":{"message":"Thought signature is not valid."}}`))
	server.Always(openaitest.Text("ok"))
	collect(t, c, question(round("", two...)...))
	if requests = server.Requests(); len(requests) != 2 || extra(requests[0], 0) == nil || extra(requests[1], 0) != nil {
		t.Errorf("%d requests, the last %s", len(requests), requests[len(requests)-1].Body)
	}
}
