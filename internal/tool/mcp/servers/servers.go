// Package servers has the MCP servers of one start of the program: what mcp.json says, the connections, and the
// user who logs in to them.
package servers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/tool/mcp"
	"loki/internal/tool/mcp/oauth"
)

// Opened is what mcp.json says, and how its servers are connected.
type Opened struct {
	File    *mcp.File
	Logins  *mcp.Logins
	Options mcp.Options
	Cache   string // the directory of what servers have sent and models do not take
}

// Options configure a Service.
type Options struct {
	File    func() string            // returns the path of mcp.json
	Open    func() (Opened, error)   // reads it
	Aliases func() map[string]string // of servers
	Sandbox func() (*sandbox.Sandbox, error)
	Once    func(key, text string, show func(text string)) // shows a text once on this machine
	Getenv  func(string) string
	Browser func(address string) // opens an address
}

// Service has the servers. Its methods may be called from several goroutines.
type Service struct {
	Options
	Guests []mcp.Server // that all conversations have, in place of the configured ones with their ids; set before all else

	mu       sync.Mutex
	open     *open               // made on first use; guarded by mu
	retired  mcp.Metrics         // of connections before mcp.json was read again; guarded by mu
	acquired func(time.Duration) // see OnAcquire; guarded by mu
}

// open is a file that was read, with the connections to its servers.
type open struct {
	file    *mcp.File
	logins  *mcp.Logins
	pool    *mcp.Pool
	signing chan struct{} // holds an element while a user logs in
}

// current reads mcp.json, the first time that servers are needed. It starts none.
func (s *Service) current() (*open, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		return s.open, nil
	}
	o, err := s.Open()
	if err != nil {
		return nil, err
	}
	o.File.Add(s.Guests)
	o.Logins.HTTP = s.discoveryHTTP
	o.Options.Tokens, o.Options.SignIn, o.Options.Open, o.Options.Acquired = o.Logins, s.SignIn, s.Browser, s.acquired
	o.Options.Keep = func(kind string, data []byte) (string, error) { return keepBytes(o.Cache, kind, data) }
	o.Options.Slow = func(ctx context.Context, server, line string) {
		text := "the MCP server " + server + " is still starting"
		if line != "" {
			text += ": " + line
		}
		event.WarnText(ctx, text)
	}
	s.open = &open{file: o.File, logins: o.Logins, pool: mcp.NewPool(o.Options), signing: make(chan struct{}, 1)}
	return s.open, nil
}

// ServerFile returns what mcp.json says.
func (s *Service) ServerFile() (*mcp.File, error) {
	o, err := s.current()
	if err != nil {
		return nil, err
	}
	return o.file, nil
}

// Names returns what a setting of MCP servers may name.
func (s *Service) Names() ([]string, error) {
	file, err := s.ServerFile()
	if err != nil {
		return nil, err
	}
	return file.Names(s.Aliases()), nil
}

// stopGrace is how long MCP servers may take to end when the program does.
const stopGrace = 3 * time.Second

// Close ends the connections. It waits until that is done.
func (s *Service) Close() error {
	s.mu.Lock()
	o := s.open
	s.open = nil
	s.mu.Unlock()
	if o == nil {
		return nil
	}
	return o.pool.Shutdown(stopGrace)
}

// Choice picks servers.
type Choice func(f *mcp.File, aliases map[string]string) mcp.Selection

// ChooseNames returns the choice of a setting, see [mcp.File.Select].
func ChooseNames(setting string) Choice {
	return func(f *mcp.File, aliases map[string]string) mcp.Selection { return f.Select(setting, aliases) }
}

// ChooseList is ChooseNames for a setting that is a list.
func ChooseList(names []string) Choice {
	return func(f *mcp.File, aliases map[string]string) mcp.Selection { return f.SelectList(names, aliases) }
}

// ChooseOffering returns the choice of the servers that may have a tool.
func ChooseOffering(name string) Choice {
	return func(f *mcp.File, _ map[string]string) mcp.Selection {
		sel := f.Select(mcp.All, nil)
		sel.Servers = slices.DeleteFunc(sel.Servers, func(s mcp.Server) bool { return !s.MayOffer(name) })
		return sel
	}
}

