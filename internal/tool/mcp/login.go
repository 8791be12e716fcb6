package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"loki/internal/base/fault"
	"loki/internal/tool/mcp/oauth"
)

// LoginPrefix distinguishes an MCP server from a client in the name of a login.
const LoginPrefix = "mcp:"

// Logins are the OAuth tokens of the servers of a file. It is a [TokenSource].
type Logins struct {
	File    *File
	Dir     string // with a file of tokens for each server
	Secrets Secrets
	Getenv  func(name string) (value string, ok bool)        // see [Options]
	Seen    func(server string) func(*oauth2.Token)          // returns what is called with each token of a server
	HTTP    func(ctx context.Context, u string) *http.Client // connects with what the server at u refers to; nil: any address may

	mu      sync.Mutex
	sources map[string]*oauth.Source
}

// Token implements [TokenSource].
func (l *Logins) Token(ctx context.Context, server string) (string, error) {
	source, discovered, err := l.source(server)
	if err != nil || source == nil {
		return "", err
	}
	token, err := source.Token(ctx)
	if err != nil && discovered && ctx.Err() == nil {
		return "", nil // the server then asks for a login
	}
	return token, err
}

// Reject implements [Rejecter].
func (l *Logins) Reject(ctx context.Context, server, token string) {
	if source, _, err := l.source(server); err == nil && source != nil {
		source.Reject(ctx, token)
	}
}

// source returns the tokens of a server, nil for one without a login.
func (l *Logins) source(id string) (source *oauth.Source, discovered bool, err error) {
	l.mu.Lock()
	source = l.sources[id]
	l.mu.Unlock()
	if source != nil {
		return source, strings.Contains(filepath.Base(source.Store.File), discoveredMark), nil
	}
	p, address, err := l.provider(id)
	if err != nil || p == nil {
		return nil, false, err
	}
	store, provider := l.store(id), *p
	if discovered = p.TokenURL == ""; discovered {
		known, err := l.loginAt(address)
		if err != nil {
			return nil, true, err
		}
		if known.Issuer == "" {
			return nil, true, nil
		}
		store, provider = l.storeOf(known.Issuer, known.Resource), known.provider(*p)
	}
	source = &oauth.Source{
		Name: LoginPrefix + id, Store: store, Seen: l.Seen(id),
		Provider: func() (oauth.Provider, error) {
			if discovered {
				provider.HTTP = l.http(context.Background(), address)
			}
			return provider, nil
		},
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sources == nil {
		l.sources = make(map[string]*oauth.Source)
	}
	l.sources[id] = source
	return source, discovered, nil
}

// Login logs in to a server and keeps the token. The challenge is that of a refused request; without one the server is asked.
func (l *Logins) Login(ctx context.Context, id string, user oauth.User, challenge *oauth.Challenge) error {
	p, address, err := l.provider(id)
	if err != nil {
		return err
	}
	if p == nil {
		return fault.New(fault.Config, "MCP server %s does not log in with OAuth", id).
			WithHint(`give it "headers" or "env" with a key in %s; an http server without "oauth": false and without a header Authorization can log in`, l.File.Path)
	}
	if p.TokenURL != "" {
		token, err := oauth.Login(ctx, *p, user)
		if err != nil {
			return err
		}
		return l.store(id).Save(token)
	}
	known, err := l.loginAt(address)
	if err != nil {
		return err
	}
	if challenge == nil {
		challenge = l.probe(ctx, address)
	}
	var granted []string
	if challenge.Narrow {
		granted = known.Scopes
	}
	found, err := oauth.Resource{
		Name: p.Name, URL: address, Challenge: *challenge, Set: *p, Granted: granted, HTTP: l.http(ctx, address), Registered: l.registration,
	}.Discover(ctx)
	if err != nil {
		return err
	}
	record := loginRecord{
		Issuer: found.Issuer, Resource: found.Resource, Scopes: found.Scopes, TokenURL: found.TokenURL,
		Registration: oauth.Registration{ClientID: found.ClientID, ClientSecret: found.ClientSecret, RedirectURI: found.RedirectURI, Basic: found.Basic, Expires: found.Expires},
	}
	if p.ClientID != "" {
		record.ClientSecret = "" // it stays where the user has it
	} else if err := oauth.SaveJSON(l.fileOf("client", found.Issuer, found.Resource), record); err != nil { // it counts also if the user does not agree
		return err
	}
	token, err := oauth.Login(ctx, found, user)
	if err != nil {
		return err
	}
	if err := errors.Join(l.storeOf(found.Issuer, found.Resource).Save(token), oauth.SaveJSON(l.fileOf("login", address), record)); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sources, id)
	return nil
}

