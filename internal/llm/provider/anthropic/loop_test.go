package anthropic_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
)

// TestToolLoop plays a whole tool loop: what the first reply brings has to go back in
// the second request as the API wants it.
func TestToolLoop(t *testing.T) {
	first, err := os.ReadFile("testdata/replies/thinking_and_calls.sse")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, wiretest.Events(string(first)), answer([]string{"It is ", "raining."}))
	c := s.client(nil)
	req := provider.Request{
		Model: "claude-sonnet-4-5", Stream: true, Sampling: chat.Sampling{Effort: provider.MediumEffort},
		Messages: []chat.Message{chat.Text(chat.User, "What is the weather like?")},
		Tools:    []chat.Tool{{Name: "get_weather"}, {Name: "now"}},
	}
	reply := chat.Message{Role: chat.Assistant}
	open := false // the last part takes more of the same kind
	for chunk, err := range c.Chat(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		kind := map[provider.ChunkKind]chat.PartType{provider.Text: chat.TextPart, provider.Reasoning: chat.ReasoningPart}[chunk.Kind]
		switch {
		case chunk.Kind == provider.ToolCall:
			reply.ToolCalls = append(reply.ToolCalls, chunk.ToolCall)
		case kind == "":
		default:
			if n := len(reply.Parts); !open || reply.Parts[n-1].Type != kind {
				reply.Parts = append(reply.Parts, chat.Part{Type: kind})
			}
			last := &reply.Parts[len(reply.Parts)-1]
			last.Text += chunk.Text
			last.Signature, open = chunk.Signature, chunk.Signature == ""
		}
	}
	req.Messages = append(req.Messages, reply)
	for _, call := range reply.ToolCalls {
		m := chat.Text(chat.ToolRole, "result of "+call.Name)
		m.ToolCallID, m.ToolName = call.ID, call.Name
		req.Messages = append(req.Messages, m)
	}
	if r := collect(t, c, req); r.Err != nil || r.Text != "It is raining." {
		t.Fatalf("text %q, error %v", r.Text, r.Err)
	}
	providertest.Golden(t, "testdata/loop.json", providertest.Indented(t, json.RawMessage(s.Last().Body)), *update)

	// In the next turn the loop is over, and its thoughts with it.
	req.Messages = append(req.Messages, chat.Text(chat.Assistant, "It is raining."), chat.Text(chat.User, "And tomorrow?"))
	if r := collect(t, c, req); r.Err != nil {
		t.Fatal(r.Err)
	}
	if b := string(s.Last().Body); strings.Contains(b, "signature") || strings.Contains(b, "redacted") || !strings.Contains(b, "toolu_01A") {
		t.Errorf("body of the next turn: %s", b)
	}
}