// Scope returns the servers that pick picks, nil if there are none. What is wrong
// with the choice, and with the file, is reported through events, once in a conversation.
// The caller closes it.
func (s *Service) Scope(ctx context.Context, events event.Scope, asker ask.Asker, pick Choice) (*mcp.Scope, error) {
	o, err := s.current()
	if err != nil {
		return nil, err
	}
	chosen := pick(o.file, s.Aliases())
	for _, g := range s.Guests {
		if of, ok := o.file.Lookup(g.ID); ok && !slices.ContainsFunc(chosen.Servers, func(s mcp.Server) bool { return s.ID == g.ID }) {
			chosen.Servers = append(chosen.Servers, of)
		}
	}
	texts := chosen.Warnings
	for _, w := range o.file.Warnings {
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
	s.noteUnconfined(ctx, events, chosen.Servers)
	return o.pool.Scope(chosen.Servers, mcp.ScopeOptions{Asker: asker}), nil
}

// Tool returns the tool called name among those of servers, none if there is no such tool.
func Tool(ctx context.Context, scope mcp.Servers, name string) ([]tool.Tool, error) {
	if err := scope.Connect(ctx); err != nil { // what a server offers is known then
		return nil, fault.Wrap(fault.Tool, err, "tool %s", name)
	}
	offered, err := scope.Tools(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Tool, err, "tool %s", name)
	}
	return slices.DeleteFunc(offered, func(t tool.Tool) bool { return t.Declaration().Name != name }), nil
}

// noteUnconfined tells the user, once for each server, that a program has no level of the sandbox.
func (s *Service) noteUnconfined(ctx context.Context, events event.Scope, servers []mcp.Server) {
	for _, of := range servers {
		if of.Type != mcp.Stdio || of.Sandbox.Level != "" || of.Err != nil {
			continue
		}
		if box, err := s.Sandbox(); err != nil || !box.Support().Files {
			return
		}
		text := fmt.Sprintf(`the MCP server %s runs without a sandbox until %s says what it may do: "sandbox": "read", "write", "network" or "full"`, of.ID, s.File())
		key := fmt.Sprintf("mcp sandbox %s %.6x", of.ID, sha256.Sum256(fmt.Append(nil, of.Command, of.Args)))
		s.Once(key, text, func(text string) {
			_ = events.Emit(ctx, event.Warning{Text: text}) // the server works without it
		})
	}
}

// Try starts an MCP server, or connects to it, without a question to the user.
func (s *Service) Try(ctx context.Context, server mcp.Server) error {
	o, err := s.current()
	if err != nil {
		return err
	}
	scope := o.pool.Scope([]mcp.Server{server}, mcp.ScopeOptions{})
	defer scope.Close()
	return scope.Connect(ctx)
}

// Login logs in to the MCP server called name, and keeps the token.
func (s *Service) Login(ctx context.Context, name string, user oauth.User) error {
	o, err := s.current()
	if err != nil {
		return err
	}
	return o.logins.Login(ctx, name, user, nil)
}

// Reload reads mcp.json again and returns the names of the servers in it. Conversations that are
// under way keep their connections, which drain closes once they are released, at the latest when its context ends.
// If the file is not valid it is an error, and nothing changes.
func (s *Service) Reload() (names []string, drain func(ctx context.Context) error, err error) {
	file, err := mcp.Read(s.File())
	if err != nil {
		return nil, nil, err
	}
	for _, of := range file.Servers {
		if of.Err != nil {
			return nil, nil, fault.Wrap(fault.Config, of.Err, "")
		}
		names = append(names, of.ID)
	}
	s.mu.Lock()
	old := s.open
	s.open = nil
	if old != nil {
		s.retired = s.retired.Plus(old.pool.Metrics())
	}
	s.mu.Unlock()
	drain = func(context.Context) error { return nil }
	if old != nil {
		drain = old.pool.Retire
	}
	_, err = s.current()
	return names, drain, err
}

// Pool is the state of the connections to MCP servers.
type Pool struct {
	mcp.Metrics     // since the program began
	Idle, InUse int // connections
	Alive       bool
}

// Pool returns the state of the connections to MCP servers. It makes none.
func (s *Service) Pool() Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Pool{Metrics: s.retired, Alive: true}
	if s.open != nil {
		p.Metrics = p.Plus(s.open.pool.Metrics())
		p.Idle, p.InUse, p.Alive = s.open.pool.Size()
	}
	return p
}

// OnAcquire has f called with how long it took to get each connection to an MCP server. It is called before anything is
// asked for.
func (s *Service) OnAcquire(f func(took time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acquired = f
}
