package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/llm/event"
	"loki/internal/tool"
)

// ScopeOptions configures a [Scope].
type ScopeOptions struct {
	// Asker puts the questions of servers to the user; nil declines them.
	Asker ask.Asker
	// Progress gets the progress of calls, perhaps from several goroutines; may be nil.
	Progress func(Progress)
}

// Scope is the servers of one conversation or agent. It gets each connection from the pool
// on first use, and a new one if the connection is broken. Its methods may be called from
// several goroutines.
type Scope struct {
	pool  *Pool
	opts  ScopeOptions
	links []*connection // in the order of the servers
}

// Servers are the MCP servers of a conversation or an agent. It is a [Scope], or one of a cassette.
type Servers interface {
	Connect(ctx context.Context) error
	Tools(ctx context.Context) ([]tool.Tool, error)
	ToolsOf(ctx context.Context, ids []string) ([]tool.Tool, error)
	More(ctx context.Context, ids []string) []tool.Tool
	Tool(ctx context.Context, server, name string) (tool.Bound, error)
	Close()
}

// Scope returns a scope with servers, as [File.Select] returned them. Nothing is started.
// The caller has to close it.
func (p *Pool) Scope(servers []Server, o ScopeOptions) *Scope {
	s := &Scope{pool: p, opts: o}
	for _, server := range servers {
		s.links = append(s.links, &connection{scope: s, server: server, getting: make(chan struct{}, 1)})
	}
	return s
}

// Close releases the connections. Running calls continue until they or their
// connections end.
func (s *Scope) Close() {
	for _, l := range s.links {
		l.close()
	}
}

// Connect gets the connections to all servers, a few at a time, and returns the errors,
// joined. It is optional: for callers that prefer to wait now, or to know at once which
// servers work.
func (s *Scope) Connect(ctx context.Context) error { return s.connect(ctx, s.links) }

