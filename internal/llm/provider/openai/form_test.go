package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
)

const strictSchema = `"schema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":["integer","null"]}},"required":["name","age"],"additionalProperties":false}`

func TestForm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		o       client.Options
		new     func(client.Options) (provider.Chat, error)
		want    string
		refusal string
	}{
		{
			"chat",
			client.Options{Name: "openai"},
			func(o client.Options) (provider.Chat, error) { return openai.New(o) },
			`"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,` + strictSchema + `}}`,
			`{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."}}`,
		},
		{
			"azure",
			client.Options{Name: "azure"},
			func(o client.Options) (provider.Chat, error) { return openai.NewAzure(o) },
			`"response_format":{"type":"json_schema"`, `{"error":{"message":"response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"}}`,
		},
		{
			"responses",
			client.Options{Name: "openai", API: "responses"},
			func(o client.Options) (provider.Chat, error) { return openai.New(o) },
			`"text":{"format":{"type":"json_schema","name":"answer","strict":true,` + strictSchema + `}}`,
			`{"error":{"message":"Unsupported parameter: 'text.format'","param":"text.format"}}`,
		},
		{
			"platform",
			client.Options{Name: "ollama-box"},
			func(o client.Options) (provider.Chat, error) { return openai.NewCompatible(o) },
			`"response_format":{"type":"json_schema"`, `{"error":"json: cannot unmarshal response_format"}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reply := `{"choices":[{"message":{"content":"{}"},"finish_reason":"stop"}]}`
			if tt.o.API != "" {
				reply = `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"{}"}]}]}`
			}
			providertest.CheckFormat(t, providertest.FormatCase{
				New: func(t *testing.T, url string) provider.Chat {
					o := tt.o
					o.APIBase, o.APIKey = url, wiretest.Key("sk-1")
					c, err := tt.new(o)
					if err != nil {
						t.Fatal(err)
					}
					return c
				},
				Request: provider.Request{Model: "gpt-4o"}, Want: tt.want,
				Reply: wiretest.Status(200, reply), Refusal: wiretest.Status(400, tt.refusal),
			})
		})
	}
}

// TestFormIsNotSent: where it is not known to be taken, and where the schema cannot be said.
func TestFormIsNotSent(t *testing.T) {
	t.Parallel()
	tools := []chat.Tool{{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`)}}
	for _, tt := range []struct {
		name, client, model, shape string
		tools                      []chat.Tool
		sent                       bool
	}{
		{"unknown_platform", "mine", "m", providertest.FormatSchema, nil, false},
		{"groq", "groq", "m", providertest.FormatSchema, nil, false},
		{"known_platform", "mistral", "m", providertest.FormatSchema, nil, true},
		{"known_platform_with_tools", "mistral", "m", providertest.FormatSchema, tools, false},
		{"openai_with_tools", "openai", "gpt-5", providertest.FormatSchema, tools, true},
		{"old_model", "openai", "gpt-3.5-turbo", providertest.FormatSchema, nil, false},
		{"map", "openai", "gpt-5", `{"type":"object","additionalProperties":{"type":"string"}}`, nil, false},
		{"list", "openai", "gpt-5", `{"type":"array","items":{"type":"string"}}`, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := openaitest.New(t)
			server.Script(openaitest.Text("{}"))
			o := client.Options{Name: tt.client, APIBase: server.URL(), APIKey: wiretest.Key("sk-1")}
			var c provider.Chat
			var err error
			if c, err = openai.New(o); tt.client != "openai" {
				c, err = openai.NewCompatible(o)
			}
			if err != nil {
				t.Fatal(err)
			}
			shape, err := value.ParseJSON([]byte(tt.shape))
			if err != nil {
				t.Fatal(err)
			}
			req := question()
			req.Model, req.Tools, req.Format = tt.model, tt.tools, &provider.Format{Schema: shape}
			if r := collect(t, c, req); r.Err != nil {
				t.Fatal(r.Err)
			}
			if sent := strings.Contains(string(server.Requests()[0].Body), "response_format"); sent != tt.sent {
				t.Errorf("sent %t: %s", sent, server.Requests()[0].Body)
			}
		})
	}
}
