package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"loki/internal/yamldoc"
)

// OAuth is what the mapping oauth of a client says about getting a token to call it with.
// What is not configured is empty. Printing or logging it shows none of it.
type OAuth struct {
	Flow         string // browser, paste, device or client_credentials
	ClientID     string
	ClientSecret string
	AuthorizeURL string
	TokenURL     string
	DeviceURL    string
	RedirectURI  string
	Scopes       []string
	ExtraParams  Mapping // of the request that begins the flow
	Headers      Mapping // of the requests for tokens
	TokenBody    string  // form or json
}

// String returns no more than what o is.
func (o OAuth) String() string { return "OAuth settings" }

// GoString is [OAuth.String].
func (o OAuth) GoString() string { return o.String() }

// LogValue is [OAuth.String].
func (o OAuth) LogValue() slog.Value { return slog.StringValue(o.String()) }

// MarshalText is [OAuth.String], and keeps JSON to it.
func (o OAuth) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// authOAuth is the value of auth that asks for OAuth.
const authOAuth = "oauth"

func oauthFlows() []string { return []string{"browser", "paste", "device", "client_credentials"} }

// OAuth returns the OAuth settings of c, nil if it does not say auth: oauth. References to
// secrets are replaced. The environment variables <CLIENT NAME>_OAUTH_CLIENT_ID and
// _OAUTH_CLIENT_SECRET beat the file.
func (c *Client) OAuth(env Env) (*OAuth, error) {
	if auth := c.fields["auth"]; auth == nil || *auth != authOAuth {
		return nil, nil
	}
	o := OAuth{}
	if c.oauth != nil {
		o = *c.oauth
	}
	o.Scopes = slices.Clone(o.Scopes)
	o.ExtraParams = slices.Clone(o.ExtraParams)
	o.Headers = slices.Clone(o.Headers)
	var idSource, secretSource string
	o.ClientID, idSource = c.oauthFromEnv(env, "client_id", o.ClientID)
	o.ClientSecret, secretSource = c.oauthSecret(env)
	texts := []struct {
		source string
		text   *string
	}{
		{idSource, &o.ClientID},
		{secretSource, &o.ClientSecret},
		{"oauth.authorize_url", &o.AuthorizeURL},
		{"oauth.token_url", &o.TokenURL},
		{"oauth.device_url", &o.DeviceURL},
		{"oauth.redirect_uri", &o.RedirectURI},
	}
	for i := range o.Scopes {
		texts = append(texts, struct {
			source string
			text   *string
		}{"oauth.scopes", &o.Scopes[i]})
	}
	for source, mapping := range map[string]Mapping{"oauth.extra_params": o.ExtraParams, "oauth.headers": o.Headers} {
		for i := range mapping {
			texts = append(texts, struct {
				source string
				text   *string
			}{source + "." + mapping[i].Name, &mapping[i].Value})
		}
	}
	for _, t := range texts {
		var err error
		if *t.text, err = c.expand(t.source, *t.text); err != nil {
			return nil, err
		}
	}
	return &o, nil
}

// oauthSecret returns the client secret as it is written, and what it comes from.
func (c *Client) oauthSecret(env Env) (text, source string) {
	if c.oauth != nil {
		text = c.oauth.ClientSecret
	}
	return c.oauthFromEnv(env, "client_secret", text)
}

func (c *Client) oauthFromEnv(env Env, name, configured string) (text, source string) {
	for _, variable := range variables(c.Name + "_oauth_" + name) {
		if text := env.Get(variable); text != "" {
			return text, "environment variable " + variable
		}
	}
	return configured, "oauth." + name
}

// readOAuth reads the mapping oauth of a client; a nil m is none.
func (c *Client) readOAuth(m *yamldoc.Map) {
	if m == nil {
		return
	}
	o := new(OAuth)
	if n := m.Get("flow"); n != nil && n.Kind() == yamldoc.String {
		if text, _ := n.Str(); text == "device_code" { // what the flow is called elsewhere
			o.Flow = "device"
		}
	}
	if o.Flow == "" {
		readChoice(m, "flow", &o.Flow, oauthFlows())
	}
	m.Text("client_id", &o.ClientID)
	m.Text("client_secret", &o.ClientSecret)
	readURL(m, "authorize_url", &o.AuthorizeURL)
	readURL(m, "token_url", &o.TokenURL)
	readURL(m, "device_url", &o.DeviceURL)
	readURL(m, "redirect_uri", &o.RedirectURI)
	readScopes(m, &o.Scopes)
	o.ExtraParams = readTexts(m.Map("extra_params"))
	o.Headers = readTexts(m.Map("headers"))
	readChoice(m, "token_body", &o.TokenBody, []string{"form", "json"})
	o.readSynonyms(m)
	m.Done()
	if auth := c.fields["auth"]; auth == nil || *auth != authOAuth {
		p := m.Node().Warnf("has no effect on a client without auth: %s", authOAuth)
		p.Hint = "add auth: " + authOAuth
	}
	c.oauth = o
}

// readSynonyms reads the names that other programs have for the same settings, where the own
// name is missing.
func (o *OAuth) readSynonyms(m *yamldoc.Map) {
	if m.Has("device_authorization_url") && o.DeviceURL == "" {
		readURL(m, "device_authorization_url", &o.DeviceURL)
	}
	if m.Has("token_request_format") && o.TokenBody == "" {
		readChoice(m, "token_request_format", &o.TokenBody, []string{"form", "json"})
	}
	var port int
	if m.Int("redirect_port", &port, 1, 65535) && o.RedirectURI == "" {
		o.RedirectURI = fmt.Sprintf("http://127.0.0.1:%d/callback", port)
	}
	if params := readTexts(m.Map("extra_authorize_params")); o.ExtraParams == nil {
		o.ExtraParams = params
	}
	if headers := readTexts(m.Map("extra_token_headers")); o.Headers == nil {
		o.Headers = headers
	}
	m.Foreign("extra_request_headers", "echo_pkce_in_token_exchange", "use_pkce_in_device_flow", "include_state_in_token_exchange")
}

func readChoice(m *yamldoc.Map, key string, dst *string, choices []string) {
	if !m.Str(key, dst) || slices.Contains(choices, *dst) {
		return
	}
	p := m.Get(key).Errorf("want %s, not %q", strings.Join(choices, ", "), *dst)
	if near := yamldoc.Nearest(*dst, choices); near != "" {
		p.Hint = fmt.Sprintf("did you mean %s?", near)
	}
}

// readURL reads the address of an HTTP server. One that a secret is part of is not looked
// at any closer.
func readURL(m *yamldoc.Map, key string, dst *string) {
	if !m.Str(key, dst) || HasSecretPlaceholder(*dst) {
		return
	}
	u, err := url.Parse(*dst)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		m.Get(key).Errorf("want a URL that begins with https:// or http://")
	}
}

// readScopes reads a list, or a text with blanks between the scopes.
func readScopes(m *yamldoc.Map, dst *[]string) {
	if n := m.Get("scopes"); n != nil && n.Kind() == yamldoc.String {
		text, _ := n.Str()
		*dst = strings.Fields(text)
		return
	}
	m.Strs("scopes", dst)
}

// readTexts is [readMapping] for values that need not be strings, such as true.
func readTexts(m *yamldoc.Map) Mapping {
	var mapping Mapping
	for entry := range m.All() {
		if text, ok := entry.Node.Text(); ok {
			mapping = append(mapping, Entry{entry.Key, text})
		}
	}
	return mapping
}
