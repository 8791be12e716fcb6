// Package oauth gets access tokens, and keeps them.
//
// A [Provider] describes how to get tokens: the flow, the addresses, the program's
// registration there. [Login] runs the flow once, with the user if it needs one, and a
// [Store] keeps the result. A [Source] returns the token, and renews it when it is about
// to expire.
//
// The flows are those of RFC 6749 with PKCE (RFC 7636), where the browser returns the
// code to a port of this machine or the user pastes it; of RFC 8628, for machines
// without a browser; and the client-credentials grant. The requests are
// golang.org/x/oauth2's.
package oauth

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"loki/internal/base/fault"
	"loki/internal/base/web"
)

// Flow is a way to a token.
type Flow string

// The flows.
const (
	Browser           Flow = "browser"            // the browser returns the code to a port of this machine
	Paste             Flow = "paste"              // the user pastes the code
	Device            Flow = "device"             // the user types a code elsewhere
	ClientCredentials Flow = "client_credentials" // no user at all
)

// Body is the form of the requests for tokens. Empty means [Form].
type Body string

// The forms.
const (
	Form Body = "form"
	JSON Body = "json"
)

// Pair is a name with a value.
type Pair struct{ Name, Value string }

// Provider describes how to get tokens. Printing or logging it shows none of its contents.
type Provider struct {
	Name         string // of the client that the tokens are for
	Flow         Flow
	ClientID     string // the program's registration; required
	ClientSecret string
	AuthorizeURL string
	TokenURL     string // required
	DeviceURL    string
	RedirectURI  string // of Browser: a loopback address; empty, port 0 or no port means any free port
	Scopes       []string
	ExtraParams  []Pair // of the request that begins the flow
	Headers      []Pair // of requests for tokens
	Body         Body   // of requests for tokens
	// MetadataURL is where a document about this program is, which is its registration with servers that read it.
	MetadataURL string

	Discovered

	HTTP *http.Client // nil means [http.DefaultClient]
}

// Discovered is what [Resource.Discover] adds to a [Provider].
type Discovered struct {
	Issuer   string    // that an answer of the browser has to name, if it names one
	NeedsIss bool      // an answer has to name it
	Resource string    // that tokens are for
	Basic    bool      // the registration is sent in a header, and not in the form
	Expires  time.Time // of the registration; zero is never
}

// Defaults returns the public settings of the provider for clients of a type. They have
// no registration: that is the user's own. ok is false for other types.
func Defaults(clientType string) (p Provider, ok bool) {
	switch clientType {
	case "claude":
		return Provider{
			Flow:         Paste,
			AuthorizeURL: "https://claude.ai/oauth/authorize",
			TokenURL:     "https://console.anthropic.com/v1/oauth/token",
			RedirectURI:  "https://console.anthropic.com/oauth/code/callback",
			Scopes:       []string{"org:create_api_key", "user:profile", "user:inference"},
			ExtraParams:  []Pair{{"code", "true"}},
			Headers:      []Pair{{"anthropic-beta", ClaudeBeta}},
			Body:         JSON,
		}, true
	case "gemini":
		const scope = "https://www.googleapis.com/auth/"
		return Provider{
			Flow:         Browser,
			AuthorizeURL: "https://accounts.google.com/o/oauth2/v2/auth",
			TokenURL:     "https://oauth2.googleapis.com/token",
			DeviceURL:    "https://oauth2.googleapis.com/device/code",
			Scopes:       []string{scope + "generative-language.peruserquota", scope + "generative-language.retriever", scope + "userinfo.email"},
			ExtraParams:  []Pair{{"access_type", "offline"}, {"prompt", "consent"}},
		}, true
	}
	return Provider{}, false
}

// ClaudeBeta is the value of the header anthropic-beta that goes with tokens for Claude.
const ClaudeBeta = "oauth-2025-04-20"

// Or returns p with its empty fields taken from other.
func (p Provider) Or(other Provider) Provider {
	p.Flow = cmp.Or(p.Flow, other.Flow)
	p.ClientID, p.ClientSecret = cmp.Or(p.ClientID, other.ClientID), cmp.Or(p.ClientSecret, other.ClientSecret)
	p.AuthorizeURL, p.TokenURL = cmp.Or(p.AuthorizeURL, other.AuthorizeURL), cmp.Or(p.TokenURL, other.TokenURL)
	p.DeviceURL, p.RedirectURI = cmp.Or(p.DeviceURL, other.DeviceURL), cmp.Or(p.RedirectURI, other.RedirectURI)
	if p.Scopes == nil {
		p.Scopes = slices.Clone(other.Scopes)
	}
	if p.ExtraParams == nil {
		p.ExtraParams = slices.Clone(other.ExtraParams)
	}
	if p.Headers == nil {
		p.Headers = slices.Clone(other.Headers)
	}
	p.Body, p.MetadataURL = cmp.Or(p.Body, other.Body), cmp.Or(p.MetadataURL, other.MetadataURL)
	return p
}

// Check returns an error with code Config if a setting is missing or unsafe.
func (p Provider) Check() error {
	missing := func(what string) error {
		return fault.New(fault.Config, "client %s: oauth.%s is not set", p.Name, what).
			WithHint("register an application with the provider, and put its settings into oauth: of the client in config.yaml")
	}
	byUser := p.Flow == Browser || p.Flow == Paste
	switch {
	case p.ClientID == "":
		return missing("client_id")
	case p.TokenURL == "":
		return missing("token_url")
	case byUser && p.AuthorizeURL == "":
		return missing("authorize_url")
	case p.Flow == Paste && p.RedirectURI == "":
		return missing("redirect_uri")
	case p.Flow == Device && p.DeviceURL == "":
		return missing("device_url")
	case p.Flow == ClientCredentials && p.ClientSecret == "":
		return missing("client_secret")
	case p.Flow == "":
		return missing("flow")
	}
	for _, address := range []struct{ name, text string }{
		{"token_url", p.TokenURL}, {"authorize_url", p.AuthorizeURL}, {"device_url", p.DeviceURL},
	} {
		if address.text == "" {
			continue
		}
		u, err := url.Parse(address.text)
		if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !web.Loopback(u.Hostname())) {
			return fault.New(fault.Config, "client %s: oauth.%s does not begin with https://", p.Name, address.name).
				WithHint("without https, the networks in between could read the secrets")
		}
	}
	if p.Flow == Browser && p.RedirectURI != "" {
		if u, err := url.Parse(p.RedirectURI); err != nil || u.Scheme != "http" || !web.Loopback(u.Hostname()) {
			return fault.New(fault.Config, "client %s: oauth.redirect_uri is not an address of this machine", p.Name).
				WithHint("use an address like http://127.0.0.1:8085/callback, or flow: paste for another one")
		}
	}
	return nil
}

// config returns p in the terms of the library.
func (p Provider) config(redirect string) *oauth2.Config {
	style := oauth2.AuthStyleInParams
	if p.Basic {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURL: redirect, Scopes: p.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: p.AuthorizeURL, TokenURL: p.TokenURL, DeviceAuthURL: p.DeviceURL, AuthStyle: style},
	}
}

func (p Provider) options() []oauth2.AuthCodeOption {
	options := make([]oauth2.AuthCodeOption, 0, len(p.ExtraParams))
	for _, param := range p.ExtraParams {
		options = append(options, oauth2.SetAuthURLParam(param.Name, param.Value))
	}
	if p.Resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", p.Resource))
	}
	return options
}
