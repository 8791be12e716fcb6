package anthropic_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/anthropic"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

func token(context.Context) (string, error) { return "ya29.secret", nil }

// onVertex makes options those of a client of Vertex AI.
func onVertex(o *client.Options) {
	o.Token, o.APIBase = token, o.APIBase+"projects/my-project/locations/europe-west1/publishers/anthropic/models/"
}

// TestConformance runs the suite that all providers pass, over a real connection.
func TestConformance(t *testing.T) {
	pieces := []string{"Grö", "ße: ", "12 µm ", "✓ 😀"}
	calls := []chat.ToolCall{
		{ID: "toolu_a", Name: "get_weather", Arguments: `{"city":"Zürich","big":12345678901234567890}`},
		{ID: "toolu_b", Name: "get_time", Arguments: "{}"},
	}
	opening := append([]string{begin()}, textStart(0, pieces...)...)
	const cutOff = `{"path": "build"`
	replies := map[providertest.Scenario]wiretest.Reply{
		providertest.TextReply:     answer(pieces),
		providertest.ToolCallReply: answer([]string{"Let me see."}, calls...),
		providertest.CutOffCall:    cutOffReply(cutOff),
		providertest.RateLimited:   status(429, "rate_limit_error", "Slow down", "Retry-After", "3"),
		providertest.DropMidStream: wiretest.Then(wiretest.Events(opening...), wiretest.Drop),
		providertest.Garbage:       wiretest.Events("data: so long, and thanks for all the fish\n\n"),
		providertest.Hang:          wiretest.Hang,
		providertest.Stall:         wiretest.Then(wiretest.Events(opening...), wiretest.Hang),
	}
	for name, ask := range map[string]func(*server) *anthropic.Client{
		"key":    func(s *server) *anthropic.Client { return s.client(nil) },
		"token":  func(s *server) *anthropic.Client { return s.client(func(o *client.Options) { o.Token = token }) },
		"vertex": (*server).vertex,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, providertest.Case{New: func(t *testing.T, s providertest.Scenario) providertest.Subject {
				server := newServer(t, replies[s])
				return providertest.Subject{
					Chat: ask(server), Request: provider.Request{Model: "claude-sonnet-4-5"},
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
		o       client.Options
		wantErr string
	}{
		{"default_base", client.Options{Name: "claude"}, ""},
		{"no_name", client.Options{}, "needs a name"},
		{"no_url", client.Options{Name: "claude", APIBase: "api.anthropic.com/v1"}, "not an http or https URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := anthropic.New(tt.o)
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

func TestEndpointsAndHeaders(t *testing.T) {
	for _, tt := range []struct {
		name   string
		client func(*server) *anthropic.Client
		stream bool
		url    string
		want   map[string]string // "" means that the field is not there
	}{
		{
			"key", func(s *server) *anthropic.Client { return s.client(nil) }, false, "/v1/messages",
			map[string]string{"X-Api-Key": "sk-ant-secret", "Authorization": "", "Anthropic-Version": "2023-06-01", "Accept": "application/json", "Content-Type": "application/json"},
		},
		{
			"token_streamed", func(s *server) *anthropic.Client {
				return s.client(func(o *client.Options) {
					o.Token, o.Headers = token, map[string]string{"anthropic-beta": "oauth-2025-04-20"}
				})
			}, true, "/v1/messages",
			map[string]string{"X-Api-Key": "", "Authorization": "Bearer ya29.secret", "Anthropic-Beta": "oauth-2025-04-20", "Accept": "text/event-stream", "Accept-Encoding": "identity"},
		},
		{
			"vertex", (*server).vertex, false, "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict",
			map[string]string{"X-Api-Key": "", "Authorization": "Bearer ya29.secret"},
		},
		{
			"vertex_streamed", (*server).vertex, true, "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict",
			map[string]string{"X-Api-Key": "", "Authorization": "Bearer ya29.secret"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, answer([]string{"Hi"}))
			req := question()
			req.Model, req.Stream = "claude-sonnet-4-5@20250929", tt.stream
			if r := collect(t, tt.client(s), req); r.Err != nil {
				t.Fatal(r.Err)
			}
			got := s.Last()
			if got.Path != tt.url {
				t.Errorf("URL = %s, want %s", got.Path, tt.url)
			}
			for name, want := range tt.want {
				if v := got.Header.Get(name); v != want {
					t.Errorf("header %s = %q, want %q", name, v, want)
				}
			}
			for name := range got.Header {
				if strings.HasPrefix(name, "X-Stainless") {
					t.Errorf("header %s tells the server about the machine", name)
				}
			}
			b := got.JSON()
			_, model := b["model"]
			_, version := b["anthropic_version"]
			_, stream := b["stream"]
			vertex := strings.HasPrefix(tt.name, "vertex")
			if model == vertex || version != vertex || stream != tt.stream {
				t.Errorf("body %s: model, version or stream are wrong", got.Body)
			}
		})
	}
}

// TestEnvironment sets what the SDK would read by itself.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("ANTHROPIC_BASE_URL", "http://elsewhere.invalid")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Custom: from-the-environment")
	s := newServer(t, answer([]string{"Hi"}))
	if r := collect(t, s.client(nil), question()); r.Err != nil {
		t.Fatal(r.Err)
	}
	for name, values := range s.Last().Header {
		if strings.Contains(strings.Join(values, " "), "from-the-environment") {
			t.Errorf("header %s = %q", name, values)
		}
	}
}

// TestNoWarnings asks in ways that the SDK comments on or declines by itself.
func TestNoWarnings(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = write
	defer func() { os.Stderr = stderr }()
	s := newServer(t, status(400, "invalid_request_error", "adaptive thinking is not supported"), answer([]string{"Hi"}))
	req := question()
	req.Model, req.Effort, req.Stream, req.MaxOutputTokens = "claude-opus-4-6", provider.HighEffort, false, 64000
	r := collect(t, s.client(nil), req)
	write.Close()
	said := make([]byte, 100)
	n, _ := read.Read(said)
	if r.Err != nil || n != 0 {
		t.Errorf("error %v, standard error %q", r.Err, said[:n])
	}
}

func TestCredentials(t *testing.T) {
	broken := errors.New("no network")
	for _, tt := range []struct {
		name   string
		change func(*client.Options)
		kind   provider.ErrorKind
		want   []string
	}{
		{"no_key", func(o *client.Options) { o.Name, o.APIKey = "my-claude", nil }, provider.Authentication, []string{"MY_CLAUDE_API_KEY", "--authenticate my-claude"}},
		{"key_fails", func(o *client.Options) { o.APIKey = func() (string, error) { return "", broken } }, provider.Authentication, []string{"no network"}},
		{"odd_key", func(o *client.Options) { o.APIKey = wiretest.Key("a\nb") }, provider.Authentication, []string{"characters"}},
		{"empty_token", func(o *client.Options) { o.Token = func(context.Context) (string, error) { return " ", nil } }, provider.Authentication, []string{"empty"}},
		{"token_fails", func(o *client.Options) { o.Token = func(context.Context) (string, error) { return "", broken } }, provider.Authentication, []string{"no network"}},
		{"token_transient", func(o *client.Options) {
			o.Token = func(context.Context) (string, error) {
				return "", &provider.Error{Kind: provider.Transient, Msg: "later"}
			}
		}, provider.Transient, []string{"later"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, answer([]string{"Hi"}))
			r := collect(t, s.client(tt.change), question())
			wantError(t, r.Err, tt.kind, tt.want...)
			if n := len(s.Requests()); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		s := newServer(t, answer([]string{"Hi"}))
		ctx, cancel := context.WithCancel(t.Context())
		c := s.client(func(o *client.Options) {
			o.Token = func(ctx context.Context) (string, error) { cancel(); return "", ctx.Err() }
		})
		if r := providertest.Collect(t, c.Chat(ctx, question())); !errors.Is(r.Err, context.Canceled) {
			t.Errorf("error = %v, want context.Canceled", r.Err)
		}
	})
}

func wantError(t testing.TB, err error, kind provider.ErrorKind, words ...string) {
	t.Helper()
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Kind != kind {
		t.Errorf("error = %v, want one of kind %s", err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(e.Error(), w) {
			t.Errorf("error %q does not say %q", e, w)
		}
	}
}

// TestStatuses looks at the kinds of errors that the API documents.
func TestStatuses(t *testing.T) {
	for _, tt := range []struct {
		code int
		typ  string
		msg  string
		kind provider.ErrorKind
	}{
		{400, "invalid_request_error", "messages: at least one message is required", provider.Invalid},
		{400, "invalid_request_error", "prompt is too long: 201000 tokens > 200000 maximum", provider.ContextOverflow},
		{401, "authentication_error", "invalid x-api-key sk-ant-secret", provider.Authentication},
		{403, "permission_error", "no access", provider.Authentication},
		{404, "not_found_error", "model: claude-9", provider.Invalid},
		{413, "request_too_large", "Request exceeds the maximum size", provider.ContextOverflow},
		{429, "rate_limit_error", "too many", provider.RateLimited},
		{500, "api_error", "Internal server error", provider.Transient},
		{529, "overloaded_error", "Overloaded", provider.Transient},
	} {
		t.Run(tt.typ, func(t *testing.T) {
			s := newServer(t, status(tt.code, tt.typ, tt.msg))
			for _, stream := range []bool{true, false} {
				req := question()
				req.Stream = stream
				r := collect(t, s.client(nil), req)
				wantError(t, r.Err, tt.kind)
				if strings.Contains(r.Err.Error(), "sk-ant-secret") {
					t.Errorf("error %q holds the key", r.Err)
				}
			}
			if n := len(s.Requests()); n != 2 {
				t.Errorf("%d requests, want 2: nothing is retried", n)
			}
		})
	}
}

// TestPatches sends requests through a client with patches.
func TestPatches(t *testing.T) {
	s := newServer(t, answer([]string{"Hi"}))
	h, err := wire.NewClient(wire.Options{
		Client: "claude", UserAgent: "loki/1",
		Patches: wire.Patches{wire.ChatCompletions: {
			{Pattern: "claude-real", Patch: wire.Patch{Body: providertest.Object(map[string]any{"wrong": true})}},
			{Pattern: "my-.*", Patch: wire.Patch{
				Body:    providertest.Object(map[string]any{"temperature": nil, "metadata": map[string]any{"user_id": "u"}}),
				Headers: []wire.Header{{Name: "anthropic-beta", Value: new("context-1m")}, {Name: "x-api-key"}},
			}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := s.client(func(o *client.Options) {
		o.HTTP = h
		o.Model = func(name string) wire.Model {
			if name != "my-claude:thinking" {
				t.Errorf("asked about the model %q", name)
			}
			return wire.Model{RealName: "claude-real", Patch: wire.Patch{
				URL:  s.URL() + "/gateway",
				Body: providertest.Object(map[string]any{"max_tokens": 24000, "thinking": map[string]any{"type": "enabled", "budget_tokens": 16000}}),
			}}
		}
	})
	req := question()
	hot := 0.7
	req.Model, req.Temperature = "my-claude:thinking", &hot
	if r := collect(t, c, req); r.Err != nil {
		t.Fatal(r.Err)
	}
	got := s.Last()
	b := got.JSON()
	if b["model"] != "claude-real" || b["max_tokens"] != 24000.0 || b["temperature"] != nil || b["wrong"] != nil || b["metadata"] == nil || b["thinking"] == nil || b["stream"] != true {
		t.Errorf("body = %s", got.Body)
	}
	if got.Path != "/gateway" || got.Header.Get("anthropic-beta") != "context-1m" || got.Header.Get("X-Api-Key") != "" || got.Header.Get("User-Agent") != "loki/1" {
		t.Errorf("URL %s, header %v", got.Path, got.Header)
	}
}

// asked is a transport that keeps the URL of the request.
type asked struct{ url string }

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	a.url = r.URL.String()
	return fixed{"application/json", func() io.Reader { return strings.NewReader(`{"content":[]}`) }}.RoundTrip(r)
}

func TestDefaultURL(t *testing.T) {
	a := &asked{}
	h, err := wire.NewClient(wire.Options{Client: "claude", Transport: a})
	if err != nil {
		t.Fatal(err)
	}
	c, err := anthropic.New(client.Options{Name: "claude", APIKey: wiretest.Key("key"), HTTP: h})
	if err != nil {
		t.Fatal(err)
	}
	req := question()
	req.Model, req.Stream = "m", false
	if r := collect(t, c, req); r.Err != nil || a.url != "https://api.anthropic.com/v1/messages" {
		t.Errorf("asked %s; error %v", a.url, r.Err)
	}
}
