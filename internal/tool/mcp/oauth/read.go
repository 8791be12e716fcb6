package oauth

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/value/yamldoc"
)

// Read reads the settings of a provider: the mapping oauth of a client in config.yaml,
// or of a server in mcp.json. Missing settings are empty. Mistakes are reported to the
// document of m, and so are keys that mean nothing. The names of other programs for
// the same settings are read where Loki's own name is missing.
func Read(m *yamldoc.Map) Provider {
	var p Provider
	readFlow(m, &p.Flow)
	m.Text("client_id", &p.ClientID)
	m.Text("client_secret", &p.ClientSecret)
	readURL(m, "authorize_url", &p.AuthorizeURL)
	readURL(m, "token_url", &p.TokenURL)
	readURL(m, "device_url", &p.DeviceURL)
	readURL(m, "redirect_uri", &p.RedirectURI)
	readURL(m, "client_metadata_url", &p.MetadataURL)
	readScopes(m, &p.Scopes)
	p.ExtraParams = readPairs(m.Map("extra_params"))
	p.Headers = readPairs(m.Map("headers"))
	readChoice(m, "token_body", &p.Body, Form, JSON)
	p.readSynonyms(m)
	m.Done()
	return p
}

// readFlow reads the flow. It accepts device_code for device, as other programs
// call it.
func readFlow(m *yamldoc.Map, to *Flow) {
	if n := m.Get("flow"); n != nil && n.Kind() == yamldoc.String && n.Literal() == "device_code" {
		*to = Device
		return
	}
	readChoice(m, "flow", to, Browser, Paste, Device, ClientCredentials)
}

func (p *Provider) readSynonyms(m *yamldoc.Map) {
	var id, secret, device, host string
	m.Text("clientId", &id)
	m.Text("clientSecret", &secret)
	readURL(m, "device_authorization_url", &device)
	p.ClientID, p.ClientSecret, p.DeviceURL = cmp.Or(p.ClientID, id), cmp.Or(p.ClientSecret, secret), cmp.Or(p.DeviceURL, device)
	var body Body
	readChoice(m, "token_request_format", &body, Form, JSON)
	p.Body = cmp.Or(p.Body, body)
	var port int
	for _, key := range []string{"redirect_port", "callbackPort"} {
		m.Int(key, &port, 0, 65535)
	}
	if m.Text("redirectHost", &host); p.RedirectURI == "" && (port > 0 || host != "") {
		p.RedirectURI = fmt.Sprintf("http://%s/callback", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), strconv.Itoa(port)))
	}
	if params := readPairs(m.Map("extra_authorize_params")); p.ExtraParams == nil {
		p.ExtraParams = params
	}
	if headers := readPairs(m.Map("extra_token_headers")); p.Headers == nil {
		p.Headers = headers
	}
	m.Foreign("extra_request_headers", "echo_pkce_in_token_exchange", "use_pkce_in_device_flow", "include_state_in_token_exchange")
}

func readChoice[T ~string](m *yamldoc.Map, key string, to *T, choices ...T) {
	var text string
	if !m.Str(key, &text) {
		return
	}
	if *to = T(text); slices.Contains(choices, *to) {
		return
	}
	names := make([]string, len(choices))
	for i, c := range choices {
		names[i] = string(c)
	}
	p := m.Get(key).Errorf("want %s, not %q", strings.Join(names, ", "), text)
	if near := yamldoc.Nearest(text, names); near != "" {
		p.Hint = fmt.Sprintf("did you mean %s?", near)
	}
}

// readURL reads the address of an HTTP server. One that contains a secret is not checked.
func readURL(m *yamldoc.Map, key string, to *string) {
	if !m.Str(key, to) || strings.Contains(*to, "{{") {
		return
	}
	u, err := url.Parse(*to)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		m.Get(key).Errorf("want a URL that begins with https:// or http://")
	}
}

// readScopes reads a list, or a text with blanks between the scopes.
func readScopes(m *yamldoc.Map, to *[]string) {
	if n := m.Get("scopes"); n != nil && n.Kind() == yamldoc.String {
		text, _ := n.Str()
		*to = strings.Fields(text)
		return
	}
	m.Strs("scopes", to)
}

// readPairs reads texts, and values such as true as they are written.
func readPairs(m *yamldoc.Map) []Pair {
	var list []Pair
	for entry := range m.All() {
		if text, ok := entry.Node.Text(); ok {
			list = append(list, Pair{entry.Key, text})
		}
	}
	return list
}

// Expand returns p with every text setting replaced by the result of expand. The key
// names the setting, such as "token_url" or "headers.X-Beta".
func (p Provider) Expand(expand func(key, text string) (string, error)) (Provider, error) {
	p.Scopes, p.ExtraParams, p.Headers = slices.Clone(p.Scopes), slices.Clone(p.ExtraParams), slices.Clone(p.Headers)
	type place struct {
		key  string
		text *string
	}
	places := []place{
		{"client_id", &p.ClientID},
		{"client_secret", &p.ClientSecret},
		{"authorize_url", &p.AuthorizeURL},
		{"token_url", &p.TokenURL},
		{"device_url", &p.DeviceURL},
		{"redirect_uri", &p.RedirectURI},
		{"client_metadata_url", &p.MetadataURL},
	}
	for i := range p.Scopes {
		places = append(places, place{"scopes", &p.Scopes[i]})
	}
	for i := range p.ExtraParams {
		places = append(places, place{"extra_params." + p.ExtraParams[i].Name, &p.ExtraParams[i].Value})
	}
	for i := range p.Headers {
		places = append(places, place{"headers." + p.Headers[i].Name, &p.Headers[i].Value})
	}
	for _, at := range places {
		var err error
		if *at.text, err = expand(at.key, *at.text); err != nil {
			return Provider{}, err
		}
	}
	return p, nil
}

// String returns a placeholder without the contents of p, which may be secrets.
func (p Provider) String() string { return "OAuth settings" }

// GoString is [Provider.String].
func (p Provider) GoString() string { return p.String() }

// LogValue is [Provider.String].
func (p Provider) LogValue() slog.Value { return slog.StringValue(p.String()) }

// MarshalText is [Provider.String], also for JSON.
func (p Provider) MarshalText() ([]byte, error) { return []byte(p.String()), nil }
