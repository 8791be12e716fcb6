package app

import (
	"context"
	"maps"
	"time"

	"loki/internal/agent"
	"loki/internal/base/fault"
	"loki/internal/base/web"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/knowledge/input"
	"loki/internal/llm/catalog"
	"loki/internal/tool/mcp"
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

// ServedModel returns the model of a type that a server's client means by an id. One that answers from a file
// which its name names does not exist for clients: the files of the server are not theirs to choose. The error is
// that of [catalog.Catalog.Resolve].
func (a *App) ServedModel(id string, of catalog.Type) (catalog.Model, error) {
	m, err := a.Catalog.Resolve(id, of)
	if err == nil && m.NamesFile() {
		err = fault.New(fault.NotFound, "unknown %s model %q", of, id).ThatMisses("model").
			WithHint("rules come from the server's configuration only: %s:script", m.Client)
	}
	return m, err
}

// ServedLoader returns what loads the attachments of a server's clients: without commands of theirs, and with
// addresses by the rules of the tools that fetch pages.
func (a *App) ServedLoader() *input.Loader {
	l := a.Loader()
	l.Shell.Path = ""
	l.Loaders = maps.Clone(l.Loaders)
	delete(l.Loaders, input.AddressLoader)
	l.HTTP = web.New(a.setting, web.ParseAllowed(a.setting("LOKI_FETCH_ALLOW")))
	return l
}

// ReloadServers reads mcp.json again and returns the names of the servers in it. Conversations that are
// under way keep their connections, which drain closes once they are released, at the latest when its context ends.
// If the file is not valid it is an error, and nothing changes.
func (a *App) ReloadServers() (names []string, drain func(ctx context.Context) error, err error) {
	file, err := mcp.Read(a.Paths.MCPFile())
	if err != nil {
		return nil, nil, err
	}
	for _, s := range file.Servers {
		if s.Err != nil {
			return nil, nil, fault.Wrap(fault.Config, s.Err, "")
		}
		names = append(names, s.ID)
	}
	a.mu.Lock()
	old := a.servers
	a.servers = nil
	if old != nil {
		a.retired = a.retired.Plus(old.pool.Metrics())
	}
	a.mu.Unlock()
	drain = func(context.Context) error { return nil }
	if old != nil {
		drain = old.pool.Retire
	}
	_, err = a.mcpServers()
	return names, drain, err
}

// ServerPool is the state of the connections to MCP servers.
type ServerPool struct {
	mcp.Metrics     // since the program began
	Idle, InUse int // connections
	Alive       bool
}

// ServerPool returns the state of the connections to MCP servers. It makes none.
func (a *App) ServerPool() ServerPool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := ServerPool{Metrics: a.retired, Alive: true}
	if a.servers != nil {
		p.Metrics = p.Plus(a.servers.pool.Metrics())
		p.Idle, p.InUse, p.Alive = a.servers.pool.Size()
	}
	return p
}

// OnAcquire has f called with how long it took to get each connection to an MCP server. It is called before anything is
// asked for.
func (a *App) OnAcquire(f func(took time.Duration)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.acquired = f
}
