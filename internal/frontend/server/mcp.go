package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"loki/internal/frontend/server/mcpserver"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
	"loki/internal/service/auth/audit"
	"loki/internal/setup/config"
	"loki/internal/workflow/run/notice"
)

const (
	mcpPath      = "/mcp"
	resourcePath = "/.well-known/oauth-protected-resource"
)

// offerMCP adds the endpoint of MCP clients, if the configuration wants it.
func (s *Server) offerMCP(ctx context.Context, access auth.Access, enter func(context.Context, auth.Identity, func() (string, error)) (string, error)) error {
	if !s.o.App.Config.MCPServer.Enabled {
		return nil
	}
	pages := notice.Source{Links: s.hosted.Links, Address: s.settings.Load().publicURL(s.listener.Addr())}
	offered, err := mcpserver.NewHTTP(mcpserver.HTTPOptions{App: s.o.App, Runs: s.runs, Access: access, Enter: enter, Link: pages.Link, Warn: s.o.Warn})
	if err != nil {
		return err
	}
	s.offered = offered
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		op := rest.Operation{Method: method, Path: mcpPath, Summary: "Serve an MCP client", Tag: "MCP", Watch: true, Large: true}
		s.api.Handle(op, s.serveMCP)
	}
	for _, path := range []string{resourcePath, resourcePath + mcpPath} {
		op := rest.Operation{Method: http.MethodGet, Path: path, Summary: "Say where tokens for MCP come from", Tag: "MCP", Public: true}
		rest.Register(s.api, op, s.protectedResource)
	}
	s.stores.background.Go(func() { offered.Watch(ctx) }) // ends with ctx
	return nil
}

// serveMCP serves a request of an MCP client. Pages of other sites may not send one, with a key or without.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if origin := r.Header.Get("Origin"); origin != "" && !allowsOrigin(s.settings.Load(), origin) {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
			return rest.Forbidden("pages of %s may not use this server", origin).WithHint("the server's configuration lists the origins that may: api.cors.allowed_origins")
		}
	}
	body := rest.Body(ctx)
	switch tool, agent := mcpserver.ToolOf(body); tool {
	case "", mcpserver.ToolRun, mcpserver.ToolSearch:
	case mcpserver.ToolAnswer:
		rest.Acts(ctx, audit.RunAnswer)
	case mcpserver.ToolCancel:
		rest.Acts(ctx, audit.RunCancel)
	default:
		rest.Acts(ctx, audit.RunStart)
		rest.AboutAgent(ctx, agent)
	}
	err := s.offered.Serve(w, r, mcpserver.Call{Who: rest.Subject(ctx), ID: rest.RequestID(ctx), Body: body, About: func(run string) { rest.AboutRun(ctx, run) }})
	if errors.Is(err, mcpserver.ErrFull) {
		return &rest.Error{Status: http.StatusServiceUnavailable, Code: "overloaded", Message: err.Error(), Err: err}
	}
	return err
}

// protectedResource says where tokens for the endpoint of MCP clients come from (RFC 9728).
func (s *Server) protectedResource(context.Context, *struct{}) (*rest.Reply, error) {
	set := s.settings.Load()
	if set.Auth.Mode != config.AuthJWT || set.Auth.JWT == nil {
		return nil, rest.NotFound("endpoint", "GET "+resourcePath).WithHint("this server takes no tokens of an issuer")
	}
	return rest.JSON(http.StatusOK, map[string]any{
		"resource": set.publicURL(s.listener.Addr()) + mcpPath, "authorization_servers": []string{set.Auth.JWT.Issuer}, "bearer_methods_supported": []string{"header"},
		"scopes_supported": auth.ScopeNames(),
	}), nil
}

// resourceMetadata returns the address that a client without a token is referred to, empty for none.
func (s *Server) resourceMetadata(r *http.Request) string {
	set := s.settings.Load()
	if r.URL.Path != mcpPath || set.Auth.Mode != config.AuthJWT || s.offered == nil {
		return ""
	}
	return set.publicURL(s.listener.Addr()) + resourcePath + mcpPath
}
