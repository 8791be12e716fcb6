package anthropic_test

import (
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/anthropic"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	providertest.CheckFormat(t, providertest.FormatCase{
		New: func(t *testing.T, url string) provider.Chat {
			c, err := anthropic.New(client.Options{Name: "claude", APIBase: url + "/v1", APIKey: wiretest.Key("sk-ant-1")})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Request: provider.Request{Model: "claude-opus-5-5", Sampling: chat.Sampling{Effort: provider.HighEffort}},
		Want:    `"output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"],"additionalProperties":false}}}`,
		Reply:   wiretest.Status(200, `{"type":"message","content":[{"type":"text","text":"{}"}],"stop_reason":"end_turn"}`),
		Refusal: wiretest.Status(400, `{"type":"error","error":{"type":"invalid_request_error","message":"output_config.format: this model does not support structured outputs"}}`),
	})
}

func TestFormatIsNotSent(t *testing.T) {
	t.Parallel()
	shape, err := value.ParseJSON([]byte(providertest.FormatSchema))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		model  string
		vertex bool
		sent   bool
	}{
		{"claude-haiku-4-5", false, true},
		{"claude-sonnet-4-20250514", false, false},
		{"claude-3-7-sonnet-latest", false, false},
		{"deepseek-chat", false, false},
		{"claude-haiku-4-5", true, false},
	} {
		server := newServer(t, answer([]string{"{}"}))
		c := server.client(nil)
		if tt.vertex {
			c = server.vertex()
		}
		req := question()
		req.Model, req.Format = tt.model, &provider.Format{Schema: shape}
		if r := collect(t, c, req); r.Err != nil {
			t.Fatal(r.Err)
		}
		if sent := contains(server.Last(), "output_config"); sent != tt.sent {
			t.Errorf("%s, on Vertex %t: sent %t", tt.model, tt.vertex, sent)
		}
	}
}

// TestOutputLimit: the length of a reply has to be sent, and is the longest that is known.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		req  provider.Request
		want float64
	}{
		{"nothing_known", provider.Request{}, 8192 + 24576}, // this model thinks unless it is asked not to
		{"known", provider.Request{OutputLimit: 128000}, 128000},
		{"asked_for", provider.Request{MaxOutputTokens: 100, OutputLimit: 128000}, 100},
		{"known_with_effort", provider.Request{OutputLimit: 128000, Sampling: chat.Sampling{Effort: provider.HighEffort}}, 128000},
	} {
		server := newServer(t, cutOffReply("{"))
		req := tt.req
		req.Model, req.Messages, req.Stream = "claude-opus-5-5", question().Messages, true
		r := collect(t, server.client(nil), req)
		if got := server.Last().JSON()["max_tokens"]; got != tt.want || r.Err != nil {
			t.Errorf("%s: max_tokens %v, want %v (%v)", tt.name, got, tt.want, r.Err)
		}
	}
}

// TestEmptyReply: what came stands at the end of a reply that says nothing, for the error. A
// reply that ends with a call, but has none, keeps its reason.
func TestEmptyReply(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]chat.StopReason{"end_turn": chat.StopEnd, "tool_use": chat.StopToolCalls} {
		whole := `{"type":"message","content":[],"stop_reason":"` + reason + `"}`
		for name, reply := range map[string]wiretest.Reply{"whole": wiretest.JSON(whole), "streamed": wiretest.Events(begin(), finish(reason))} {
			for c, err := range newServer(t, reply).client(nil).Chat(t.Context(), question()) {
				if err != nil || c.Kind != provider.End || c.Stop != want || !strings.Contains(c.Body, reason) {
					t.Errorf("%s, %s: %+v, %v", reason, name, c, err)
				}
			}
		}
	}
}
