package gemini_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/gemini"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/geminitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// TestConformance runs the suite that all providers pass, over a real connection.
func TestConformance(t *testing.T) {
	pieces := []string{"Grö", "ße: ", "12 µm ", "✓ 😀"}
	calls := []chat.ToolCall{
		{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Zürich","id":12345678901234567}`},
		{ID: "call_2", Name: "get_time", Arguments: "{}"},
	}
	const cutOff = `{"path":"build"}`
	replies := map[providertest.Scenario]wiretest.Reply{
		providertest.TextReply:     geminitest.Text(pieces...),
		providertest.ToolCallReply: geminitest.ToolCalls(calls...),
		providertest.CutOffCall:    geminitest.CutOff(chat.ToolCall{Name: "del", Arguments: cutOff}),
		providertest.RateLimited:   geminitest.RateLimit(3 * time.Second),
		providertest.DropMidStream: geminitest.Drop(pieces...),
		providertest.Garbage:       wiretest.JSON("<html><body>It works!</body></html>"),
		providertest.Hang:          wiretest.Hang,
		providertest.Stall:         geminitest.Stall(pieces...),
	}
	for name, place := range map[string]string{"api": "", "vertex": "projects/p/locations/l"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, providertest.Case{New: func(t *testing.T, s providertest.Scenario) providertest.Subject {
				server := geminitest.New(t, replies[s])
				return providertest.Subject{
					Chat: newClient(t, server, options{place: place}), Request: provider.Request{Model: "gemini-2.5-flash"},
					Text: strings.Join(pieces, ""), ToolCalls: calls, RetryAfter: 3 * time.Second, WaitIdle: server.WaitIdle, CutOff: cutOff,
				}
			}})
		})
	}
}

const testKey = "AIzaSyTestTestTestTestTest"

// newClient returns a client of server with the test key and what o adds.
func newClient(t *testing.T, server *wiretest.Server, o options) *gemini.Client {
	t.Helper()
	o.Name, o.APIBase = "gemini", server.URL()+"/v1beta/"
	if o.APIKey == nil && o.Token == nil {
		o.APIKey = wiretest.Key(testKey)
	}
	c, err := o.client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// options are those of a client of the Gemini API, or of a place on Vertex AI.
type options struct {
	client.Options
	place string // on Vertex AI
}

func (o options) client() (*gemini.Client, error) {
	if o.place != "" {
		return gemini.NewVertex(o.Options, o.place)
	}
	return gemini.New(o.Options)
}

func ask(t *testing.T, c provider.Chat, req provider.Request) providertest.Reply {
	t.Helper()
	if len(req.Messages) == 0 {
		req.Messages = []chat.Message{chat.Text(chat.User, "What is it like?")}
	}
	return providertest.Collect(t, c.Chat(t.Context(), req))
}

func TestNewRejects(t *testing.T) {
	for _, tt := range []struct {
		name    string
		o       options
		wantErr string
	}{
		{"no_name", options{}, "needs a name"},
		{"no_url", options{Options: client.Options{Name: "gemini", APIBase: "localhost"}}, "not an http or https URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.o.client()
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) || fault.CodeOf(err) != fault.Config {
				t.Errorf("error = %v (%s), want a configuration error with %q", err, fault.CodeOf(err), tt.wantErr)
			}
		})
	}
}

