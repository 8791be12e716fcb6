package openai_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// TestConformance runs the suite that all providers pass, over a real connection.
func TestConformance(t *testing.T) {
	pieces := []string{"Grö", "ße: ", "12 µm ", "✓ 😀"}
	calls := []chat.ToolCall{
		{ID: "call_a", Name: "get_weather", Arguments: `{"city":"Zürich"}`},
		{ID: "call_b", Name: "get_time", Arguments: "{}"},
	}
	const cutOff = `{"path": "build"`
	replies := map[providertest.Scenario]wiretest.Reply{
		providertest.TextReply:     openaitest.Text(pieces...),
		providertest.ToolCallReply: openaitest.ToolCalls("", calls...),
		providertest.CutOffCall:    openaitest.CutOff(chat.ToolCall{ID: "call_a", Name: "del", Arguments: cutOff}),
		providertest.RateLimited:   openaitest.RateLimit(3 * time.Second),
		providertest.DropMidStream: openaitest.Drop(pieces...),
		providertest.Garbage:       openaitest.Garbage(),
		providertest.Hang:          wiretest.Hang,
		providertest.Stall:         openaitest.Stall(pieces...),
	}
	makers := map[string]func(client.Options) (provider.Chat, error){
		"openai":     func(o client.Options) (provider.Chat, error) { return openai.New(o) },
		"compatible": func(o client.Options) (provider.Chat, error) { return openai.NewCompatible(o) },
		"azure":      func(o client.Options) (provider.Chat, error) { return openai.NewAzure(o) },
		"responses": func(o client.Options) (provider.Chat, error) {
			o.API = "responses"
			return openai.New(o)
		},
	}
	for name, maker := range makers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, providertest.Case{New: func(t *testing.T, s providertest.Scenario) providertest.Subject {
				server := openaitest.New(t)
				server.Always(replies[s])
				c, err := maker(client.Options{Name: name, APIBase: server.URL() + "/", APIKey: wiretest.Key("sk-1234567890")})
				if err != nil {
					t.Fatal(err)
				}
				return providertest.Subject{
					Chat: c, Request: provider.Request{Model: "test-model"},
					Text: strings.Join(pieces, ""), ToolCalls: calls, RetryAfter: 3 * time.Second,
					WaitIdle: server.WaitIdle, CutOff: cutOff,
				}
			}})
		})
	}
}

func TestNewRejects(t *testing.T) {
	for _, tt := range []struct {
		name    string
		make    func(client.Options) error
		o       client.Options
		wantErr string
	}{
		{"openai_needs_no_base", newOpenAI, client.Options{Name: "openai"}, ""},
		{"no_name", newOpenAI, client.Options{}, "needs a name"},
		{"no_base", newCompatible, client.Options{Name: "mine"}, `client "mine" has no api_base`},
		{"azure_has_no_default", newAzure, client.Options{Name: "azure-openai"}, "has no api_base"},
		{"placeholder", newCompatible, client.Options{Name: "cloudflare", APIBase: "https://api.cloudflare.com/client/v4/accounts/{ACCOUNT_ID}/ai/v1"}, "placeholder {ACCOUNT_ID}"},
		{"no_url", newCompatible, client.Options{Name: "mine", APIBase: "localhost:8080/v1"}, "not an http or https URL"},
		{"responses", newCompatible, client.Options{Name: "mine", APIBase: "http://localhost:8080/v1", API: "responses"}, ""},
		{"unknown_api", newOpenAI, client.Options{Name: "openai", API: "assistants"}, `client "openai" cannot speak the api "assistants"`},
		{"other_scheme", newCompatible, client.Options{Name: "mine", APIBase: "ftp://host/v1"}, "not an http or https URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.make(tt.o)
			if tt.wantErr == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) || fault.CodeOf(err) != fault.Config {
				t.Errorf("error = %v, code %q; want one with %q", err, fault.CodeOf(err), tt.wantErr)
			}
		})
	}
}

func newOpenAI(o client.Options) error     { _, err := openai.New(o); return err }
func newCompatible(o client.Options) error { _, err := openai.NewCompatible(o); return err }
func newAzure(o client.Options) error      { _, err := openai.NewAzure(o); return err }

// wired returns an HTTP client as a configuration has it made.
func wired(t testing.TB, o wire.Options) *http.Client {
	t.Helper()
	o.Client = "test"
	c, err := wire.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newClient returns a compatible client of a scripted server.
func newClient(t *testing.T, o client.Options, script ...wiretest.Reply) (openai.Compatible, *openaitest.Server) {
	t.Helper()
	server := openaitest.New(t)
	server.Script(script...)
	if o.Name == "" {
		o.Name = "test"
	}
	if o.APIBase == "" {
		o.APIBase = server.URL()
	}
	c, err := openai.NewCompatible(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, server
}

// question returns a streamed request.
func question(more ...chat.Message) provider.Request {
	return provider.Request{
		Model: "m", Stream: true,
		Messages: append([]chat.Message{chat.Text(chat.User, "Question?")}, more...),
	}
}

func collect(t *testing.T, c provider.Chat, req provider.Request) providertest.Reply {
	t.Helper()
	return providertest.Collect(t, c.Chat(t.Context(), req))
}
