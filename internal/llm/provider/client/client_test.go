package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest/wiretest"
)

func TestAuthorize(t *testing.T) {
	locked := errors.New("the vault is locked")
	token := func(text string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return text, err }
	}
	for _, tt := range []struct {
		name     string
		o        client.Options
		optional bool
		want     string
		kind     provider.ErrorKind
		wantErr  string
	}{
		{"trimmed", client.Options{APIKey: wiretest.Key(" sk-1\n")}, false, "Bearer sk-1", "", ""},
		{"not_required", client.Options{}, true, "", "", ""},
		{"none", client.Options{}, false, "", provider.Authentication, "client my-openai has no API key: set MY_OPENAI_API_KEY, or api_key in its configuration"},
		{"empty", client.Options{APIKey: wiretest.Key(" ")}, false, "", provider.Authentication, "has no API key"},
		{"line_break", client.Options{APIKey: wiretest.Key("sk-\nx-secret")}, false, "", provider.Authentication, "holds characters that no key has"},
		{"vault", client.Options{APIKey: func() (string, error) { return "", locked }}, true, "", provider.Authentication, "API key of client my-openai: the vault is locked"},
		{"token", client.Options{APIKey: wiretest.Key("sk-1"), Token: token(" t\n", nil)}, false, "Bearer t", "", ""},
		{"empty_token", client.Options{Token: token("", nil)}, true, "", provider.Authentication, "is empty"},
		{"no_token", client.Options{Token: token("", locked)}, false, "", provider.Authentication, "access token of client my-openai: the vault is locked"},
		{"token_later", client.Options{Token: token("", &provider.Error{Kind: provider.Transient, Msg: "later"})}, false, "", provider.Transient, "later"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Name, tt.o.APIBase = "my-openai", "http://server.test"
			f, err := client.New(tt.o, "")
			if err != nil {
				t.Fatal(err)
			}
			f.KeyOptional = tt.optional
			h := make(http.Header)
			err = f.Authorize(t.Context(), h)
			if got := h.Get("Authorization"); got != tt.want || provider.KindOf(err) != tt.kind {
				t.Fatalf("%q, %v", got, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.wantErr) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("error = %v", err)
			}
		})
	}
}

// TestDialects: two requests at once learn without undoing what the other has learned, and
// what concerns one conversation is forgotten.
func TestDialects(t *testing.T) {
	type dialect struct{ a, b, once bool }
	d := client.Dialects[dialect]{Lasting: func(d dialect) dialect { d.once = false; return d }}
	refused := &provider.Error{Kind: provider.Invalid, Msg: "Not THAT"}
	ask := func(adapt func(dialect) dialect, meanwhile func()) (tried []dialect) {
		err := d.Ask("m", provider.Request{}, func(provider.Chunk) error { return nil }, func(_ provider.Request, known dialect) (client.Attempt[dialect], error) {
			tried = append(tried, known)
			next := adapt(known)
			return client.Attempt[dialect]{
				Send: func(emit client.Emit) error {
					if next != known {
						return refused
					}
					meanwhile()
					return emit(provider.Chunk{Kind: provider.End})
				},
				Adapt: func(err error) (dialect, bool) {
					words, ok := client.Complaint(err)
					return next, ok && words == "not that"
				},
			}, nil
		})
		if err != nil {
			t.Error(err)
		}
		return tried
	}
	wantsA := func(d dialect) dialect { d.a, d.once = true, true; return d }
	wantsB := func(d dialect) dialect { d.b = true; return d }
	nothing := func() {}
	if tried := ask(wantsB, func() { ask(wantsA, nothing) }); len(tried) != 2 {
		t.Errorf("tried %+v", tried)
	}
	if got := d.Of("m"); got != (dialect{a: true}) {
		t.Errorf("known: %+v, want what was learned first", got)
	}
	ask(wantsB, nothing)
	if got := d.Of("m"); got != (dialect{a: true, b: true}) {
		t.Errorf("known: %+v", got)
	}
}

// TestRefusedStream: a server that refuses to stream is asked for the reply in one piece, at once the next time.
func TestRefusedStream(t *testing.T) {
	for msg, want := range map[string]int{
		"Your organization must be verified to stream this model.": 2,
		"This model doesn't support tool use in streaming mode.":   2,
		"Streaming is not supported for this model":                2,
		"stream_options is not supported":                          1,
		"The model does not support tools":                         1,
	} {
		var d client.Dialects[struct{}]
		asked := 0
		ask := func() error {
			return d.Ask("m", provider.Request{Stream: true}, func(provider.Chunk) error { return nil }, func(req provider.Request, _ struct{}) (client.Attempt[struct{}], error) {
				asked++
				return client.Attempt[struct{}]{
					Send: func(emit client.Emit) error {
						if req.Stream {
							return &provider.Error{Kind: provider.Invalid, Msg: msg}
						}
						return emit(provider.Chunk{Kind: provider.End})
					},
					Adapt: func(error) (struct{}, bool) { return struct{}{}, false },
				}, nil
			})
		}
		if err := ask(); asked != want || (err == nil) != (want == 2) {
			t.Errorf("%s: asked %d times, error %v", msg, asked, err)
		}
		if want == 2 {
			if err := ask(); asked != 3 || err != nil {
				t.Errorf("%s: asked %d times in all, error %v", msg, asked, err)
			}
		}
	}
}

func TestURL(t *testing.T) {
	for _, tt := range []struct{ base, path, want string }{
		{"https://h/v1", "/chat", "https://h/v1/chat"},
		{"https://h/v1/", "/chat?a=1", "https://h/v1/chat?a=1"},
		{"https://h/v1?v=1", "/chat", "https://h/v1/chat?v=1"},
		{"https://h/v1/?v=1", "/chat?v=2&alt=sse", "https://h/v1/chat?v=1&alt=sse"},
		{"https://h/v1/chat", "/embed", "https://h/v1/embed"},
		{"https://h/v1/chat/?v=1", "/chat", "https://h/v1/chat?v=1"},
		{"https://h/chatter", "/chat", "https://h/chatter/chat"},
	} {
		f, err := client.New(client.Options{Name: "c", APIBase: tt.base}, "", "/chat", "/embed")
		if err != nil {
			t.Fatal(err)
		}
		if got := f.URL(tt.path); got != tt.want {
			t.Errorf("%s and %s: %s, want %s", tt.base, tt.path, got, tt.want)
		}
	}
}
