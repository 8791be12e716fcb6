package app

import (
	"context"
	"errors"
	"slices"

	"loki/internal/conversation/session"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/mcp"
)

// Guest is what the client of a conversation, an editor, adds to an App. The zero value adds nothing.
type Guest struct {
	Judge   func(tool.Judge) tool.Judge // returns what decides about calls, around the judge of the App
	Servers []mcp.Server                // that all conversations have, in place of the configured ones with their ids
	Dirs    []string                    // further directories in which programs work, absolute
	Client  builtin.Client
	Looks   func() bool // reports whether programs that are agents change nothing now; nil for never
}

// Receive gives an App its guest. It is called before anything else runs.
func (a *App) Receive(g Guest) {
	a.guest, a.MCP.Guests = g, g.Servers
	cfg := *a.Config
	cfg.Sandbox.Read, cfg.Sandbox.Write = slices.Concat(cfg.Sandbox.Read, g.Dirs), slices.Concat(cfg.Sandbox.Write, g.Dirs)
	a.Config, a.Ground.Config = &cfg, &cfg
}

// StoredSession is a stored session, and whose it is.
type StoredSession struct {
	session.Meta
	Scope session.Scope
}

// StoredSessions returns the stored sessions of all scopes.
func (a *App) StoredSessions(ctx context.Context) (all []StoredSession, err error) {
	store, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	scopes, err := a.SessionScopes()
	if err != nil {
		return nil, err
	}
	for _, scope := range scopes {
		metas, err := store.List(ctx, scope)
		if err != nil {
			return nil, err
		}
		for _, m := range metas {
			all = append(all, StoredSession{m, scope})
		}
	}
	return all, nil
}

// FindSession returns the stored session with an id, whatever its scope is. The error is a [session.ErrNotFound] if there is none.
func (a *App) FindSession(ctx context.Context, id session.ID) (*session.Session, error) {
	store, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	scopes, err := a.SessionScopes()
	if err != nil {
		return nil, err
	}
	for _, scope := range scopes {
		if found, err := store.Open(ctx, scope, id); !errors.Is(err, session.ErrNotFound) {
			return found, err
		}
	}
	return nil, session.NotFound(id)
}
