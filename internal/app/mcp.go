package app

import (
	"context"
	"path/filepath"
	"time"

	"loki/internal/agent/workspace/ground"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/event"
	"loki/internal/llm/event/logging"
	"loki/internal/tool/mcp"
	"loki/internal/tool/mcp/servers"
)

// servedIdle is how long a server keeps the connections to MCP servers that are not in use, unless mcp_pool says it.
const servedIdle = 5 * time.Minute

// newServers returns the MCP servers of mcp.json, which is not read yet.
func (a *App) newServers() *servers.Service {
	return &servers.Service{Options: servers.Options{
		File: func() string { return a.Paths.MCPFile() }, Open: a.openServers, Aliases: a.Config.MappingMCPServers.Map,
		Sandbox: a.Sandbox, Once: a.Notices.Once, Getenv: a.Setting, Browser: a.OpenBrowser,
	}}
}

// openServers reads mcp.json.
func (a *App) openServers() (o servers.Opened, err error) {
	if o.File, err = mcp.Read(a.Paths.MCPFile()); err != nil {
		return o, err
	}
	dir, err := ground.WorkingDir()
	if err != nil {
		return o, fault.Wrap(fault.Failure, err, "the working directory")
	}
	for name, secret := range o.File.Credentials(a.Env.Lookup) {
		a.used.Add(name, secret)
	}
	pool := a.Config.MCPPool
	if a.host != nil && !pool.HasIdleTimeout {
		pool.IdleTimeout = servedIdle
	}
	o.Logins = &mcp.Logins{File: o.File, Dir: a.Paths.OAuthDir, Secrets: a.lookupSecret, Getenv: a.Env.Lookup, Seen: a.keepTokens}
	o.Cache = filepath.Join(a.Paths.CacheDir, "mcp")
	o.Options = mcp.Options{
		Version: Version, Dir: dir, Own: a.OwnDir, Kept: sandbox.KeptPlaces(dir), Admit: a.Trust.Admit,
		Child: a.Child(), Sandbox: a.Sandbox, Getenv: a.Env.Lookup, Secrets: a.lookupSecret, Stderr: a.programLog(),
		Pool: pool, CallTimeout: a.Config.ToolTimeout,
	}
	return o, nil
}

// programLog is the log file for lines of other programs.
func (a *App) programLog() *logging.Lines {
	return &logging.Lines{Path: a.Paths.LogFile, Hide: a.Hide, Off: a.Looking || a.Silent()}
}

// serverScope returns the servers that pick picks, nil if there are none or they are not supported, see [servers.Service.Scope].
func (a *App) serverScope(ctx context.Context, events event.Scope, asker ask.Asker, supported bool, pick servers.Choice) (mcp.Servers, error) {
	if a.Player != nil {
		return a.Player.Servers(), nil
	}
	if !supported {
		return nil, nil
	}
	scope, err := a.MCP.Scope(ctx, events, asker, pick)
	if scope == nil || err != nil {
		return nil, err
	}
	if a.Recorder != nil {
		return a.Recorder.Servers(scope), nil
	}
	return scope, nil
}

// ServersIn returns the ids of the servers that take code from a directory when they are started there.
func (a *App) ServersIn(dir string) []string {
	file, err := mcp.Read(a.Paths.MCPFile())
	if err != nil {
		return nil
	}
	return file.TakingCode(&mcp.Options{Dir: dir, Own: a.OwnDir, Kept: sandbox.KeptPlaces(dir), Child: a.Child(), Getenv: a.Env.Lookup})
}
