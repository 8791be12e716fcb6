package vertexai_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/geminitest"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/vertexai"
	"loki/internal/llm/provider/wire"
)

func token(context.Context) (string, error) { return "ya29.secret-token", nil }

func newClient(t *testing.T, o vertexai.Options) *vertexai.Client {
	t.Helper()
	o.Name, o.Project, o.Location = "vertexai", "my-project", "europe-west4"
	if o.Token == nil {
		o.Token = token
	}
	c, err := vertexai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConformance runs the suite that all providers pass for the formats that this
// package puts requests together for.
func TestConformance(t *testing.T) {
	pieces := []string{"Grö", "ße: ", "12 µm ", "✓ 😀"}
	calls := []chat.ToolCall{
		{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Zürich"}`}, {ID: "call_2", Name: "get_time", Arguments: "{}"},
	}
	const cutOff = `{"path":"build"}`
	fromGemini := map[providertest.Scenario]wiretest.Reply{
		providertest.TextReply:     geminitest.Text(pieces...),
		providertest.ToolCallReply: geminitest.ToolCalls(calls...),
		providertest.CutOffCall:    geminitest.CutOff(chat.ToolCall{Name: "del", Arguments: cutOff}),
		providertest.RateLimited:   geminitest.RateLimit(3 * time.Second),
		providertest.DropMidStream: geminitest.Drop(pieces...),
		providertest.Garbage:       wiretest.JSON("It works!"),
		providertest.Hang:          wiretest.Hang,
		providertest.Stall:         geminitest.Stall(pieces...),
	}
	fromMistral := map[providertest.Scenario]wiretest.Reply{
		providertest.TextReply:     openaitest.Text(pieces...),
		providertest.ToolCallReply: openaitest.ToolCalls("", calls...),
		providertest.CutOffCall:    openaitest.CutOff(chat.ToolCall{ID: "call_1", Name: "del", Arguments: cutOff}),
		providertest.RateLimited:   openaitest.RateLimit(3 * time.Second),
		providertest.DropMidStream: openaitest.Drop(pieces...),
		providertest.Garbage:       openaitest.Garbage(),
		providertest.Hang:          wiretest.Hang,
		providertest.Stall:         openaitest.Stall(pieces...),
	}
	subject := func(t *testing.T, model, url string, idle func(context.Context) error) providertest.Subject {
		return providertest.Subject{
			Chat: newClient(t, vertexai.Options{Options: client.Options{APIBase: url}}), Request: provider.Request{Model: model},
			Text: strings.Join(pieces, ""), ToolCalls: calls, RetryAfter: 3 * time.Second, WaitIdle: idle, CutOff: cutOff,
		}
	}
	t.Run("gemini", func(t *testing.T) {
		t.Parallel()
		providertest.Run(t, providertest.Case{New: func(t *testing.T, s providertest.Scenario) providertest.Subject {
			server := geminitest.New(t, fromGemini[s])
			return subject(t, "gemini-2.5-pro", server.URL(), server.WaitIdle)
		}})
	})
	t.Run("mistral", func(t *testing.T) {
		t.Parallel()
		providertest.Run(t, providertest.Case{New: func(t *testing.T, s providertest.Scenario) providertest.Subject {
			server := openaitest.New(t)
			server.Always(fromMistral[s])
			return subject(t, "mistral-large@2407", server.URL(), server.WaitIdle)
		}})
	})
}

// recorder answers every request with 400 and keeps them.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	requests []recorded
}

type recorded struct {
	path, authorization string
	body                map[string]any
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got := recorded{path: req.URL.RequestURI(), authorization: req.Header.Get("Authorization")}
		if err := json.NewDecoder(req.Body).Decode(&got.body); err != nil {
			t.Errorf("body: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, got)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}`)) // the client may be gone
	}))
	t.Cleanup(r.Close)
	return r
}

func TestWhereRequestsGo(t *testing.T) {
	const place = "/v1/projects/my-project/locations/europe-west4/publishers"
	for _, tt := range []struct {
		name, model, realName string
		stream                bool
		path                  string
		body                  map[string]any // members that have to be there
	}{
		{"gemini", "gemini-2.5-pro", "", false, place + "/google/models/gemini-2.5-pro:generateContent", nil},
		{"gemini_stream", "gemini-2.5-pro", "", true, place + "/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse", nil},
		{"claude_stream", "claude-sonnet-4@20250514", "", true, place + "/anthropic/models/claude-sonnet-4@20250514:streamRawPredict", map[string]any{"anthropic_version": "vertex-2023-10-16"}},
		{"mistral", "mistral-large@2407", "", false, place + "/mistralai/models/mistral-large@2407:rawPredict", map[string]any{"model": "mistral-large"}},
		{"codestral_stream", "codestral@2405", "", true, place + "/mistralai/models/codestral@2405:streamRawPredict", map[string]any{"model": "codestral", "stream": true}},
		{"alias", "mine", "codestral-2", false, place + "/mistralai/models/codestral-2:rawPredict", map[string]any{"model": "codestral-2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newRecorder(t)
			c := newClient(t, vertexai.Options{Options: client.Options{APIBase: server.URL + "/v1", Model: func(string) wire.Model { return wire.Model{RealName: tt.realName} }}})
			r := providertest.Collect(t, c.Chat(t.Context(), provider.Request{
				Model: tt.model, Stream: tt.stream, MaxOutputTokens: 10, Messages: []chat.Message{chat.Text(chat.User, "Hi")},
			}))
			if e, ok := errors.AsType[*provider.Error](r.Err); !ok || e.Status != http.StatusBadRequest {
				t.Fatalf("error = %v", r.Err)
			}
			got := server.requests[0]
			if got.path != tt.path {
				t.Errorf("path = %s\nwant   %s", got.path, tt.path)
			}
			if got.authorization != "Bearer ya29.secret-token" {
				t.Errorf("authorization = %q", got.authorization)
			}
			for key, want := range tt.body {
				if got.body[key] != want {
					t.Errorf("%s = %v, want %v", key, got.body[key], want)
				}
			}
		})
	}
}

