package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/fault"
	"loki/internal/base/process/awake"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
)

// protocol is the version that a client requests. Newer versions begin with a request
// that older servers do not know, and that crashes some of them. A server that speaks
// only newer versions is asked again.
const protocol = "2025-11-25"

// pingTimeout bounds the answer to a ping that checks a server which was late.
const pingTimeout = 3 * time.Second

// conn is a session with a server.
type conn struct {
	server  resolved
	opts    *Options
	log     *slog.Logger
	session *sdk.ClientSession

	program *program // for stdio
	remote  *remote  // otherwise

	ended chan struct{} // closed when the session has ended
	dead  chan struct{} // closed when the connection must not be used any more
	once  sync.Once     // guards dead

	tools listing
	can   sdk.ServerCapabilities // capabilities that the server declares

	mu    sync.Mutex
	calls map[string]*call // running calls by progress token
	next  int              // number of the next token
}

// dial starts the server, or connects to it, and initializes the session.
func dial(ctx context.Context, r resolved, o *Options) (*conn, error) {
	timeout := cmp.Or(r.StartTimeout, o.ConnectTimeout)
	limit, cancel := awake.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := dialVersion(limit, r, o, protocol)
	if version := olderVersion(err); version != "" {
		c, err = dialVersion(limit, r, o, version)
	} else if err != nil && newerOnly(err) {
		c, err = dialVersion(limit, r, o, "")
	}
	if err == nil && c.hasTasks() && c.session.InitializeResult().ProtocolVersion <= protocol { // which are of the next version
		if newer, err := dialVersion(limit, r, o, ""); err == nil {
			c.close(0)
			c = newer
		}
	}
	if err == nil {
		return c, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("MCP server %q: %w", r.ID, context.Cause(ctx))
	}
	text := err.Error()
	said, isRefusal := errors.AsType[*refusal](err)
	if isRefusal {
		text = said.Error()
	}
	if limit.Err() != nil {
		text = fmt.Sprintf("it was not ready within %v, the start_timeout_seconds of the server in mcp.json", timeout)
		if detail := err.Error(); !strings.Contains(detail, "deadline exceeded") {
			text += ": " + detail
		}
	}
	what := r.Command
	if r.Type != Stdio {
		what = r.URL
	}
	failure := fault.New(fault.Tool, "MCP server %q: cannot connect (%s): %s", r.ID, r.redact(what), r.redact(text))
	if r.Type == Stdio {
		if level := r.Sandbox.Level; level != "" && level != sandbox.Full && o.Sandbox != nil {
			failure.Msg += fmt.Sprintf("; at level %s it sees the workspace and programs of the system only: list what else it needs, such as its own directory, as read in its sandbox in mcp.json", level)
		}
		if note := o.withheldFrom(r).Note(remedy, text); note != "" {
			failure.Msg += "; " + note
		}
	}
	if isRefusal && said.hint(r.ID) != "" {
		return nil, &refusedError{failure.WithHint("%s", said.hint(r.ID)), said}
	}
	return nil, failure
}

// refusedError is the error of a request that is refused for want of a login.
type refusedError struct {
	error
	by *refusal
}

// Unwrap returns the error for people.
func (e *refusedError) Unwrap() error { return e.error }

// remedy explains how a server gets a variable.
const remedy = `pass on what it needs by its env in mcp.json: "NAME": "${NAME}"`

// withheldFrom returns the environment of a server, without the names that it has
// entries for.
func (o *Options) withheldFrom(r resolved) environ.Child {
	names := slices.DeleteFunc(slices.Clone(o.Child.Withheld), func(name string) bool {
		_, own := r.Env[name]
		return own
	})
	return environ.Child{Withheld: names}
}

// newerOnly reports whether a server refused the initialization of the older versions.
func newerOnly(err error) bool {
	e := rpcError(err)
	return e != nil && (e.Code == sdk.CodeUnsupportedProtocolVersion || e.Code == jsonrpc.CodeMethodNotFound)
}

