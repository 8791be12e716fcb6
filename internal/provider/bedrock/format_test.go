package bedrock

import (
	"testing"

	"loki/internal/provider"
	"loki/internal/provider/providertest"
)

func TestFormat(t *testing.T) {
	providertest.CheckFormat(t, providertest.FormatCase{
		New: func(t *testing.T, url string) provider.Chat {
			return newServer(t, hang).client(func(o *Options) { o.APIBase = url })
		},
		Request: provider.Request{Model: "us.anthropic.claude-sonnet-4-5-20250929-v1:0"},
		Want: `"outputConfig":{"textFormat":{"structure":{"jsonSchema":{"name":"answer","schema":"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\"}},` +
			`\"required\":[\"name\"],\"additionalProperties\":false}"}},"type":"json_schema"}}`,
		Reply:   providertest.Answer(200, textWhole),
		Refusal: providertest.Answer(400, `{"message":"The model does not support outputConfig.textFormat"}`, "X-Amzn-ErrorType", "ValidationException"),
	})
}
