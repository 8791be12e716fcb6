package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/web"
	"loki/internal/llm/event"
	"loki/internal/tool/mcp"
	"loki/internal/tool/mcp/oauth"
)

// User is the one who logs in to a client or a server.
type User struct {
	Asker   ask.Asker
	Note    func(text string)    // shows a text
	Browser func(address string) // opens an address, which the user has seen; nil opens none
}

var _ oauth.User = User{}

// Visit implements [oauth.User].
func (u User) Visit(address, code string) error {
	u.Note("Open this address to log in:\n\n  " + address + "\n")
	if code != "" {
		u.Note("The code to enter there: " + code + "\n")
	}
	if u.Browser != nil {
		u.Browser(address)
	}
	return nil
}

// Code implements [oauth.User].
func (u User) Code(ctx context.Context, flow oauth.Flow) (string, error) {
	text := "Paste the code that the page shows:"
	if flow == oauth.Browser {
		text = "If the browser is on another machine, paste the address at which it ends:"
	}
	return u.Asker.Ask(ctx, ask.Question{Kind: ask.Line, Text: text})
}

// SignIn has the user of a conversation or run log in to an MCP server that refuses requests, see [mcp.Options].
func (s *Service) SignIn(ctx context.Context, asker ask.Asker, server mcp.Server, challenge oauth.Challenge, refused string) error {
	o, err := s.current()
	if err != nil {
		return err
	}
	select { // several calls ask one after the other
	case o.signing <- struct{}{}:
		defer func() { <-o.signing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	isNew := func() bool {
		token, err := o.logins.Token(ctx, server.ID)
		return err == nil && token != "" && token != refused
	}
	if isNew() {
		return nil
	}
	host := server.URL
	if u, err := url.Parse(server.URL); err == nil && u.Host != "" {
		host = u.Host
	}
	name := mcp.LoginPrefix + server.ID
	wants := "wants you to log in"
	if challenge.Narrow {
		wants = "wants you to allow more: " + strings.Join(challenge.Scopes, " ")
	}
	failure := fault.New(fault.Config, "MCP server %s at %s %s", server.ID, host, wants).WithHint("loki --authenticate %s", name)
	if asker == nil {
		return failure
	}
	const yes, no = "log in", "no"
	answer, err := asker.Ask(ctx, ask.Question{
		Kind: ask.Select, Options: []string{yes, no}, Affirms: yes, Consent: true,
		Text: text.Visible(fmt.Sprintf("The MCP server %s at %s %s. Where no browser can be opened, first run in a terminal: loki --authenticate %s", server.ID, host, wants, name)),
	})
	switch {
	case errors.Is(err, ask.ErrUnavailable) && fault.CodeOf(err) != fault.Suspended:
		return failure
	case err != nil:
		return err
	case answer != yes:
		return failure
	case isNew():
		return nil
	case !ask.AtTerminal(asker):
		return failure
	}
	return o.logins.Login(ctx, server.ID, visitor{User{Asker: asker, Browser: s.Browser}, ctx}, &challenge)
}

// discoveryHTTP returns what connects with the addresses that an MCP server refers to: a server of the public internet refers to no other
// ones.
func (s *Service) discoveryHTTP(ctx context.Context, server string) *http.Client {
	allowed := "*"
	if u, err := url.Parse(server); err == nil && web.OnInternet(ctx, u.Hostname()) {
		allowed = s.Getenv("LOKI_FETCH_ALLOW")
	}
	return web.New(s.Getenv, web.ParseAllowed(allowed))
}

// visitor is a user at the terminal who logs in during a conversation or a run.
type visitor struct {
	User
	ctx context.Context
}

// Visit implements [oauth.User]. The address is in no question, since the lines of a question are broken.
func (v visitor) Visit(address, code string) error {
	text := "open this address to log in: " + address
	if code != "" {
		text += " The code to enter there: " + code
	}
	event.WarnText(v.ctx, text)
	v.Browser(address)
	return nil
}
