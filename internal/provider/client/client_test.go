package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"loki/internal/provider"
	"loki/internal/provider/client"
	"loki/internal/provider/providertest/wiretest"
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
		err := d.Ask("m", func(provider.Chunk) error { return nil }, func(known dialect) (client.Attempt[dialect], error) {
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
