package app

import (
	"context"
	"maps"

	"loki/internal/agent"
	"loki/internal/base/web"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/knowledge/input"
)

// ServerConversations returns what begins conversations of a server's clients. Neither the file of messages, the log of prompts nor what was
// said last in the directory is theirs.
func (a *App) ServerConversations() *conversation.Service {
	s := a.Conversations()
	s.Save, s.PromptLog, s.MessagesFile, s.Recents = false, false, nil, session.Recents{}
	find := s.Agent
	s.Agent = func(ctx context.Context, name string, given map[string]string, from conversation.Caller) (conversation.Agent, error) {
		if err := agent.CheckGiven(given); err != nil {
			return conversation.Agent{}, err
		}
		who, err := find(ctx, name, given, from)
		who.Given = nil // which only the user at a terminal gives
		return who, err
	}
	return s
}

// SessionScopes returns the scopes of sessions: that of sessions without an agent, and one for each installed agent.
func (a *App) SessionScopes() ([]session.Scope, error) {
	names, err := a.Agents.Names()
	if err != nil {
		return nil, err
	}
	scopes := []session.Scope{""}
	for _, name := range names {
		scopes = append(scopes, session.Scope(name))
	}
	return scopes, nil
}

// ServedLoader returns what loads the attachments of a server's clients: without commands of theirs, and with
// addresses by the rules of the tools that fetch pages.
func (a *App) ServedLoader() *input.Loader {
	l := a.Loader()
	l.Shell.Path = ""
	l.Loaders = maps.Clone(l.Loaders)
	delete(l.Loaders, input.AddressLoader)
	l.HTTP = web.New(a.Setting, web.ParseAllowed(a.Setting("LOKI_FETCH_ALLOW")))
	return l
}
