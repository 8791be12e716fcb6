package oauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"loki/internal/base/fault"
	"loki/internal/base/web"
)

// Resource is a server that says by itself where its tokens come from (RFC 9728).
type Resource struct {
	Name      string
	URL       string
	Challenge Challenge
	Set       Provider // what the user has set; it counts before what is discovered
	Granted   []string // scopes of an earlier login
	// Registered returns the registration that is known for an issuer and a resource, a zero one if there is none.
	Registered func(issuer, resource string) Registration
	HTTP       *http.Client // for metadata and registrations, too
}

// Challenge is what a server says when it refuses a token.
type Challenge struct {
	Metadata string   // address of the metadata of the server; may be empty
	Scopes   []string // that are needed; may be empty
	Narrow   bool     // the token was right, but lacks scopes
}

// ReadChallenge reads the values of a header WWW-Authenticate.
func ReadChallenge(values []string) (c Challenge) {
	all, err := oauthex.ParseWWWAuthenticate(values)
	if err != nil {
		return c // as if it said nothing
	}
	for _, one := range all {
		if one.Scheme == "bearer" {
			return Challenge{one.Params["resource_metadata"], strings.Fields(one.Params["scope"]), one.Params["error"] == "insufficient_scope"}
		}
	}
	return c
}

// Registration is what an issuer knows this program by.
type Registration struct {
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret,omitempty"`
	RedirectURI  string    `json:"redirect_uri,omitempty"`
	Expires      time.Time `json:"expires,omitzero"` // of the secret
	Basic        bool      `json:"basic,omitempty"`
}

const (
	metadataTime  = 10 * time.Second // for each request
	mostIssuers   = 5                // of a server that are asked
	redirectProbe = "http://127.0.0.1:%d/callback"
)

// Discover returns where tokens for the server come from. It registers this program there if the user has not.
func (r Resource) Discover(ctx context.Context) (Provider, error) {
	meta, own, err := r.metadata(ctx)
	if err != nil {
		return Provider{}, r.problem(err)
	}
	var problems []error
	for _, issuer := range meta.AuthorizationServers[:min(len(meta.AuthorizationServers), mostIssuers)] {
		server, err := r.authority(ctx, issuer, own)
		if err == nil {
			return r.provider(ctx, meta, server)
		}
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		problems = append(problems, errors.New("its metadata name no authorization server"))
	}
	return Provider{}, r.problem(errors.Join(problems...))
}

func (r Resource) problem(err error) error {
	return fault.Wrap(fault.Config, err, "MCP server %s: it does not say how to log in", strings.TrimPrefix(r.Name, "mcp:")).
		WithHint(`set "oauth" for the server in mcp.json as its operator says, or "headers" with a key`)
}

// metadata returns what the server says about itself. One that says nothing is its own
// authorization server, as before RFC 9728, whose issuer may have a path.
func (r Resource) metadata(ctx context.Context) (meta *oauthex.ProtectedResourceMetadata, own bool, err error) {
	at, err := url.Parse(r.URL)
	if err != nil {
		return nil, false, err
	}
	const known = "/.well-known/oauth-protected-resource"
	base := at.Scheme + "://" + at.Host
	places := []string{r.Challenge.Metadata}
	if r.Challenge.Metadata == "" {
		places = slices.Compact([]string{base + known + strings.TrimSuffix(at.EscapedPath(), "/"), base + known})
	}
	for _, place := range places {
		meta = new(oauthex.ProtectedResourceMetadata)
		found, err := r.get(ctx, place, meta)
		switch {
		case err != nil:
			return nil, false, err
		case !found:
			continue
		case !covers(meta.Resource, at):
			return nil, false, fmt.Errorf("%s is about %q, and not about this server", place, meta.Resource)
		}
		return meta, false, nil
	}
	if r.Challenge.Metadata != "" {
		return nil, false, fmt.Errorf("there is nothing at %s", r.Challenge.Metadata)
	}
	return &oauthex.ProtectedResourceMetadata{Resource: r.URL, AuthorizationServers: []string{base}}, true, nil
}

