package mcp

import (
	"context"
	"net/url"
	"sync"

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
	Seen    func(server string) func(*oauth2.Token) // returns what is called with each token of a server

	mu      sync.Mutex
	sources map[string]*oauth.Source
}

// Token implements [TokenSource].
func (l *Logins) Token(ctx context.Context, server string) (string, error) {
	source, err := l.source(server)
	if err != nil || source == nil {
		return "", err
	}
	return source.Token(ctx)
}

// Reject implements [Rejecter].
func (l *Logins) Reject(ctx context.Context, server, token string) {
	if source, err := l.source(server); err == nil && source != nil {
		source.Reject(ctx, token)
	}
}

// source returns the tokens of a server, nil for one without a login.
func (l *Logins) source(server string) (*oauth.Source, error) {
	p, err := l.provider(server)
	if err != nil || p == nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	source := l.sources[server]
	if source == nil {
		source = &oauth.Source{
			Name: LoginPrefix + server, Store: l.store(server), Seen: l.Seen(server),
			Provider: func() (oauth.Provider, error) { return *p, nil },
		}
		if l.sources == nil {
			l.sources = make(map[string]*oauth.Source)
		}
		l.sources[server] = source
	}
	return source, nil
}

// Login logs in to a server and keeps the token.
func (l *Logins) Login(ctx context.Context, server string, user oauth.User) error {
	p, err := l.provider(server)
	if err != nil {
		return err
	}
	if p == nil {
		return fault.New(fault.Config, "MCP server %s does not log in with OAuth", server).WithHint("give it oauth settings in %s", l.File.Path)
	}
	token, err := oauth.Login(ctx, *p, user)
	if err != nil {
		return err
	}
	return l.store(server).Save(token)
}

// store is the file with the tokens of a server. No other id has the same.
func (l *Logins) store(server string) oauth.Store {
	return oauth.StoreIn(l.Dir, "mcp_"+url.QueryEscape(server))
}

// provider returns where the tokens of a server come from, nil if it needs none.
func (l *Logins) provider(id string) (*oauth.Provider, error) {
	server, ok := l.File.Lookup(id)
	if !ok {
		return nil, fault.New(fault.NotFound, "no MCP server is called %q", id)
	}
	set, err := server.Login(l.Secrets)
	if set == nil || err != nil {
		return nil, err
	}
	p := set.Or(oauth.Provider{Flow: oauth.Browser})
	p.Name = LoginPrefix + id
	return &p, p.Check()
}
