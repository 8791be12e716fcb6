package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/atomicfile"
	"loki/internal/base/fault"
	"loki/internal/llm/event"
	"loki/internal/llm/logging"
	"loki/internal/tool/mcp"
	"loki/internal/tool/mcp/oauth"
)

// servers is what is known of MCP servers: what mcp.json says, and the connections.
type servers struct {
	file *mcp.File
	pool *mcp.Pool
}

// stopGrace is how long MCP servers may take to end when the program does.
const stopGrace = 3 * time.Second

// mcpServers reads mcp.json, the first time that servers are needed. It starts none.
func (a *App) mcpServers() (*servers, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers != nil {
		return a.servers, nil
	}
	file, err := mcp.Read(a.Paths.MCPFile())
	if err != nil {
		return nil, err
	}
	dir, err := workingDir()
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "the working directory")
	}
	for name, secret := range file.Credentials(a.Env.Lookup) {
		a.used.Add(name, secret)
	}
	pool := a.Config.MCPPool
	if a.host != nil && !pool.HasIdleTimeout {
		pool.IdleTimeout = servedIdle
	}
	s := &servers{file: file}
	s.pool = mcp.NewPool(mcp.Options{
		Version: Version, Dir: dir, Own: a.ownDir, Kept: keptPlaces(dir), Admit: a.Trust.Admit,
		Child: a.Child(), Sandbox: a.Sandbox, Getenv: a.Env.Lookup, Secrets: a.lookupSecret, Tokens: &serverTokens{app: a, file: file},
		Stderr: &lateFile{path: a.Paths.LogFile, hide: a.Hide, off: logging.ParseLevel(a.logging().level) == logging.LevelOff},
		Slow: func(ctx context.Context, server, line string) {
			text := "the MCP server " + server + " is still starting"
			if line != "" {
				text += ": " + line
			}
			event.WarnText(ctx, text)
		},
		Pool: pool, CallTimeout: a.Config.ToolTimeout, Acquired: a.acquired,
	})
	a.servers = s
	return s, nil
}

// serverFile returns what mcp.json says.
func (a *App) serverFile() (*mcp.File, error) {
	s, err := a.mcpServers()
	if err != nil {
		return nil, err
	}
	return s.file, nil
}

// servedIdle is how long a server keeps the connections to MCP servers that are not in use, unless mcp_pool says it.
const servedIdle = 5 * time.Minute

// Close ends what the app has started. It waits until that is done.
func (a *App) Close() error {
	a.mu.Lock()
	s, staged := a.servers, a.staged
	a.servers, a.staged = nil, ""
	a.mu.Unlock()
	err := errors.Join(a.closeParent(), a.bases.Close())
	if staged != "" {
		err = errors.Join(err, os.RemoveAll(staged))
	}
	if s != nil {
		err = errors.Join(s.pool.Shutdown(stopGrace), err)
	}
	a.closeDatabase()
	return err
}

// choice picks servers.
type choice func(f *mcp.File, aliases map[string]string) mcp.Selection

// chooseNames returns the choice of a setting, see [mcp.File.Select].
func chooseNames(setting string) choice {
	return func(f *mcp.File, aliases map[string]string) mcp.Selection { return f.Select(setting, aliases) }
}

// serverScope returns the servers that pick picks, nil if there are none or they are not supported. What is wrong
// with the choice, and with the file, is reported through events, once in a conversation.
// The caller closes it.
func (a *App) serverScope(ctx context.Context, events event.Scope, asker ask.Asker, supported bool, pick choice) (serverTools, error) {
	if a.player != nil {
		return playedServers(a.player.Cassette.Servers), nil
	}
	if !supported {
		return nil, nil
	}
	s, err := a.mcpServers()
	if err != nil {
		return nil, err
	}
	chosen := pick(s.file, a.Config.MappingMCPServers.Map())
	texts := chosen.Warnings
	for _, w := range s.file.Warnings {
		texts = append(texts, w.String())
	}
	for _, text := range texts {
		if err := events.Emit(ctx, event.Warning{Text: text, Once: true}); err != nil {
			return nil, err
		}
	}
	if len(chosen.Servers) == 0 {
		return nil, nil
	}
	a.noteUnconfined(ctx, events, chosen.Servers)
	scope := s.pool.Scope(chosen.Servers, mcp.ScopeOptions{Asker: asker})
	if a.recorder != nil {
		return recordedServers{scope, a.recorder}, nil
	}
	return scope, nil
}

