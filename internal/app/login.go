package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/web"
	"loki/internal/llm/event"
	"loki/internal/tool/mcp"
	"loki/internal/tool/mcp/oauth"
)

// Login is the user who logs in to a client.
type Login struct {
	Asker   ask.Asker
	Note    func(text string)    // shows a text
	Browser func(address string) // opens an address, which the user has seen; nil opens none
}

var _ oauth.User = Login{}

// Visit implements [oauth.User].
func (l Login) Visit(address, code string) error {
	l.Note("Open this address to log in:\n\n  " + address + "\n")
	if code != "" {
		l.Note("The code to enter there: " + code + "\n")
	}
	if l.Browser != nil {
		l.Browser(address)
	}
	return nil
}

// Code implements [oauth.User].
func (l Login) Code(ctx context.Context, flow oauth.Flow) (string, error) {
	text := "Paste the code that the page shows:"
	if flow == oauth.Browser {
		text = "If the browser is on another machine, paste the address at which it ends:"
	}
	return l.Asker.Ask(ctx, ask.Question{Kind: ask.Line, Text: text})
}

// signIn has the user of a conversation or run log in to an MCP server that refuses requests, see [mcp.Options].
func (a *App) signIn(ctx context.Context, asker ask.Asker, server mcp.Server, challenge oauth.Challenge, refused string) error {
	s, err := a.mcpServers()
	if err != nil {
		return err
	}
	select { // several calls ask one after the other
	case s.signing <- struct{}{}:
		defer func() { <-s.signing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	isNew := func() bool {
		token, err := s.logins.Token(ctx, server.ID)
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
	return s.logins.Login(ctx, server.ID, visitor{Login{Asker: asker, Browser: a.OpenBrowser}, ctx}, &challenge)
}

// discoveryHTTP returns what connects with the addresses that an MCP server refers to: a server of the public internet refers to no other
// ones.
func (a *App) discoveryHTTP(ctx context.Context, server string) *http.Client {
	allowed := "*"
	if u, err := url.Parse(server); err == nil && web.OnInternet(ctx, u.Hostname()) {
		allowed = a.setting("LOKI_FETCH_ALLOW")
	}
	return web.New(a.setting, web.ParseAllowed(allowed))
}

// visitor is a user at the terminal who logs in during a conversation or a run.
type visitor struct {
	Login
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

// LoginClient returns the name of the only client that logs in with OAuth, or of the one that
// the user chooses. Without one it is an error with code Config.
func (a *App) LoginClient(ctx context.Context, asker ask.Asker) (string, error) {
	var names []string
	for _, c := range a.Config.Clients {
		if auth, err := c.Field(a.Env, "auth"); err == nil && auth == "oauth" {
			names = append(names, c.Name)
		}
	}
	switch len(names) {
	case 0:
		return "", fault.New(fault.Config, "no client logs in with OAuth").
			WithHint("set auth: oauth and what it needs for a client of type claude, gemini, openai, openai-compatible or azure-openai in config.yaml; an MCP server is named as mcp:NAME")
	case 1:
		return names[0], nil
	}
	return asker.Ask(ctx, ask.Question{Kind: ask.Select, Text: "Log in to which client?", Options: names})
}

// OpenBrowser tries to open an address. A failure is not reported.
func (a *App) OpenBrowser(address string) {
	var opener *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		opener = exec.Command("open", address)
	case "windows":
		opener = exec.Command("rundll32", "url.dll,FileProtocolHandler", address)
	default:
		opener = exec.Command("xdg-open", address)
	}
	opener.Env = a.programChild().Environ
	if dir, err := a.ownDir("browser"); err == nil {
		opener.Dir = dir
	}
	if opener.Start() == nil {
		go func() { _ = opener.Wait() }() // it ends with the browser, perhaps after this program
	}
}
