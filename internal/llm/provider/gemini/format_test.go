package gemini_test

import (
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/gemini"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/geminitest"
	"loki/internal/llm/provider/providertest/wiretest"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	providertest.CheckFormat(t, providertest.FormatCase{
		New: func(t *testing.T, url string) provider.Chat {
			c, err := gemini.New(client.Options{Name: "gemini", APIBase: url + "/v1beta", APIKey: wiretest.Key(testKey)})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Request: provider.Request{Model: "gemini-2.5-flash"},
		Want:    `"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]}`,
		Reply:   wiretest.Status(200, geminitest.Document("STOP", geminitest.TextPart("{}"))),
		Refusal: wiretest.Status(400, `{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"responseJsonSchema\" at 'generation_config': Cannot find field.","status":"INVALID_ARGUMENT"}}`),
	})
}

func TestFormatIsNotSent(t *testing.T) {
	t.Parallel()
	shape, err := value.ParseJSON([]byte(providertest.FormatSchema))
	if err != nil {
		t.Fatal(err)
	}
	tools := []chat.Tool{{Name: "look"}}
	for _, tt := range []struct {
		model string
		tools []chat.Tool
		sent  bool
	}{
		{"gemini-2.0-flash", nil, false},
		{"gemini-2.5-pro", tools, false},
		{"gemini-3-flash-preview", tools, true},
		{"gemini-4-argon", nil, true},
		{"gemma-3-27b-it", nil, false},
	} {
		server := geminitest.New(t, geminitest.Text("{}"))
		req := provider.Request{Model: tt.model, Tools: tt.tools, Stream: true, Messages: []chat.Message{chat.Text(chat.User, "Who?")}, Format: &provider.Format{Schema: shape}}
		if r := providertest.Collect(t, newClient(t, server, options{}).Chat(t.Context(), req)); r.Err != nil {
			t.Fatal(r.Err)
		}
		if sent := strings.Contains(string(server.Requests()[0].Body), "responseJsonSchema"); sent != tt.sent {
			t.Errorf("%s, %d tools: sent %t", tt.model, len(tt.tools), sent)
		}
	}
}

// TestEmptyReply: what came stands at the end of a reply that says nothing, for the error.
func TestEmptyReply(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		doc := geminitest.Document("STOP")
		server := geminitest.New(t, geminitest.Stream(doc, doc))
		req := provider.Request{Model: "gemini-2.5-pro", Stream: stream, Messages: []chat.Message{chat.Text(chat.User, "Who?")}}
		for c, err := range newClient(t, server, options{}).Chat(t.Context(), req) {
			if err != nil || c.Kind != provider.End || c.Body != doc {
				t.Errorf("stream %t: %+v, %v", stream, c, err)
			}
		}
	}
}