// rpcError returns the error of the protocol that a server answered with, nil if it did not.
func rpcError(err error) *jsonrpc.Error {
	if said, ok := errors.AsType[*refusal](err); ok {
		return said.rpc // the SDK wraps a refusal in an error of the protocol of its own
	}
	e, _ := errors.AsType[*jsonrpc.Error](err)
	return e
}

// olderVersion returns the version to try after a server refused that of the initialization: the newest older one that it
// names, or if it names no other the oldest. It is empty if the server refused something else, or names a newer version.
func olderVersion(err error) (version string) {
	e := rpcError(err)
	if e == nil || e.Code != sdk.CodeUnsupportedProtocolVersion && !strings.Contains(strings.ToLower(e.Message), "protocol version") {
		return ""
	}
	known := sdk.SupportedProtocolVersions()
	slices.Sort(known)
	for _, v := range known {
		named := strings.Contains(e.Message+string(e.Data), v)
		switch {
		case named && v > protocol && version == "":
			return ""
		case named && v < protocol:
			version = v
		}
	}
	if version == "" && e.Code != sdk.CodeUnsupportedProtocolVersion {
		version = known[0]
	}
	return version
}

func dialVersion(ctx context.Context, r resolved, o *Options, version string) (*conn, error) {
	c := &conn{
		server: r,
		opts:   o,
		log:    o.Log.With("mcp_server", r.ID),
		ended:  make(chan struct{}),
		dead:   make(chan struct{}),
		calls:  make(map[string]*call),
	}
	c.tools.init()
	var transport sdk.Transport
	var err error
	if r.Type == Stdio {
		c.program, err = startProgram(r, o, o.Stderr, c.log)
		transport = c.program
	} else {
		c.remote, err = newRemote(ctx, r, o)
		transport = c.remote
	}
	if err != nil {
		return nil, err
	}
	if c.program != nil {
		stop := context.AfterFunc(ctx, c.program.kill) // or it would be given time to end
		defer stop()
		if o.Slow != nil {
			slow := time.AfterFunc(slowStart, func() { o.Slow(ctx, r.ID, r.redact(c.program.lastLine())) })
			defer slow.Stop()
		}
	}
	c.session, err = c.client().Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		reason := c.abandon()
		if reason != "" && !isRPC(err) && !isMisread(err) {
			return nil, errors.New(reason)
		}
		return nil, err
	}
	if init := c.session.InitializeResult(); init != nil && init.Capabilities != nil {
		c.can = *init.Capabilities
	}
	go func() { // ends with the session, which close ends
		defer close(c.ended)
		_ = c.session.Wait()
		if c.program != nil {
			c.program.kill()
		}
	}()
	c.askForLogs(ctx)
	return c, nil
}

func isRPC(err error) bool {
	_, ok := errors.AsType[*jsonrpc.Error](err)
	return ok
}

// isMisread reports whether a server answered, but not in the form of the protocol. Then it was ended for that.
func isMisread(err error) bool {
	_, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok || strings.HasPrefix(err.Error(), "unsupported protocol version")
}

// abandon cleans up after a failed attempt to connect, and returns the reason if it is
// known.
func (c *conn) abandon() string {
	if c.remote != nil {
		c.remote.kill()
		return ""
	}
	ended := isClosed(c.program.down)
	c.program.kill()
	c.program.service.Stdout().Close()
	if !ended {
		return ""
	}
	return c.program.reason()
}

// client returns the SDK's side of this one connection.
func (c *conn) client() *sdk.Client {
	impl := &sdk.Implementation{Name: "loki", Version: c.opts.Version}
	options := &sdk.ClientOptions{
		Logger:                      slog.New(slog.DiscardHandler), // it quotes messages, which may hold secrets
		Capabilities:                &sdk.ClientCapabilities{Elicitation: c.elicitation(), Extensions: map[string]any{tasksExtension: map[string]any{}}},
		ElicitationHandler:          c.elicit,
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.tools.forget() },
		ProgressNotificationHandler: c.progress,
	}
	c.takeLogs(options)
	offerRoots(options)
	client := sdk.NewClient(impl, options)
	c.setRoot(client)
	offerTasks(client)
	return client
}

