package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/tool/mcp/oauth"
)

func TestOAuth(t *testing.T) {
	cfg := mustLoad(t, `
clients:
  - type: claude
    auth: oauth
  - type: gemini
    auth: oauth
    oauth:
      flow: device
      client_id: 12345
      client_secret: '{{SECRET}}'
      authorize_url: https://login.example.com/authorize
      token_url: 'https://{{HOST}}/token'
      device_url: https://login.example.com/device
      redirect_uri: http://127.0.0.1:0/callback
      scopes: [a, 'b-{{HOST}}']
      extra_params: {prompt: consent, code: true, key: '{{SECRET}}'}
      headers: {X-One: '{{HOST}}'}
      token_body: json
  - type: openai-compatible
    name: my-gateway
    auth: oauth
    oauth: {scopes: "one two", client_id: x}
  - type: openai
    auth: key
`)
	cfg.UseSecrets((&vaultOf{secrets: map[string]string{"SECRET": "s3cret", "HOST": "example.com"}}).lookup)
	for client, want := range map[string]*oauth.Provider{
		"claude": {},
		"gemini": {
			Flow: "device", ClientID: "12345", ClientSecret: "s3cret",
			AuthorizeURL: "https://login.example.com/authorize", TokenURL: "https://example.com/token", DeviceURL: "https://login.example.com/device",
			RedirectURI: "http://127.0.0.1:0/callback", Scopes: []string{"a", "b-example.com"},
			ExtraParams: []oauth.Pair{{Name: "prompt", Value: "consent"}, {Name: "code", Value: "true"}, {Name: "key", Value: "s3cret"}},
			Headers:     []oauth.Pair{{Name: "X-One", Value: "example.com"}}, Body: "json",
		},
		"my-gateway": {ClientID: "from-env", ClientSecret: "s3cret", Scopes: []string{"one", "two"}},
		"openai":     nil,
	} {
		env := NewEnv("linux", []string{"MY_GATEWAY_OAUTH_CLIENT_ID=from-env", "MY_GATEWAY_OAUTH_CLIENT_SECRET={{SECRET}}"})
		for range 2 { // the configuration stays as it is
			got, err := cfg.Client(client).OAuth(env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", client, diff)
			}
		}
	}
}

// TestOAuthSynonyms reads the names that other programs have for the same settings. The own
// name beats them.
func TestOAuthSynonyms(t *testing.T) {
	const others = `
clients:
  - type: openai
    auth: oauth
    oauth:
      flow: device_code
      client_id: me
      device_authorization_url: https://login.example.com/device
      token_request_format: json
      redirect_port: 8085
      extra_authorize_params: {audience: a}
      extra_token_headers: {X-One: b}
`
	got, err := mustLoad(t, others).Client("openai").OAuth(Env{})
	if err != nil {
		t.Fatal(err)
	}
	want := &oauth.Provider{
		Flow: "device", ClientID: "me", DeviceURL: "https://login.example.com/device", Body: "json",
		RedirectURI: "http://127.0.0.1:8085/callback", ExtraParams: []oauth.Pair{{Name: "audience", Value: "a"}}, Headers: []oauth.Pair{{Name: "X-One", Value: "b"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err = mustLoad(t, others+"      token_body: form\n      redirect_uri: http://127.0.0.1/x\n").Client("openai").OAuth(Env{})
	if err != nil || got.Body != "form" || got.RedirectURI != "http://127.0.0.1/x" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOAuthMissingSecret(t *testing.T) {
	cfg := mustLoad(t, `
clients:
  - type: gemini
    auth: oauth
    oauth:
      client_secret: '{{LOST}}'
`)
	cfg.UseSecrets(new(vaultOf).lookup)
	_, err := cfg.Client("gemini").OAuth(Env{})
	want := `client "gemini" (FILE:6:22): oauth.client_secret refers to the secret "LOST", which the vault does not have`
	if err == nil || strings.ReplaceAll(err.Error(), cfg.File, "FILE") != want || fault.HintOf(err) != "loki --secret add 'LOST'" {
		t.Errorf("error %v, hint %q", err, fault.HintOf(err))
	}
}

func TestOAuthMistakes(t *testing.T) {
	for _, tt := range []struct{ name, oauth, want string }{
		{"flow", "flow: devise", `4:19: clients[0].oauth.flow: want browser, paste, device, client_credentials, not "devise" | did you mean device?`},
		{"token_body", "token_body: xml", `4:25: clients[0].oauth.token_body: want form, json, not "xml"`},
		{"url", "token_url: example.com/token", `4:24: clients[0].oauth.token_url: want a URL that begins with https:// or http://`},
		{"redirect", "redirect_uri: 'http://'", `4:27: clients[0].oauth.redirect_uri: want a URL that begins with https:// or http://`},
		{"scopes", "scopes: {a: b}", `4:21: clients[0].oauth.scopes: expected a list, found a mapping`},
		{"scope", "scopes: [1]", `4:22: clients[0].oauth.scopes[0]: expected a string, found an integer`},
		{"params", "extra_params: [a]", `4:27: clients[0].oauth.extra_params: expected a mapping, found a list`},
		{"headers", "headers: {a: [b]}", `4:26: clients[0].oauth.headers.a: expected a text, found a list`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := load(t, "clients:\n  - type: claude\n    auth: oauth\n    oauth: {"+tt.oauth+"}")
			if err == nil {
				t.Fatal("no error")
			}
			_, got, _ := strings.Cut(err.Error(), "config.yaml:")
			want, hint, hinted := strings.Cut(tt.want, " | ")
			if got != want || hinted && fault.HintOf(err) != hint {
				t.Errorf("got  %s | %s\nwant %s", got, fault.HintOf(err), tt.want)
			}
		})
	}
	t.Run("no_mapping", func(t *testing.T) {
		if _, _, err := load(t, "clients: [{type: claude, auth: oauth, oauth: device}]"); err == nil {
			t.Error("no error")
		}
	})
	for _, tt := range []struct{ name, text, want string }{
		{"unknown_key", "clients:\n  - type: claude\n    auth: oauth\n    oauth: {client: x}", `4:13: clients[0].oauth: unknown key "client" is ignored`},
		{"without_auth", "clients:\n  - type: claude\n    oauth: {client_id: x}", `3:12: clients[0].oauth: has no effect on a client without auth: oauth | add auth: oauth`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, warnings, err := load(t, tt.text)
			if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0], tt.want) {
				t.Errorf("warnings %q, %v", warnings, err)
			}
		})
	}
}

func TestOAuthPrintsNothing(t *testing.T) {
	cfg := mustLoad(t, "clients:\n  - {type: claude, auth: oauth, oauth: {client_secret: s3cret, headers: {A: s3cret}}}")
	o, err := cfg.Client("claude").OAuth(Env{})
	if err != nil || o.ClientSecret != "s3cret" {
		t.Fatalf("%v, %v", o, err)
	}
	marshalled, err := json.Marshal(map[string]any{"config": cfg, "oauth": o})
	if err != nil {
		t.Fatal(err)
	}
	shown := string(marshalled) + slog.AnyValue(*o).Resolve().String()
	for _, format := range []string{"%v", "%+v", "%#v"} {
		shown += fmt.Sprintf(format, *o) + fmt.Sprintf(format, o) + fmt.Sprintf(format, cfg)
	}
	if strings.Contains(shown, "s3cret") {
		t.Errorf("the secret is in %s", shown)
	}
}