// covers reports whether a server is the resource, or below it.
func covers(resource string, server *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || u.Fragment != "" || u.RawQuery != "" || !strings.EqualFold(u.Scheme, server.Scheme) || !strings.EqualFold(u.Host, server.Host) {
		return false
	}
	above := strings.TrimSuffix(u.Path, "/")
	rest, ok := strings.CutPrefix(server.Path, above)
	return ok && (rest == "" || rest[0] == '/')
}

// authorityMetadata is what an authorization server says about itself.
type authorityMetadata struct {
	oauthex.AuthServerMeta
	DeviceEndpoint string `json:"device_authorization_endpoint"`
}

// authority returns what an authorization server says about itself (RFC 8414, or OpenID).
func (r Resource) authority(ctx context.Context, issuer string, own bool) (*authorityMetadata, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the address of an authorization server", issuer)
	}
	base, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{base + "/.well-known/oauth-authorization-server" + path, base + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, base+path+"/.well-known/openid-configuration")
	}
	for _, place := range places {
		meta := new(authorityMetadata)
		found, err := r.get(ctx, place, meta)
		switch {
		case err != nil:
			return nil, err
		case !found:
			continue
		case strings.TrimSuffix(meta.Issuer, "/") != strings.TrimSuffix(issuer, "/") && !(own && strings.HasPrefix(meta.Issuer, base+"/")):
			return nil, fmt.Errorf("%s is about the issuer %q, and not about %s", place, meta.Issuer, issuer)
		case !slices.Contains(meta.CodeChallengeMethodsSupported, "S256"):
			return nil, fmt.Errorf("%s does not announce PKCE with S256, without which a code could be stolen", issuer)
		case meta.TokenEndpoint == "":
			return nil, fmt.Errorf("%s names no token_endpoint", place)
		}
		return meta, nil
	}
	return nil, fmt.Errorf("%s has no metadata", issuer)
}

// get reads a document of JSON. Found is false if there is none.
func (r Resource) get(ctx context.Context, address string, to any) (found bool, err error) {
	return r.exchange(ctx, http.MethodGet, address, nil, to)
}

// exchange sends a request for JSON, within the limits of metadata.
func (r Resource) exchange(ctx context.Context, method, address string, body []byte, to any) (found bool, err error) {
	u, err := url.Parse(address)
	if err != nil || !secure(u) {
		return false, fmt.Errorf("%q is not an https address", address)
	}
	ctx, cancel := context.WithTimeout(ctx, metadataTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	client := *cmp.Or(r.HTTP, http.DefaultClient)
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if !secure(req.URL) || body != nil || len(via) > 3 {
			return fmt.Errorf("it redirects to %s", req.URL.Host)
		}
		return nil
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, fmt.Errorf("%s: %w", u.Host, web.Reason(err))
	}
	defer resp.Body.Close()
	data, err := web.ReadAll(resp.Body, maxReply)
	switch {
	case err != nil:
		return false, fmt.Errorf("%s: %w", u.Host, err)
	case body == nil && resp.StatusCode >= 400 && resp.StatusCode < 500:
		return false, nil
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		var said struct {
			Code        string `json:"error"`
			Description string `json:"error_description"`
		}
		_ = json.Unmarshal(data, &said) // without it, the status says enough
		return false, fmt.Errorf("%s answers: %s", u.Host, strings.TrimSpace(cmp.Or(said.Code+" "+said.Description, " ")+" "+resp.Status))
	case json.Unmarshal(data, to) != nil:
		return false, fmt.Errorf("%s is not JSON of the expected form", address)
	}
	return true, nil
}

// secure reports whether an address has https, or is one of this machine.
func secure(u *url.URL) bool {
	return u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && web.Loopback(u.Hostname()))
}

