package openai_test

import (
	"net/http"
	"testing"
)

// TestPythonWire sends what the official client of OpenAI for Python sends, and looks for the members that it requires
// in answers. The requests are written by hand, after that client's types.
func TestPythonWire(t *testing.T) {
	url := newServer(t) + "/v1"
	for _, tt := range []struct {
		name, path, body string
		required         []string // members that have to be there
	}{
		{
			"create", "/chat/completions",
			`{"messages":[{"role":"user","content":"Hi"}],"model":"builtin:echo","temperature":0.7,"stream":false}`,
			[]string{"id", "choices.0.finish_reason", "choices.0.index", "choices.0.message.role", "choices.0.message.content", "created", "model", "object", "usage.completion_tokens", "usage.prompt_tokens", "usage.total_tokens"},
		},
		{
			"parse", "/chat/completions", // with pydantic models
			`{"messages":[{"role":"user","content":"json"}],"model":"builtin:script","response_format":{"type":"json_schema","json_schema":{"schema":{"properties":{"city":{"title":"City","type":"string"},"days":{"title":"Days","type":"integer"}},"required":["city","days"],"title":"Trip","type":"object","additionalProperties":false},"name":"Trip","strict":true}},"stream":false}`,
			[]string{"choices.0.message.content"},
		},
		{
			"pydantic_function_tool", "/chat/completions",
			`{"messages":[{"role":"user","content":"weather"}],"model":"builtin:script","tools":[{"type":"function","function":{"name":"get_weather","strict":true,"parameters":{"properties":{"city":{"title":"City","type":"string"}},"required":["city"],"title":"GetWeather","type":"object","additionalProperties":false},"description":"Tells it."}}],"tool_choice":"auto","parallel_tool_calls":false}`,
			[]string{"choices.0.message.tool_calls.0.id", "choices.0.message.tool_calls.0.function.arguments", "choices.0.message.tool_calls.0.function.name", "choices.0.message.tool_calls.0.type"},
		},
		{
			"embeddings", "/embeddings", // base64 unless the caller names a format
			`{"input":["a boat"],"model":"builtin:hash","encoding_format":"base64"}`,
			[]string{"data.0.embedding", "data.0.index", "data.0.object", "model", "object", "usage.prompt_tokens", "usage.total_tokens"},
		},
		{
			"responses", "/responses",
			`{"input":"think","model":"builtin:script","reasoning":{"effort":"low"},"store":false,"include":["reasoning.encrypted_content"]}`,
			[]string{"id", "created_at", "model", "object", "output.0.id", "output.0.summary", "output.0.type", "output.1.id", "output.1.content.0.annotations", "output.1.content.0.text", "output.1.role", "output.1.status", "parallel_tool_calls", "tool_choice", "tools", "usage.input_tokens_details.cached_tokens", "usage.output_tokens_details.reasoning_tokens"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, _, body := post(t, url+tt.path, tt.body,
				"Accept", "application/json", "User-Agent", "OpenAI/Python 2.9.0", "Authorization", "Bearer any", "X-Stainless-Lang", "python",
				"X-Stainless-Package-Version", "2.9.0", "X-Stainless-Async", "false", "X-Stainless-Retry-Count", "0", "X-Stainless-Read-Timeout", "600")
			if status != http.StatusOK {
				t.Fatalf("%d: %s", status, body)
			}
			for _, path := range tt.required {
				if get(t, body, path) == "" {
					t.Errorf("%s is missing: %.1000s", path, body)
				}
			}
		})
	}
}