// ConnectVisibly is Connect with events about it. A server that does not work is a warning.
func (s *Scope) ConnectVisibly(ctx context.Context, events event.Scope) error {
	missing := s.Unconnected()
	if len(missing) == 0 {
		return s.Connect(ctx)
	}
	if err := events.Emit(ctx, event.ServersStarting{Servers: missing}); err != nil {
		return err
	}
	failure := s.Connect(ctx)
	failed := s.Unconnected()
	running := slices.DeleteFunc(missing, func(id string) bool { return slices.Contains(failed, id) })
	if err := events.Emit(context.WithoutCancel(ctx), event.ServersStarted{Servers: running, Failed: failed}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failure == nil {
		return nil
	}
	return events.Emit(ctx, event.Warning{Text: failure.Error()})
}

// parallel is how many servers are started at once.
const parallel = 4

func (s *Scope) connect(ctx context.Context, links []*connection) error {
	errs := make([]error, len(links)) // each goroutine writes its own
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, l := range links {
		group.Go(func() error {
			_, errs[i] = l.get(ctx)
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

// Servers returns the ids of the servers, in order.
func (s *Scope) Servers() []string {
	ids := make([]string, len(s.links))
	for i, l := range s.links {
		ids[i] = l.server.ID
	}
	return ids
}

// Unconnected returns the ids of the servers to which there is no connection yet, of any scope of the pool, in
// order.
func (s *Scope) Unconnected() []string {
	var ids []string
	for _, l := range s.links {
		if c, _ := l.current(); c == nil && !s.pool.connected(l.server) {
			ids = append(ids, l.server.ID)
		}
	}
	return ids
}

// Tools returns the tools that a model gets for the servers, in their order. For each
// server these are the functions search, describe and invoke, and one to read its
// resources if it is known to have any, or its own tools if they are exposed directly.
// Only servers whose tools are exposed directly are started for that. A server that does
// not work has no tools; the error says why, and the tools of the others are returned
// with it.
func (s *Scope) Tools(ctx context.Context) ([]tool.Tool, error) {
	return s.tools(ctx, s.links)
}

// ToolsOf is Tools for some of the servers, by id. An id that is not among [Scope.Servers]
// is an error, unless it is [Optional].
func (s *Scope) ToolsOf(ctx context.Context, ids []string) ([]tool.Tool, error) {
	var links []*connection
	var errs []error
	for _, id := range ids {
		id, optional := Optional(id)
		l, err := s.link(id)
		if err != nil && optional {
			continue
		}
		if err != nil {
			errs = append(errs, err)
		} else if !slices.Contains(links, l) {
			links = append(links, l)
		}
	}
	tools, err := s.tools(ctx, links)
	return tools, errors.Join(append(errs, err)...)
}

// More is ToolsOf of the servers to which there is a connection, of all for nil, without starting any: there are tools that a server has
// only after a call, and resources are known once it was started.
func (s *Scope) More(ctx context.Context, ids []string) []tool.Tool {
	var tools []tool.Tool
	taken := make(map[string]bool)
	for _, l := range s.links {
		if c, _ := l.current(); c == nil || ids != nil && !slices.ContainsFunc(ids, func(id string) bool {
			id, _ = Optional(id)
			return id == l.server.ID
		}) {
			continue
		}
		list, _ := l.toolset(ctx, taken) // of a server that does not work nothing is new
		tools = append(tools, list...)
	}
	return tools
}

func (s *Scope) link(id string) (*connection, error) {
	for _, l := range s.links {
		if l.server.ID == id {
			return l, nil
		}
	}
	return nil, fmt.Errorf("there is no MCP server %q here", id)
}

func (s *Scope) tools(ctx context.Context, links []*connection) ([]tool.Tool, error) {
	var direct []*connection
	for _, l := range links {
		if l.server.Expose == Direct {
			direct = append(direct, l)
		}
	}
	_ = s.connect(ctx, direct) // each error is returned again below
	var tools []tool.Tool
	var errs []error
	taken := make(map[string]bool)
	for _, l := range links {
		list, err := l.toolset(ctx, taken)
		tools = append(tools, list...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return tools, errors.Join(errs...)
}

// connection is a server of a scope, and the handle on its connection while there is one.
type connection struct {
	scope   *Scope
	server  Server
	getting chan struct{} // holds one element while a goroutine gets a handle

	mu     sync.Mutex
	handle *Handle
	closed bool
}

func (l *connection) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.handle != nil {
		l.handle.Release()
		l.handle = nil
	}
}

// current returns the connection if it works, nil otherwise.
func (l *connection) current() (*conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("MCP server %q is not in use any more", l.server.ID)
	}
	if l.handle == nil {
		return nil, nil
	}
	c := l.handle.conn()
	if c.alive() {
		return c, nil
	}
	l.handle.Release()
	l.handle = nil
	return nil, nil
}

// get returns the connection, and makes a new one if necessary.
func (l *connection) get(ctx context.Context) (*conn, error) {
	if c, err := l.current(); c != nil || err != nil {
		return c, err
	}
	select {
	case l.getting <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("MCP server %q: %w", l.server.ID, context.Cause(ctx))
	}
	defer func() { <-l.getting }()
	if c, err := l.current(); c != nil || err != nil {
		return c, err
	}
	if err := l.scope.pool.admit(ctx, l.scope.opts.Asker, l.server); err != nil {
		return nil, err
	}
	h, err := l.scope.pool.Acquire(ctx, l.server)
	if err = l.signIn(ctx, err); errors.Is(err, errSignedIn) {
		h, err = l.scope.pool.Acquire(ctx, l.server)
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		h.Release()
		return nil, fmt.Errorf("MCP server %q is not in use any more", l.server.ID)
	}
	l.handle = h
	return h.conn(), nil
}

// conn is the usual connection of a pool; tests use another kind.
func (h *Handle) conn() *conn { return h.entry.link.(*conn) }

// use makes an exchange, and repeats it once over a new connection if the server no longer
// knows the session. An exchange that changes nothing is also repeated if the connection
// broke.
func use[T any](ctx context.Context, l *connection, harmless bool, exchange func(c *conn) (T, error)) (answer T, err error) {
	c, err := l.get(ctx)
	if err != nil {
		return answer, err
	}
	answer, err = exchange(c)
	if err = l.signIn(ctx, err); errors.Is(err, errSignedIn) {
		answer, err = exchange(c)
	}
	expired := errors.Is(err, sdk.ErrSessionMissing)
	if !expired && !(harmless && errors.Is(err, errGone)) || ctx.Err() != nil {
		return answer, err
	}
	if expired {
		c.kill() // it may take a moment to notice
	}
	if c, err = l.get(ctx); err != nil {
		return answer, err
	}
	return exchange(c)
}

// useServer is a harmless [use] of the server with an id.
func useServer[T any](ctx context.Context, s *Scope, server string, exchange func(c *conn) (T, error)) (answer T, err error) {
	l, err := s.link(server)
	if err != nil {
		return answer, err
	}
	return use(ctx, l, true, exchange)
}

// errSignedIn means that a request that was refused can be sent again.
var errSignedIn = errors.New("signed in")

// signIn has the user log in if err is the error of a request that is refused for want of that. The error is err, errSignedIn, or
// says why there is no login.
func (l *connection) signIn(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*refusedError](err)
	if !ok || l.scope.pool.opts.SignIn == nil || !l.server.discovers() || ctx.Err() != nil {
		return err
	}
	if failure := l.scope.pool.opts.SignIn(ctx, l.scope.opts.Asker, l.server, refused.by.challenge, refused.by.token); failure != nil {
		if why, ok := failure.(*fault.Error); ok && why.Code == fault.Config && why.Err == nil { // what the server says may tell more
			why.Err = refused.by
		}
		return failure
	}
	return errSignedIn
}