// probe asks a server what it needs.
func (l *Logins) probe(ctx context.Context, address string) *oauth.Challenge {
	c := new(oauth.Challenge)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + protocol + `","capabilities":{},"clientInfo":{"name":"loki","version":"1"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(hello))
	if err != nil {
		return c
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := l.http(ctx, address).Do(req)
	if err != nil {
		return c // discovery says what is wrong
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		*c = oauth.ReadChallenge(resp.Header.Values("WWW-Authenticate"))
	}
	return c
}

func (l *Logins) http(ctx context.Context, address string) *http.Client {
	if l.HTTP == nil {
		return http.DefaultClient
	}
	return l.HTTP(ctx, address)
}

// loginRecord is what a login has found out, beside the tokens.
type loginRecord struct {
	Issuer   string   `json:"issuer"`
	Resource string   `json:"resource"`
	Scopes   []string `json:"scopes,omitempty"`
	TokenURL string   `json:"token_url"`
	oauth.Registration
}

// provider returns what renews tokens.
func (r loginRecord) provider(set oauth.Provider) oauth.Provider {
	set.TokenURL, set.Scopes, set.ClientID, set.ClientSecret = r.TokenURL, r.Scopes, r.ClientID, cmp.Or(set.ClientSecret, r.ClientSecret)
	set.Flow = cmp.Or(set.Flow, oauth.Browser)
	set.Discovered = oauth.Discovered{Issuer: r.Issuer, Resource: r.Resource, Basic: r.Basic}
	return set
}

// readRecord returns a record, a zero one if there is none.
func readRecord(file string) (r loginRecord, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil && json.Unmarshal(data, &r) != nil {
		err = fault.New(fault.Config, "%s is damaged", file).WithHint("remove it, and log in again")
	}
	return r, err
}

// loginAt returns the record of the login at an address.
func (l *Logins) loginAt(address string) (loginRecord, error) {
	return readRecord(l.fileOf("login", address))
}

// registration returns the registration that an earlier login has made.
func (l *Logins) registration(issuer, resource string) oauth.Registration {
	r, err := readRecord(l.fileOf("client", issuer, resource))
	if err != nil || !r.Expires.IsZero() && time.Now().After(r.Expires) {
		return oauth.Registration{}
	}
	return r.Registration
}

// discoveredMark is in the names of files of servers that say by themselves where tokens come from.
const discoveredMark = "mcp@"

// fileOf returns the file about what the texts identify, the first of which is an address.
func (l *Logins) fileOf(kind string, texts ...string) string {
	host := ""
	if u, err := url.Parse(texts[0]); err == nil {
		host = u.Hostname()
	}
	return filepath.Join(l.Dir, fmt.Sprintf("%s%s_%.8x_oauth_%s.json", discoveredMark, url.QueryEscape(host), sha256.Sum256([]byte(strings.Join(texts, "\n"))), kind))
}

// storeOf is the file with the tokens of an issuer for a resource.
func (l *Logins) storeOf(issuer, resource string) oauth.Store {
	return oauth.Store{File: l.fileOf("tokens", issuer, resource)}
}

// store is the file with the tokens of a server whose entry says where they come from. No other id has the same.
func (l *Logins) store(server string) oauth.Store {
	return oauth.StoreIn(l.Dir, "mcp_"+url.QueryEscape(server))
}

// provider returns where the tokens of a server come from, nil if it needs none, and the address of the server. One without a
// TokenURL has to be discovered.
func (l *Logins) provider(id string) (p *oauth.Provider, address string, err error) {
	server, ok := l.File.Lookup(id)
	if !ok {
		return nil, "", fault.New(fault.NotFound, "no MCP server is called %q", id)
	}
	set, err := server.Login(l.Secrets)
	if err != nil {
		return nil, "", err
	}
	if set != nil && set.TokenURL != "" {
		p := set.Or(oauth.Provider{Flow: oauth.Browser})
		p.Name = LoginPrefix + id
		return &p, "", p.Check()
	}
	if !server.discovers() {
		return nil, "", nil
	}
	r, err := server.resolve(&Options{Secrets: l.Secrets, Getenv: l.Getenv})
	if err != nil {
		return nil, "", err
	}
	if p = set; p == nil {
		p = new(oauth.Provider)
	}
	p.Name = LoginPrefix + id
	return p, r.URL, nil
}

// discovers reports whether a server may say by itself where its tokens come from.
func (s Server) discovers() bool {
	if s.Type == Stdio || s.NoOAuth || s.Err != nil {
		return false
	}
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return false
		}
	}
	return true
}