// provider puts what is known together.
func (r Resource) provider(ctx context.Context, meta *oauthex.ProtectedResourceMetadata, server *authorityMetadata) (Provider, error) {
	p := r.Set
	p.Name, p.HTTP = r.Name, r.HTTP
	p.AuthorizeURL, p.TokenURL, p.DeviceURL = server.AuthorizationEndpoint, server.TokenEndpoint, cmp.Or(p.DeviceURL, server.DeviceEndpoint)
	p.Discovered = Discovered{Issuer: server.Issuer, NeedsIss: server.AuthorizationResponseIssParameterSupported, Resource: meta.Resource}
	if p.Flow = cmp.Or(p.Flow, Browser); p.Flow == Browser && p.AuthorizeURL == "" && p.DeviceURL != "" {
		p.Flow = Device
	}
	if len(p.Scopes) == 0 && len(r.Challenge.Scopes) == 0 {
		p.Scopes = meta.ScopesSupported
	}
	p.Scopes = slices.Concat(p.Scopes, r.Challenge.Scopes, r.Granted)
	slices.Sort(p.Scopes)
	p.Scopes = slices.Compact(p.Scopes)
	methods := server.TokenEndpointAuthMethodsSupported
	p.Basic = p.ClientSecret != "" && len(methods) > 0 && !slices.Contains(methods, "client_secret_post")
	if p.ClientID != "" {
		return p, p.Check()
	}
	if p.MetadataURL != "" && server.ClientIDMetadataDocumentSupported {
		p.ClientID = p.MetadataURL
		return p, p.Check()
	}
	known := r.Registered(server.Issuer, meta.Resource)
	if known.ClientID == "" || p.Flow == Browser && !free(ctx, known.RedirectURI) {
		var err error
		if known, err = r.register(ctx, p, server); err != nil {
			return Provider{}, err
		}
	}
	p.ClientID, p.ClientSecret, p.RedirectURI, p.Basic, p.Expires = known.ClientID, known.ClientSecret, known.RedirectURI, known.Basic, known.Expires
	return p, p.Check()
}

// free reports whether this machine can listen at a redirect URI.
func free(ctx context.Context, address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Port() == "" {
		return false
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", u.Host)
	return err == nil && l.Close() == nil
}

// register registers this program (RFC 7591), for a port of this machine that is free now: many servers compare it.
func (r Resource) register(ctx context.Context, p Provider, server *authorityMetadata) (Registration, error) {
	if server.RegistrationEndpoint == "" {
		return Registration{}, fault.New(fault.Config, "MCP server %s: %s takes no registration by programs", strings.TrimPrefix(r.Name, "mcp:"), server.Issuer).
			WithHint(`register an application there, with the redirect address http://127.0.0.1/callback, and write "oauth": {"client_id": "..."} for the server in mcp.json`)
	}
	redirect := p.RedirectURI
	if redirect == "" || p.Flow == Browser && strings.HasSuffix(redirect, ":0/callback") {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return Registration{}, err
		}
		port, _ := l.Addr().(*net.TCPAddr)
		redirect = fmt.Sprintf(redirectProbe, port.Port)
		if err := l.Close(); err != nil {
			return Registration{}, err
		}
	}
	method, methods := "none", server.TokenEndpointAuthMethodsSupported
	for _, other := range []string{"client_secret_post", "client_secret_basic"} {
		if len(methods) > 0 && !slices.Contains(methods, method) {
			method = other
		}
	}
	grants := []string{"authorization_code", "refresh_token"}
	if p.DeviceURL != "" {
		grants = append(grants, "urn:ietf:params:oauth:grant-type:device_code")
	}
	wish, err := json.Marshal(&oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: method, GrantTypes: grants, ResponseTypes: []string{"code"},
		ClientName: "Loki", ApplicationType: "native", Scope: strings.Join(p.Scopes, " "),
	})
	if err != nil {
		return Registration{}, err
	}
	given := new(oauthex.ClientRegistrationResponse)
	if _, err := r.exchange(ctx, http.MethodPost, server.RegistrationEndpoint, wish, given); err != nil {
		return Registration{}, fault.Wrap(fault.Provider, err, "MCP server %s: registering this program", strings.TrimPrefix(r.Name, "mcp:"))
	}
	if given.ClientID == "" {
		return Registration{}, fault.New(fault.Provider, "MCP server %s: %s registered this program without a client_id", strings.TrimPrefix(r.Name, "mcp:"), server.Issuer)
	}
	return Registration{
		ClientID: given.ClientID, ClientSecret: given.ClientSecret, RedirectURI: redirect, Expires: given.ClientSecretExpiresAt,
		Basic: given.ClientSecret != "" && cmp.Or(given.TokenEndpointAuthMethod, method) == "client_secret_basic",
	}, nil
}