func TestPatchesSeeTheName(t *testing.T) {
	server := newRecorder(t)
	h, err := wire.NewClient(wire.Options{Client: "vertexai"})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, vertexai.Options{Options: client.Options{APIBase: server.URL + "/v1", HTTP: h, Model: func(string) wire.Model {
		return wire.Model{RealName: "mistral-large@2407", Patch: wire.Patch{Body: providertest.Object(map[string]any{"model": "patched"}), URL: server.URL + "/elsewhere"}}
	}}})
	providertest.Collect(t, c.Chat(t.Context(), provider.Request{Model: "m", Messages: []chat.Message{chat.Text(chat.User, "Hi")}}))
	if got := server.requests[0]; got.path != "/elsewhere" || got.body["model"] != "patched" {
		t.Errorf("request = %+v", got)
	}
}

func TestEmbed(t *testing.T) {
	server := geminitest.New(t, wiretest.JSON(`{"predictions":[{"embeddings":{"values":[1,2],"statistics":{"token_count":3}}}]}`))
	got, usage, err := newClient(t, vertexai.Options{Options: client.Options{APIBase: server.URL()}}).Embed(t.Context(), provider.EmbedRequest{Model: "text-embedding-005", Texts: []string{"x"}})
	if err != nil || len(got) != 1 || len(got[0]) != 2 || usage.InputTokens != 3 {
		t.Errorf("%v, %+v, %v", got, usage, err)
	}
}

func TestUnsupportedModel(t *testing.T) {
	r := providertest.Collect(t, newClient(t, vertexai.Options{}).Chat(t.Context(), provider.Request{Model: "llama-4"}))
	if e, ok := errors.AsType[*provider.Error](r.Err); !ok || e.Kind != provider.Invalid || !strings.Contains(e.Msg, `"llama-4"`) {
		t.Errorf("error = %v", r.Err)
	}
}

func TestTokenFailure(t *testing.T) {
	failing := func(context.Context) (string, error) {
		return "", &provider.Error{Kind: provider.Authentication, Msg: "log in"}
	}
	for _, model := range []string{"gemini-2.5-pro", "claude-opus-5", "mistral-large"} {
		t.Run(model, func(t *testing.T) {
			server := newRecorder(t)
			c := newClient(t, vertexai.Options{Options: client.Options{APIBase: server.URL, Token: failing}})
			r := providertest.Collect(t, c.Chat(t.Context(), provider.Request{Model: model, Messages: []chat.Message{chat.Text(chat.User, "Hi")}}))
			if e, ok := errors.AsType[*provider.Error](r.Err); !ok || e.Kind != provider.Authentication || !strings.Contains(r.Err.Error(), "log in") {
				t.Errorf("error = %v", r.Err)
			}
			if len(server.requests) != 0 {
				t.Errorf("%d requests were sent", len(server.requests))
			}
		})
	}
}

func TestNewRejects(t *testing.T) {
	for _, tt := range []struct {
		name    string
		o       vertexai.Options
		wantErr string
	}{
		{"no_name", vertexai.Options{}, "needs a name"},
		{"no_project", vertexai.Options{Options: client.Options{Name: "v"}, Location: "global"}, "project_id"},
		{"no_location", vertexai.Options{Options: client.Options{Name: "v"}, Project: "p"}, "location"},
		{"malformed_location", vertexai.Options{Options: client.Options{Name: "v"}, Project: "p", Location: "a b"}, "not an http or https URL"},
		{"no_url", vertexai.Options{Options: client.Options{Name: "v", APIBase: "nowhere"}, Project: "p", Location: "global"}, "not an http or https URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := vertexai.New(tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) || fault.CodeOf(err) != fault.Config {
				t.Errorf("error = %v, want a configuration error with %q", err, tt.wantErr)
			}
		})
	}
}

// asked is a transport that keeps the host of the request and refuses it.
type asked struct{ host string }

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	a.host = r.URL.Scheme + "://" + r.URL.Host
	return nil, errors.New("refused")
}

func TestHosts(t *testing.T) {
	for location, want := range map[string]string{
		"global": "https://aiplatform.googleapis.com", "europe-west4": "https://europe-west4-aiplatform.googleapis.com",
		"us-east5": "https://us-east5-aiplatform.googleapis.com", "eu": "https://aiplatform.eu.rep.googleapis.com",
	} {
		for _, model := range []string{"gemini-2.5-pro", "claude-opus-5", "mistral-large"} {
			a := &asked{}
			c, err := vertexai.New(vertexai.Options{
				Options: client.Options{Name: "vertexai", Token: token, HTTP: &http.Client{Transport: a}}, Project: "p", Location: location,
			})
			if err != nil {
				t.Fatal(err)
			}
			providertest.Collect(t, c.Chat(t.Context(), provider.Request{Model: model, Messages: []chat.Message{chat.Text(chat.User, "Hi")}}))
			if a.host != want {
				t.Errorf("%s in %s: asked %s, want %s", model, location, a.host, want)
			}
		}
	}
}