// alive reports whether the connection is believed to work.
func (c *conn) alive() bool {
	return !isClosed(c.ended) && !isClosed(c.dead) && (c.program == nil || !isClosed(c.program.down))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// close ends the connection and returns when its program and goroutines have ended. A
// server gets grace to end by itself.
func (c *conn) close(grace time.Duration) {
	c.once.Do(func() { close(c.dead) })
	switch {
	case c.program != nil:
		c.program.service.Stop(grace)
		_ = c.program.Close() // ends the reader
	case grace <= 0:
		c.remote.kill()
	default:
		cut := time.AfterFunc(grace, c.remote.cancel)
		c.remote.close()
		cut.Stop()
	}
	_ = c.session.Close() // its error is known already
	<-c.ended
}

// kill ends a broken connection. The caller still has to close it.
func (c *conn) kill() {
	c.once.Do(func() { close(c.dead) })
	if c.program != nil {
		c.program.kill()
	} else {
		c.remote.kill()
	}
}

// errGone means that the connection ended before the answer came.
var errGone = errors.New("the connection ended")

// do makes one exchange with the server. The text of its error is for the model. It wraps
// the error of ctx if that has ended, and errGone or sdk.ErrSessionMissing if a new
// connection may help.
func do[T any](ctx context.Context, c *conn, exchange func(ctx context.Context) (T, error)) (T, error) {
	limit, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := &lateError{c.opts.ListTimeout}
	timer := awake.AfterFunc(late.limit, func() { cancel(late) })
	defer timer.Stop()
	answer, err := exchange(limit)
	return answer, c.exchangeError(ctx, limit, err)
}

// lateError reports that an answer did not come in time.
type lateError struct{ limit time.Duration }

func (e *lateError) Error() string { return fmt.Sprintf("no answer within %v", e.limit) }

// exchangeError returns the error of an exchange with a text for the model. limit is the
// context of the exchange, which descends from ctx.
func (c *conn) exchangeError(ctx, limit context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("MCP server %q: %w", c.server.ID, context.Cause(ctx))
	}
	if late, ok := errors.AsType[*lateError](context.Cause(limit)); ok {
		c.checkLate(ctx)
		return fmt.Errorf("MCP server %q: %w%s", c.server.ID, late, c.program.noiseNote())
	}
	if said, ok := errors.AsType[*refusal](err); ok {
		text := c.server.redact(said.Error())
		if hint := said.hint(c.server.ID); hint != "" {
			text += "; " + hint
		}
		if said.lost {
			return fmt.Errorf("MCP server %q: %w: %s", c.server.ID, sdk.ErrSessionMissing, text)
		}
		if said.login() {
			return &refusedError{fmt.Errorf("MCP server %q: %s", c.server.ID, text), said}
		}
		return fmt.Errorf("MCP server %q: %s", c.server.ID, text)
	}
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return &serverError{c.server.ID, rpc.Code, c.server.redact(rpc.Message)}
	}
	if errors.Is(err, sdk.ErrSessionMissing) {
		return fmt.Errorf("MCP server %q: %w", c.server.ID, sdk.ErrSessionMissing)
	}
	if c.program != nil && isClosed(c.program.down) {
		return fmt.Errorf("MCP server %q: %w: %s", c.server.ID, errGone, c.server.redact(c.program.reason()))
	}
	text := c.server.redact(err.Error())
	if errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) || !c.alive() {
		return fmt.Errorf("MCP server %q: %w: %s", c.server.ID, errGone, text)
	}
	return fmt.Errorf("MCP server %q: %s", c.server.ID, text)
}

// serverError is an error in the answer of the server.
type serverError struct {
	server string
	code   int64
	text   string
}

func (e *serverError) Error() string {
	return fmt.Sprintf("MCP server %q: error %d: %s", e.server, e.code, e.text)
}

// checkLate ends the connection if a server that was late does not answer a ping either. A
// slow tool alone does not end it, since the server may keep state in memory.
func (c *conn) checkLate(ctx context.Context) {
	ping, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := c.session.Ping(ping, nil); err != nil && ctx.Err() == nil && !isRPC(err) {
		c.log.Warn("MCP server does not answer, closing its connection")
		c.kill()
	}
}
