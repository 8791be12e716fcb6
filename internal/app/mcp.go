package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/event"
	"loki/internal/llm/event/logging"
	"loki/internal/tool/mcp"
)

// servers is what is known of MCP servers: what mcp.json says, and the connections.
type servers struct {
	file   *mcp.File
	logins *mcp.Logins
	pool   *mcp.Pool

	signing chan struct{} // holds an element while a user logs in
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
	file.Add(a.guest.Servers)
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
	s := &servers{file: file, signing: make(chan struct{}, 1), logins: &mcp.Logins{
		File: file, Dir: a.Paths.OAuthDir, Secrets: a.lookupSecret, Getenv: a.Env.Lookup, Seen: a.keepTokens, HTTP: a.discoveryHTTP,
	}}
	s.pool = mcp.NewPool(mcp.Options{
		Version: Version, Dir: dir, Own: a.ownDir, Kept: sandbox.KeptPlaces(dir), Admit: a.Trust.Admit,
		Child: a.Child(), Sandbox: a.Sandbox, Getenv: a.Env.Lookup, Secrets: a.lookupSecret, Tokens: s.logins, SignIn: a.signIn, Keep: a.keepBytes, Open: a.OpenBrowser,
		Stderr: &logging.Lines{Path: a.Paths.LogFile, Hide: a.Hide, Off: a.looking || logging.ParseLevel(a.readLogSettings().level) == logging.LevelOff},
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

// keptBytes is how long files with what MCP servers have sent are kept.
const keptBytes = 7 * 24 * time.Hour

// keepBytes keeps what an MCP server has sent and models do not take. The name of the file is made of its content.
func (a *App) keepBytes(kind string, data []byte) (string, error) {
	dir := filepath.Join(a.Paths.CacheDir, "mcp")
	entries, _ := os.ReadDir(dir) // none before the first one
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keptBytes {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next time
		}
	}
	extension := ".bin"
	if kind, _, err := mime.ParseMediaType(kind); err == nil {
		if known, err := mime.ExtensionsByType(kind); err == nil && len(known) > 0 {
			extension = known[0]
		}
	}
	file := filepath.Join(dir, fmt.Sprintf("%.8x%s", sha256.Sum256(data), extension))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return file, atomicfile.Write(file, data, atomicfile.Options{Mode: atomicfile.Private})
}

// ServerFile returns what mcp.json says.
func (a *App) ServerFile() (*mcp.File, error) {
	s, err := a.mcpServers()
	if err != nil {
		return nil, err
	}
	return s.file, nil
}

// serverNames returns what a setting of MCP servers may name.
func (a *App) serverNames() ([]string, error) {
	file, err := a.ServerFile()
	if err != nil {
		return nil, err
	}
	return file.Names(a.Config.MappingMCPServers.Map()), nil
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
	a.governor.Close()
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
func (a *App) serverScope(ctx context.Context, events event.Scope, asker ask.Asker, supported bool, pick choice) (mcp.Servers, error) {
	if a.player != nil {
		return a.player.Servers(), nil
	}
	if !supported {
		return nil, nil
	}
	s, err := a.mcpServers()
	if err != nil {
		return nil, err
	}
	chosen := pick(s.file, a.Config.MappingMCPServers.Map())
	for _, g := range a.guest.Servers {
		if of, ok := s.file.Lookup(g.ID); ok && !slices.ContainsFunc(chosen.Servers, func(s mcp.Server) bool { return s.ID == g.ID }) {
			chosen.Servers = append(chosen.Servers, of)
		}
	}
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
		return a.recorder.Servers(scope), nil
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
	return file.TakingCode(&mcp.Options{Dir: dir, Own: a.ownDir, Kept: sandbox.KeptPlaces(dir), Child: a.Child(), Getenv: a.Env.Lookup})
}
