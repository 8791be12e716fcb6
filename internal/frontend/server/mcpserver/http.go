package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/app"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
)

// HTTPOptions configure NewHTTP.
type HTTPOptions struct {
	App    *app.App
	Runs   *manager.Manager
	Access auth.Access
	// Enter begins a run of a subject, unless it has too many. Required.
	Enter func(ctx context.Context, who auth.Identity, begin func() (string, error)) (string, error)
	Link  func(run string, p run.Pending) (string, error) // returns the address of a page at which a question is answered
	Warn  func(string)                                    // is told which agents are not offered to the first caller; may be nil
}

// HTTP offers the agents to clients of a server: without sessions as of protocol 2026-07-28, and with sessions to older clients. Each caller
// has a server of its own, which offers what its key allows.
type HTTP struct {
	*base
	o    HTTPOptions
	seen string // the fingerprint of what is offered, from before the first caller
	left chan struct{}
	came chan struct{} // closed by come, when the first caller is there
	come func()

	mu      sync.Mutex
	callers map[string]*httpCaller
	calls   map[string]func(run string) // by the id of the request
}

// httpCaller is what serves the requests of a caller.
type httpCaller struct {
	server    *server
	stateless http.Handler
	sessions  http.Handler
	used      time.Time
	serving   int // requests
}

const (
	mostSessions  = 1000
	mostOwn       = 100 // sessions of a subject
	sessionIdle   = 10 * time.Minute
	mostCallers   = 1000
	callHeader    = "Loki-Request" // set by this package alone: the id of the request that a call came with
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
)

// NewHTTP prepares the service.
func NewHTTP(o HTTPOptions) (*HTTP, error) {
	b, err := newBase(o.App, o.Runs)
	if err != nil {
		return nil, err
	}
	h := &HTTP{base: b, o: o, left: make(chan struct{}), came: make(chan struct{}), callers: make(map[string]*httpCaller), calls: make(map[string]func(string))}
	h.come = sync.OnceFunc(func() { close(h.came) })
	b.link, b.gone, h.seen = o.Link, h.left, b.fingerprint()
	return h, nil
}

// Watch has clients learn of changes of what is offered, until ctx ends. It does nothing before the first one.
func (h *HTTP) Watch(ctx context.Context) {
	select {
	case <-h.came:
	case <-ctx.Done():
		return
	}
	h.watch(ctx, h.seen, func(ctx context.Context) {
		for c := range h.all() {
			_ = c.server.refresh(ctx, nil) // the first caller was told what is wrong
		}
	})
}

// Leave says that no client will be served any more: calls that end now interrupt their runs, which can be resumed.
func (h *HTTP) Leave() { close(h.left) }

// Close ends all sessions.
func (h *HTTP) Close() {
	for c := range h.all() {
		for session := range c.server.mcp.Sessions() {
			_ = session.Close()
		}
	}
}

// all yields the callers.
func (h *HTTP) all() iter.Seq[*httpCaller] {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []*httpCaller
	for _, c := range h.callers {
		list = append(list, c)
	}
	return slices.Values(list)
}

// Call is one request.
type Call struct {
	Who   auth.Identity
	ID    string
	Body  []byte
	About func(run string) // is called with the run that the request begins or changes, while it is served
}

// ErrFull means that there are as many sessions, or callers, as may be.
var ErrFull = errors.New("too many MCP sessions")

// knownNotices are the notifications of clients that the SDK knows. It refuses others, which the protocol has servers ignore.
var knownNotices = []string{"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed"}

// ignores reports whether a message is a notification that is not known here.
func ignores(body []byte) bool {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	return json.Unmarshal(body, &m) == nil && m.ID == nil && strings.HasPrefix(m.Method, "notifications/") && !slices.Contains(knownNotices, m.Method)
}