// noteUnconfined tells the user, once for each server, that a program has no level of the sandbox.
func (a *App) noteUnconfined(ctx context.Context, events event.Scope, servers []mcp.Server) {
	for _, s := range servers {
		if s.Type != mcp.Stdio || s.Sandbox.Level != "" || s.Err != nil {
			continue
		}
		if box, err := a.Sandbox(); err != nil || !box.Support().Files {
			return
		}
		text := fmt.Sprintf(`the MCP server %s runs without a sandbox until %s says what it may do: "sandbox": "read", "write", "network" or "full"`, s.ID, a.Paths.MCPFile())
		key := fmt.Sprintf("mcp sandbox %s %.6x", s.ID, sha256.Sum256(fmt.Append(nil, s.Command, s.Args)))
		a.noticeOnce(key, text, func(text string) {
			_ = events.Emit(ctx, event.Warning{Text: text}) // the server works without it
		})
	}
}

// ServersIn returns the ids of the servers that take code from a directory when they are started there.
func (a *App) ServersIn(dir string) []string {
	file, err := mcp.Read(a.Paths.MCPFile())
	if err != nil {
		return nil
	}
	return file.TakingCode(&mcp.Options{Dir: dir, Own: a.ownDir, Kept: keptPlaces(dir), Child: a.Child(), Getenv: a.Env.Lookup})
}

// serverTokens are the OAuth tokens of remote servers.
type serverTokens struct {
	app  *App
	file *mcp.File

	mu      sync.Mutex
	sources map[string]*oauth.Source
}

// Token implements [mcp.TokenSource].
func (t *serverTokens) Token(ctx context.Context, server string) (string, error) {
	p, err := t.app.serverLogin(t.file, server)
	if err != nil || p == nil {
		return "", err
	}
	t.mu.Lock()
	source := t.sources[server]
	if source == nil {
		source = &oauth.Source{
			Name: serverPrefix + server, Store: t.app.serverTokenStore(server), Seen: t.app.keepTokens(server),
			Provider: func() (oauth.Provider, error) { return *p, nil },
		}
		if t.sources == nil {
			t.sources = make(map[string]*oauth.Source)
		}
		t.sources[server] = source
	}
	t.mu.Unlock()
	return source.Token(ctx)
}

// serverPrefix distinguishes an MCP server from a client in the name of a login.
const serverPrefix = "mcp:"

// serverTokenStore is the file with the tokens of a server. No other id has the same.
func (a *App) serverTokenStore(server string) oauth.Store {
	return oauth.StoreIn(a.Paths.OAuthDir, "mcp_"+url.QueryEscape(server))
}

// serverLogin returns where the tokens of a server come from, nil if it needs none.
func (a *App) serverLogin(file *mcp.File, id string) (*oauth.Provider, error) {
	server, ok := file.Lookup(id)
	if !ok {
		return nil, fault.New(fault.NotFound, "no MCP server is called %q", id)
	}
	set, err := server.Login(a.lookupSecret)
	if set == nil || err != nil {
		return nil, err
	}
	p := set.Or(oauth.Provider{Flow: oauth.Browser})
	p.Name = serverPrefix + id
	return &p, p.Check()
}

// lateFile is a file that is opened for appending when there is something to write. Each write
// is of whole lines.
type lateFile struct {
	path string
	hide func(text string) string
	off  bool // nothing is written

	mu   sync.Mutex
	file *os.File
}

// Write implements io.Writer. What cannot be written is dropped: it is for the log.
func (f *lateFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off {
		return len(p), nil
	}
	if f.file == nil {
		file, err := atomicfile.OpenAppend(f.path)
		if err != nil {
			return 0, err
		}
		f.file = file
	}
	if _, err := f.file.WriteString(f.hide(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
