package thirdparty_test

import (
	"context"
	"net/http"
	"testing"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/anthropic"
	"loki/internal/llm/provider/bedrock"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/cohere"
	"loki/internal/llm/provider/gemini"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/vertexai"
	"loki/internal/llm/provider/wire"
)

// api is one of the formats that we speak.
type api struct {
	name   string
	models []string // that are asked in different ways
	body   string   // the type of a request's body in wire.ts

	// open returns a client of the server at base, a URL without a slash at its end.
	open func(base string, h *http.Client) (provider.Chat, error)

	tools     string // a recorded reply with calls, and reasoning if there is any, see recording
	embedding string // the type of a request for vectors; empty if there is none
	rerank    string // the type of a request for an order; empty if there is none
	localOnly bool   // takes no URLs of images
	mocked    string // the model for the mock; empty means the first
}

func testKey() (string, error) { return "sk-test", nil }

func testToken(context.Context) (string, error) { return "ya29.test", nil }

func noEnv(string) string { return "" }

func openOpenAI(format string) func(string, *http.Client) (provider.Chat, error) {
	return func(base string, h *http.Client) (provider.Chat, error) {
		return openai.New(client.Options{Name: "openai", APIBase: base + "/v1", APIKey: testKey, API: format, HTTP: h})
	}
}

func openAzure(base string, h *http.Client) (provider.Chat, error) {
	return openai.NewAzure(client.Options{Name: "azure", APIBase: base, APIKey: testKey, HTTP: h})
}

func openAnthropic(base string, h *http.Client) (provider.Chat, error) {
	return anthropic.New(client.Options{Name: "claude", APIBase: base + "/v1", APIKey: testKey, HTTP: h})
}

func openGemini(base string, h *http.Client) (provider.Chat, error) {
	return gemini.New(client.Options{Name: "gemini", APIBase: base + "/v1beta", APIKey: testKey, HTTP: h})
}

func openVertex(base string, h *http.Client) (provider.Chat, error) {
	return vertexai.New(vertexai.Options{
		Options: client.Options{Name: "vertexai", APIBase: base + "/v1", Token: testToken, HTTP: h}, Project: "p", Location: "global",
	})
}

func openBedrock(base string, h *http.Client) (provider.Chat, error) {
	return bedrock.New(bedrock.Options{
		Options: client.Options{Name: "bedrock", APIBase: base, HTTP: h}, Region: "us-east-1", Getenv: noEnv,
		AccessKeyID: wiretest.Key("AKIATEST"), SecretAccessKey: wiretest.Key("secret"),
	})
}

func openCohere(base string, h *http.Client) (provider.Chat, error) {
	return cohere.New(client.Options{Name: "cohere", APIBase: base + "/v2", APIKey: testKey, HTTP: h})
}

const (
	claudeTools = "../anthropic/testdata/replies/thinking_and_calls.sse"
	geminiTools = "../gemini/testdata/replies/thoughts_and_calls.sse"
	openaiTools = "../openai/testdata/replies/openai_tools.sse"
)

// apis returns all formats.
func apis() []api {
	return []api{
		{
			name: "openai_chat", body: "OpenAIChat", embedding: "OpenAIEmbedding", open: openOpenAI("chat_completions"),
			models: []string{"gpt-5.2", "gpt-4o"}, tools: openaiTools,
		},
		{
			name: "openai_responses", body: "OpenAIResponses", open: openOpenAI("responses"),
			models: []string{"gpt-5.2"}, tools: "testdata/replies/responses_calls.sse",
		},
		{name: "azure", body: "OpenAIChat", embedding: "OpenAIEmbedding", open: openAzure, models: []string{"my-deployment"}, tools: openaiTools},
		{
			name: "anthropic", body: "Anthropic", open: openAnthropic,
			models: []string{"claude-sonnet-4-5", "claude-opus-4-6"}, tools: claudeTools,
		},
		{
			name: "gemini", body: "Gemini", open: openGemini,
			models: []string{"gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-pro-preview"}, tools: geminiTools,
		},
		{name: "vertex_gemini", body: "Gemini", open: openVertex, models: []string{"gemini-2.5-pro"}, tools: geminiTools},
		{
			name: "vertex_claude", body: "AnthropicOnVertex", open: openVertex,
			models: []string{"claude-sonnet-4-5@20250929", "claude-opus-4-6"}, tools: claudeTools,
		},
		{name: "vertex_mistral", body: "OpenAIChat", open: openVertex, models: []string{"mistral-medium-3"}, tools: openaiTools},
		{
			name: "bedrock", body: "Converse", open: openBedrock, localOnly: true,
			mocked: "meta.llama3-3-70b-instruct-v1:0", // no cache point among the tools, on which aimock 1.43 stumbles
			models: []string{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-opus-4-6-v1:0", "amazon.nova-pro-v1:0", "meta.llama3-3-70b-instruct-v1:0"},
			tools:  "../bedrock/testdata/thinking_and_tools.stream",
		},
		{
			name: "cohere", body: "Cohere", embedding: "CohereEmbedding", rerank: "CohereRerank", open: openCohere,
			models: []string{"command-a-03-2025", "command-a-reasoning-08-2025"}, tools: "../cohere/testdata/tool_round.txt#1",
		},
	}
}

// client returns a client of the API at base.
func (a api) client(t *testing.T, base string) provider.Chat {
	t.Helper()
	h, err := wire.NewClient(wire.Options{Client: a.name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	c, err := a.open(base, h)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