// Serve serves a request.
func (h *HTTP) Serve(w http.ResponseWriter, r *http.Request, call Call) error {
	if ignores(call.Body) {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	if _, refused := messages(bytes.TrimSpace(call.Body)); r.Method == http.MethodPost && refused != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, err := io.WriteString(w, refused)
		return err
	}
	c, err := h.enter(r.Context(), call)
	if err != nil {
		return err
	}
	defer h.leave(c, call.ID)
	stateless := r.Header.Get(versionHeader) >= protocolWithInput
	if !stateless && r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" && h.full(call.Who) {
		return ErrFull
	}
	r = r.Clone(r.Context())
	r.Header.Set(callHeader, call.ID)
	r.Body = io.NopCloser(bytes.NewReader(call.Body))
	if stateless {
		c.stateless.ServeHTTP(w, r)
	} else {
		c.sessions.ServeHTTP(w, r)
	}
	return nil
}

// enter returns what serves a caller, and notes the call.
func (h *HTTP) enter(ctx context.Context, call Call) (*httpCaller, error) {
	key := fmt.Sprint(call.Who.Subject, "\n", call.Who.KeyID, "\n", call.Who.Scopes, "\n", call.Who.Groups)
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.callers[key]
	if c == nil {
		if len(h.callers) >= mostCallers {
			h.forget()
		}
		if len(h.callers) >= mostCallers {
			return nil, ErrFull
		}
		warn := h.o.Warn
		if len(h.callers) > 0 {
			warn = nil
		}
		s, err := h.newServer(ctx, caller{who: call.Who, via: "http", access: h.o.Access, about: h.about, enter: func(ctx context.Context, begin func() (string, error)) (string, error) {
			return h.o.Enter(ctx, call.Who, begin)
		}}, warn)
		if err != nil {
			return nil, err
		}
		get := func(*http.Request) *mcp.Server { return s.mcp }
		c = &httpCaller{
			server:    s,
			stateless: mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, DisableLocalhostProtection: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: -1}),
			sessions:  mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{SessionTimeout: sessionIdle, DisableLocalhostProtection: true, MaxRequestBodyBytes: -1}),
		}
		h.callers[key] = c
		h.come()
	}
	c.used = time.Now()
	c.serving++
	h.calls[call.ID] = call.About
	return c, nil
}

func (h *HTTP) leave(c *httpCaller, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.serving--
	delete(h.calls, id)
}

// about names the run of a request, if that is still served.
func (h *HTTP) about(extra *mcp.RequestExtra, run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if note := h.calls[extra.Header.Get(callHeader)]; note != nil {
		note(run)
	}
}

// forget forgets callers that are not at work. h.mu is held.
func (h *HTTP) forget() {
	for key, c := range h.callers {
		if c.serving == 0 && time.Since(c.used) > sessionIdle {
			delete(h.callers, key)
		}
	}
}

// full reports whether there are as many sessions as may be, of all callers or of one subject. Without keys all callers are one.
func (h *HTTP) full(who auth.Identity) bool {
	all, own := 0, 0
	for c := range h.all() {
		for range c.server.mcp.Sessions() {
			if all++; c.server.who.Subject == who.Subject {
				own++
			}
		}
	}
	return all >= mostSessions || own >= mostOwn && !who.Anonymous()
}

// ToolOf returns the name of the tool that a request calls, or that does the same, and of the agent if it runs one; both are empty for
// other requests.
func ToolOf(body []byte) (tool, agent string) {
	var m struct {
		Method string `json:"method"`
		Params struct {
			Name  string `json:"name"`
			State string `json:"requestState"`
		} `json:"params"`
	}
	switch {
	case json.Unmarshal(body, &m) != nil:
		return "", ""
	case m.Method == "tasks/update", m.Method == "tools/call" && m.Params.State != "":
		return ToolAnswer, ""
	case m.Method == "tasks/cancel":
		return ToolCancel, ""
	case m.Method != "tools/call":
		return "", ""
	}
	if strings.HasPrefix(m.Params.Name, ownPrefix) {
		return m.Params.Name, ""
	}
	return m.Params.Name, m.Params.Name
}

// The tools that are no agents, for the audit of calls. [ToolOf] returns their names.
const (
	ToolAnswer = toolAnswer
	ToolCancel = toolCancel
	ToolRun    = toolRun
	ToolSearch = toolSearch
)
