package cohere

import (
	"testing"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
)

func TestFormat(t *testing.T) {
	providertest.CheckFormat(t, providertest.FormatCase{
		New: func(t *testing.T, url string) provider.Chat {
			c, err := New(client.Options{Name: "cohere", APIBase: url, APIKey: wiretest.Key("k")})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Request: provider.Request{Model: "command-a-03-2025"},
		Want:    `"response_format":{"type":"json_object","json_schema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]}}`,
		Reply:   wiretest.Status(200, textWhole),
		Refusal: wiretest.Status(400, `{"id":"1","message":"invalid request: response_format is not supported for this model"}`),
	})
}