func TestWhereRequestsGo(t *testing.T) {
	token := func(context.Context) (string, error) { return "ya29.token", nil }
	onVertex := options{client.Options{Token: token}, "projects/my-project/locations/europe-west4"}
	for _, tt := range []struct {
		name              string
		o                 options
		stream            bool
		model             string
		path, key, bearer string
	}{
		{"whole", options{}, false, "gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:generateContent", testKey, ""},
		{"streamed", options{}, true, "gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", testKey, ""},
		{"oauth", options{Options: client.Options{Token: token}}, false, "gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:generateContent", "", "Bearer ya29.token"},
		{"tuned", options{}, false, "tunedModels/mine", "/v1beta/tunedModels/mine:generateContent", testKey, ""},
		{"vertex", onVertex, true, "gemini-2.5-pro", "/v1beta/projects/my-project/locations/europe-west4/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "", "Bearer ya29.token"},
		{"odd_name", options{}, false, "models/my model@1", "/v1beta/models/my%20model@1:generateContent", testKey, ""},
		{"vertex_publisher", onVertex, false, "meta/llama", "/v1beta/projects/my-project/locations/europe-west4/publishers/meta/models/llama:generateContent", "", "Bearer ya29.token"},
		{"vertex_resource", onVertex, false, "publishers/google/models/gemini-x", "/v1beta/projects/my-project/locations/europe-west4/publishers/google/models/gemini-x:generateContent", "", "Bearer ya29.token"},
		{"vertex_endpoint", onVertex, false, "projects/p/locations/l/endpoints/7", "/v1beta/projects/p/locations/l/endpoints/7:generateContent", "", "Bearer ya29.token"},
		{"real_name", options{Options: client.Options{Model: func(string) wire.Model { return wire.Model{RealName: "gemini-x"} }}}, false, "alias", "/v1beta/models/gemini-x:generateContent", testKey, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := geminitest.New(t, geminitest.Text("ok"))
			if r := ask(t, newClient(t, server, tt.o), provider.Request{Model: tt.model, Stream: tt.stream}); r.Err != nil {
				t.Fatal(r.Err)
			}
			got := server.Requests()[0]
			if got.Path != tt.path {
				t.Errorf("path = %s\nwant   %s", got.Path, tt.path)
			}
			if k := got.Header.Get("X-Goog-Api-Key"); k != tt.key {
				t.Errorf("key = %q, want %q", k, tt.key)
			}
			if a := got.Header.Get("Authorization"); a != tt.bearer {
				t.Errorf("authorization = %q, want %q", a, tt.bearer)
			}
		})
	}
}

// TestPatches checks that patches see the finished request, credentials included.
func TestPatches(t *testing.T) {
	server := geminitest.New(t, geminitest.Text("ok"))
	header := "Bearer other"
	h, err := wire.NewClient(wire.Options{Client: "gemini", UserAgent: "loki/1"})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, server, options{Options: client.Options{HTTP: h, Model: func(string) wire.Model {
		return wire.Model{Patch: wire.Patch{
			URL:     server.URL() + "/elsewhere:generateContent",
			Body:    providertest.Object(map[string]any{"generationConfig": map[string]any{"temperature": nil, "topK": 5}}),
			Headers: []wire.Header{{Name: "Authorization", Value: new(header)}, {Name: "x-goog-api-key"}},
		}}
	}}})
	temperature := 0.7
	if r := ask(t, c, provider.Request{Model: "gemini-2.0-flash", Sampling: chat.Sampling{Temperature: &temperature}}); r.Err != nil {
		t.Fatal(r.Err)
	}
	got := server.Requests()[0]
	if got.Path != "/elsewhere:generateContent" || got.Header.Get("Authorization") != header || got.Header.Get("X-Goog-Api-Key") != "" {
		t.Errorf("request to %s with %v", got.Path, got.Header)
	}
	if got.Header.Get("User-Agent") != "loki/1" {
		t.Errorf("user agent = %q", got.Header.Get("User-Agent"))
	}
	if body := string(got.Body); !strings.Contains(body, `"generationConfig":{"topK":5}`) {
		t.Errorf("body = %s", body)
	}
}

func TestCredentialsMissing(t *testing.T) {
	server := geminitest.New(t, geminitest.Text("ok"))
	for name, o := range map[string]client.Options{
		"empty_key": {APIKey: wiretest.Key("")},
		"no_token":  {Token: func(context.Context) (string, error) { return "", errors.New("no login") }},
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(t, newClient(t, server, options{Options: o}), provider.Request{Model: "gemini-2.5-pro"})
			if r.Err == nil {
				t.Error("the request was sent")
			}
		})
	}
	if n := len(server.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestErrorsHoldNoKey checks against a server that repeats what it is sent.
func TestErrorsHoldNoKey(t *testing.T) {
	server := geminitest.New(t, rejection("API key not valid: "+testKey))
	for _, stream := range []bool{false, true} {
		r := ask(t, newClient(t, server, options{}), provider.Request{Model: "gemini-2.5-pro", Stream: stream})
		if e, ok := errors.AsType[*provider.Error](r.Err); !ok || e.Kind != provider.Authentication {
			t.Fatalf("error = %v", r.Err)
		}
		if strings.Contains(r.Err.Error(), testKey) {
			t.Errorf("error %q holds the key", r.Err)
		}
	}
}
