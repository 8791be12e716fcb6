package bedrock

import (
	"testing"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
)

func TestFormat(t *testing.T) {
	providertest.CheckFormat(t, providertest.FormatCase{
		New: func(t *testing.T, url string) provider.Chat {
			return newServer(t, wiretest.Hang).client(func(o *Options) { o.APIBase = url })
		},
		Request: provider.Request{Model: "us.anthropic.claude-sonnet-4-5-20250929-v1:0"},
		Want: `"outputConfig":{"textFormat":{"structure":{"jsonSchema":{"name":"answer","schema":"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\"}},` +
			`\"required\":[\"name\"],\"additionalProperties\":false}"}},"type":"json_schema"}}`,
		Reply:   wiretest.Status(200, textWhole),
		Refusal: wiretest.Status(400, `{"message":"The model does not support outputConfig.textFormat"}`, "X-Amzn-ErrorType", "ValidationException"),
	})
}
