// Package acpserver is an agent of the Agent Client Protocol: an editor talks to models and agents through it, over standard input and output.
//
// A session of the editor is one of the user, with an App and a conversation of its own, and each prompt is a run on record. The directory of a
// session is the workspace. Since that is the working directory of a process, sessions in other directories are in processes of their own, to
// which messages are passed on.
package acpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/agent/harness/acp"
	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/conversation/session"
	"loki/internal/frontend/command/display"
	"loki/internal/llm/catalog"
	"loki/internal/workflow/run"
)

const (
	endGrace    = 4 * time.Second // for work when the client has gone
	writeGrace  = time.Second     // for a client that does not read what is written then
	maxSessions = 64
	pageSize    = 50 // sessions of a list
	setup       = "setup"
)

// Options say what sessions begin with.
type Options struct {
	Agent, Model, Role, Knowledge string // names; empty for none
	Yes                           bool   // sessions may consent to everything
}

// Serve serves one client at standard input and output, until it closes the input, reads no more, or ctx ends. Runs at work then are interrupted.
func Serve(ctx context.Context, o display.Options, with Options) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if strings.ContainsAny(with.Agent, `/\`) { // for processes in other directories
		if with.Agent, err = filepath.Abs(with.Agent); err != nil {
			return err
		}
	}
	ending, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	over := make(chan struct{})
	interrupt := sync.OnceFunc(func() {
		end(run.ErrInterrupted)
		close(over) // all prompts are interrupted now: what ends later does not cancel them
	})
	defer context.AfterFunc(ctx, interrupt)()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	out := newOutput(o.Out, interrupt)
	defer out.end()
	defer context.AfterFunc(ending, func() { time.AfterFunc(writeGrace, out.end) })()
	s := &server{o: o, with: with, dir: realPath(dir), ending: ending, sessions: make(map[string]*sess), peers: make(map[string]*peer)}
	s.conn = acp.New(&endReader{o.In, interrupt}, out, s)
	served := make(chan error, 1)
	go func() { served <- s.conn.Serve(serving) }() // ends with the input, or with serving
	select {
	case err = <-served:
	case <-over:
		if ctx.Err() != nil { // at the end of the input, the last line is still to be taken
			stop()
		}
		select {
		case err = <-served:
		case <-time.After(endGrace):
		}
	}
	interrupt()
	return errors.Join(err, s.close())
}

// endReader reads from a reader and calls ended at its end.
type endReader struct {
	io.Reader
	ended func()
}

// Read implements [io.Reader].
func (r *endReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		r.ended()
	}
	return n, err
}

// server serves one client. It implements [acp.Handler].
type server struct {
	o      display.Options
	with   Options
	dir    string // the working directory, links resolved
	conn   *acp.Conn
	ending context.Context

	mu       sync.Mutex
	client   acp.InitializeRequest
	sessions map[string]*sess
	peers    map[string]*peer // by directory
}

// Notice implements [acp.Handler].
func (s *server) Notice(_ context.Context, method string, params json.RawMessage) {
	var p acp.SessionRequest
	if method != acp.SessionCancel || acp.Decode(params, &p) != nil {
		return
	}
	if of := s.peerOf(p.SessionID); of != nil {
		_ = of.conn.Notify(method, params) // or it has ended
	} else if of := s.session(p.SessionID); of != nil {
		of.cancel()
	}
}

// Request implements [acp.Handler].
func (s *server) Request(ctx context.Context, method string, params json.RawMessage) acp.Answer {
	var in acp.SessionRequest
	_ = json.Unmarshal(params, &in) // a mistake is found below
	if of := s.peerOf(in.SessionID); of != nil && method != acp.SessionLoad && method != acp.SessionResume {
		return func() (any, error) { return of.pass(ctx, method, params) }
	}
	switch method {
	case acp.Initialize:
		return decode(params, s.initialize)
	case acp.Authenticate:
		return later(params, func(p *acp.AuthenticateRequest) (any, error) { return nil, s.authenticate(p) })
	case acp.SessionNew:
		return later(params, func(p *acp.NewSessionRequest) (any, error) {
			return s.begin(ctx, method, params, place{p.Cwd, p.AdditionalDirectories, p.MCPServers}, "")
		})
	case acp.SessionLoad, acp.SessionResume:
		return later(params, func(p *acp.LoadSessionRequest) (any, error) {
			return s.begin(ctx, method, params, place{p.Cwd, p.AdditionalDirectories, p.MCPServers}, p.SessionID)
		})
	case acp.SessionList:
		return later(params, func(p *acp.ListSessionsRequest) (any, error) { return s.list(ctx, p) })
	case acp.SessionDelete:
		return later(params, func(p *acp.SessionRequest) (any, error) { return nil, s.remove(ctx, p.SessionID) })
	case acp.SessionClose:
		return decode(params, func(p *acp.SessionRequest) acp.Answer {
			return s.in(p.SessionID, func(of *sess) acp.Answer { return func() (any, error) { return nil, s.end(of) } })
		})
	case acp.SessionPrompt:
		return decode(params, func(p *acp.PromptRequest) acp.Answer {
			return s.in(p.SessionID, func(of *sess) acp.Answer {
				return of.enqueue(ctx, func(ctx context.Context) (any, error) { return of.prompt(ctx, p.Prompt) })
			})
		})
	case acp.SetMode:
		return decode(params, func(p *acp.SetModeRequest) acp.Answer {
			return s.in(p.SessionID, func(of *sess) acp.Answer {
				return func() (any, error) { return nil, of.setMode(p.ModeID, "modeId") }
			})
		})
	case acp.SetConfigOption:
		return decode(params, func(p *acp.SetConfigOptionRequest) acp.Answer {
			return s.in(p.SessionID, func(of *sess) acp.Answer { return of.setOption(ctx, p) })
		})
	}
	return nil
}

// decode decodes the parameters of a request, and begins it with them.
func decode[P any](params json.RawMessage, begin func(*P) acp.Answer) acp.Answer {
	p := new(P)
	if err := acp.Decode(params, p); err != nil {
		return failure(err)
	}
	return begin(p)
}

// later decodes the parameters of a request that is done apart from those after it.
func later[P any](params json.RawMessage, do func(*P) (any, error)) acp.Answer {
	return decode(params, func(p *P) acp.Answer { return func() (any, error) { return do(p) } })
}

// failure is the answer with an error.
func failure(err error) acp.Answer { return func() (any, error) { return nil, err } }

// in begins a request in an open session.
func (s *server) in(id string, begin func(*sess) acp.Answer) acp.Answer {
	if of := s.session(id); of != nil {
		return begin(of)
	}
	return failure(unknownSession(id))
}

// unknownSession is the error about a session that there is not, or that is not open.
func unknownSession(id string) error {
	return &acp.Error{Code: acp.ResourceNotFound, Message: fmt.Sprintf("no session %q is open", text.OneLine(id, 80)), Data: map[string]string{"sessionId": id}}
}

// session returns an open session of this process, nil if there is none with that id.
func (s *server) session(id string) *sess {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// initialize tells what this agent can do.
func (s *server) initialize(p *acp.InitializeRequest) acp.Answer {
	s.mu.Lock()
	s.client = *p
	s.mu.Unlock()
	var can acp.AgentCapabilities
	yes := &acp.Supported{}
	can.LoadSession, can.PromptCapabilities.Image, can.PromptCapabilities.EmbeddedContext = true, true, true
	can.MCPCapabilities.HTTP, can.MCPCapabilities.SSE = true, true
	of := &can.SessionCapabilities
	of.List, of.Resume, of.Close, of.Delete, of.AdditionalDirectories = yes, yes, yes, yes, yes
	r := acp.InitializeResponse{ProtocolVersion: acp.Version, AgentCapabilities: can, AgentInfo: &acp.Implementation{Name: "loki", Title: "Loki", Version: app.Version}}
	if p.ClientCapabilities.Auth.Terminal {
		r.AuthMethods = []acp.AuthMethod{{Type: "terminal", ID: setup, Name: "Set up Loki", Description: "Chooses a provider and a model in a terminal", Args: []string{"--setup"}}}
	}
	return func() (any, error) { return r, nil }
}

// authenticate reports whether there is a model now, after a way to authenticate.
func (s *server) authenticate(p *acp.AuthenticateRequest) error {
	if p.MethodID != setup {
		return acp.Invalid("methodId", "the only method is "+setup)
	}
	a, err := s.newApp()
	if err != nil {
		return clientError(err)
	}
	_, err = a.Catalog.Resolve(a.Config.Model, catalog.Chat)
	return errors.Join(noModel(err), a.Close())
}

// newApp returns an App for a session.
func (s *server) newApp() (*app.App, error) {
	return app.New(app.Options{Environ: s.o.Environ, Model: s.with.Model})
}

// noModel returns the error that there is no usable model, nil if err is nil.
func noModel(err error) error {
	if err == nil {
		return nil
	}
	hint := cmp.Or(fault.HintOf(err), "set one up in a terminal: loki --setup")
	return &acp.Error{Code: acp.AuthRequired, Message: "no model can be used: " + err.Error(), Data: map[string]string{"code": string(fault.CodeOf(err)), "hint": hint}}
}

// clientError returns an error as a client reads it, nil for nil.
func clientError(err error) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*acp.Error](err); ok {
		return own
	}
	data := map[string]string{"code": string(fault.CodeOf(err))}
	if hint := fault.HintOf(err); hint != "" {
		data["hint"] = hint
	}
	code := acp.InternalError
	if fault.CodeOf(err) == fault.Usage || fault.CodeOf(err) == fault.NotFound {
		code = acp.InvalidParams
	}
	return &acp.Error{Code: code, Message: err.Error(), Data: data}
}

// place is where a session works, and with what.
type place struct {
	cwd     string
	dirs    []string
	servers []acp.MCPServer
}

// check returns the directory of a place without links.
func (p place) check() (string, error) {
	for i, dir := range append([]string{p.cwd}, p.dirs...) {
		path := "cwd"
		if i > 0 {
			path = fmt.Sprintf("additionalDirectories.%d", i-1)
		}
		if !filepath.IsAbs(dir) {
			return "", acp.Invalid(path, "an absolute path is expected")
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return "", acp.Invalid(path, "there is no directory "+dir)
		}
	}
	return realPath(p.cwd), nil
}

// realPath returns a path without links, as far as it is known.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// begin begins a session, or opens the one with an id.
func (s *server) begin(ctx context.Context, method string, params json.RawMessage, at place, id string) (any, error) {
	dir, err := at.check()
	if err != nil {
		return nil, err
	}
	if dir != s.dir {
		return s.beginThere(ctx, method, params, at.cwd, dir, id)
	}
	if old := s.session(id); old != nil {
		if err := s.end(old); err != nil {
			return nil, clientError(err)
		}
	}
	of, err := s.open(ctx, at, id)
	if err != nil {
		return nil, clientError(err)
	}
	s.mu.Lock()
	full := len(s.sessions) >= maxSessions
	if !full {
		s.sessions[of.id] = of
	}
	s.mu.Unlock()
	if full {
		return nil, errors.Join(&acp.Error{Code: acp.InternalError, Message: fmt.Sprintf("%d sessions are open: close one first", maxSessions)}, of.close())
	}
	if method == acp.SessionLoad {
		of.replay(ctx)
	}
	r := acp.SessionResponse{Modes: of.modes(), ConfigOptions: of.options()}
	if id == "" {
		r.SessionID = of.id
	}
	return acp.Followed{Result: r, Then: of.announce}, nil
}

// end closes a session.
func (s *server) end(of *sess) error {
	s.mu.Lock()
	delete(s.sessions, of.id)
	s.mu.Unlock()
	return clientError(of.close())
}

// close ends all sessions, and the processes of those in other directories. Sessions in which nothing was said are deleted.
func (s *server) close() error {
	s.mu.Lock()
	var open []*sess
	for _, of := range s.sessions {
		open = append(open, of)
	}
	peers := s.peers
	s.peers = make(map[string]*peer)
	s.mu.Unlock()
	var errs []error
	for _, of := range open {
		stored := of.storedSession()
		errs = append(errs, of.close())
		if stored.Empty() {
			_ = s.remove(context.WithoutCancel(s.ending), of.id) // it may stay
		}
	}
	for _, p := range peers {
		_ = p.stdin.Close() // all at once
	}
	for _, p := range peers {
		p.close()
	}
	return errors.Join(errs...)
}

// list returns a page of the sessions that editors have begun, the one that was used last first.
func (s *server) list(ctx context.Context, p *acp.ListSessionsRequest) (any, error) {
	store, err := s.o.App.Sessions()
	if err != nil {
		return nil, clientError(err)
	}
	all, err := s.o.App.StoredSessions(ctx)
	if err != nil {
		return nil, clientError(err)
	}
	cursor := func(m app.StoredSession) string {
		return m.Modified.UTC().Format(time.RFC3339Nano) + "/" + string(m.ID)
	}
	slices.SortFunc(all, func(a, b app.StoredSession) int {
		return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(a.ID, b.ID))
	})
	if p.Cursor != "" {
		i := slices.IndexFunc(all, func(m app.StoredSession) bool { return cursor(m) == p.Cursor })
		if i < 0 {
			return nil, acp.Invalid("cursor", "the session at which the page before ended has changed: begin with the first page")
		}
		all = all[i+1:]
	}
	r := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
	var last app.StoredSession
	for _, m := range all {
		of, err := store.Open(ctx, m.Scope, m.ID)
		if err != nil { // it was deleted meanwhile, or its file is damaged
			continue
		}
		if of.Empty() {
			_ = of.Refresh(ctx) // a process that was killed may have left its first turn
		}
		dir := of.Settings().Directory
		if dir == "" || p.Cwd != "" && realPath(dir) != realPath(p.Cwd) || of.Empty() {
			continue
		}
		if len(r.Sessions) == pageSize {
			r.NextCursor = cursor(last)
			break
		}
		first, _ := of.Glance()
		last = m
		r.Sessions = append(r.Sessions, acp.SessionInfo{
			SessionID: string(m.ID), Cwd: dir, Title: s.o.App.Hide(text.OneLine(cmp.Or(of.Title(), first), 80)), UpdatedAt: m.Modified.UTC().Format(time.RFC3339),
		})
	}
	return r, nil
}

// remove deletes a session.
func (s *server) remove(ctx context.Context, text string) error {
	id, err := session.ParseID(text)
	if err != nil {
		return unknownSession(text)
	}
	if of := s.session(text); of != nil {
		if err := s.end(of); err != nil {
			return err
		}
	}
	found, err := s.o.App.FindSession(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return unknownSession(text)
	}
	if err == nil {
		_, err = s.o.App.ServerConversations().DeleteSession(ctx, found.Scope(), text)
	}
	return clientError(err)
}
