package thirdparty_test

import (
	"net/http"
	"testing"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/anthropic"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/wire"
)

// route is a way through Portkey's gateway: the format in which we ask it, and the
// provider that it asks in turn, whose part aimock plays.
type route struct {
	name     string
	model    string
	upstream string // the gateway's name of the provider
	path     string // what the gateway appends its paths to, below the mock's URL
	open     func(base string, h *http.Client) (provider.Chat, error)

	noResults string // why the results of calls do not get through; empty if they do
	noStream  string // why calls do not get through in a stream; empty if they do
}

func openCompatible(base string, h *http.Client) (provider.Chat, error) {
	return openai.NewCompatible(client.Options{Name: "gateway", APIBase: base + "/v1", APIKey: testKey, HTTP: h})
}

func openGatewayMessages(base string, h *http.Client) (provider.Chat, error) {
	return anthropic.New(client.Options{Name: "gateway", APIBase: base + "/v1", APIKey: testKey, HTTP: h})
}

func routes() []route {
	return []route{
		{name: "chat_to_openai", model: "gpt-4o", upstream: "openai", path: "/v1", open: openCompatible},
		{name: "chat_to_anthropic", model: "claude-sonnet-4-5", upstream: "anthropic", path: "/v1", open: openCompatible},
		{
			name: "chat_to_gemini", model: "gemini-2.5-flash", upstream: "google", open: openCompatible,
			noResults: "the gateway sends them in the role function, which the mock passes over; OpenAI's SDK has the same fate",
		},
		{
			name: "chat_to_cohere", model: "command-a-03-2025", upstream: "cohere", open: openCompatible,
			noStream: "the gateway sends tool_calls that are no list, in a choice for each call",
		},
		{name: "responses_to_openai", model: "gpt-5.2", upstream: "openai", path: "/v1", open: openOpenAI("responses")},
		{name: "messages_to_anthropic", model: "claude-sonnet-4-5", upstream: "anthropic", path: "/v1", open: openGatewayMessages},
	}
}

// TestGateway sends tool loops through Portkey's gateway to aimock. Nothing but our
// client is ours.
func TestGateway(t *testing.T) {
	w := newWorkshop(t)
	mock := w.serve(t, "mock.mjs")
	gateway := w.serve(t, "gateway.mjs")
	for _, r := range routes() {
		patches := wire.Patches{wire.ChatCompletions: {{Pattern: ".*", Patch: wire.Patch{Headers: []wire.Header{
			{Name: "x-portkey-provider", Value: new(r.upstream)}, {Name: "x-portkey-custom-host", Value: new(mock + r.path)},
		}}}}}
		h, err := wire.NewClient(wire.Options{Client: r.name, Patches: patches})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.CloseIdleConnections)
		client, err := r.open(gateway, h)
		if err != nil {
			t.Fatal(err)
		}
		for mode, stream := range modes() {
			switch {
			case stream && r.noStream != "":
			case r.noResults != "":
				t.Run(r.name+"/calls/"+mode, func(t *testing.T) {
					checkWeather(t, providertest.Collect(t, client.Chat(t.Context(), weatherRequest(r.model, stream))))
				})
			default:
				t.Run(r.name+"/tool_loop/"+mode, func(t *testing.T) { toolLoop(t, client, r.model, stream) })
			}
		}
	}
}
