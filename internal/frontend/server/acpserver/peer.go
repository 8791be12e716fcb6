package acpserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"loki/internal/agent/harness/acp"
)

// peer is a process of this program that works in another directory. It implements [acp.Handler] for what that process sends.
type peer struct {
	server *server
	conn   *acp.Conn
	stdin  io.Closer
	ended  chan struct{} // closed when the process has ended
	kill   func() error
	greet  func() error // initializes the connection, once

	sessions map[string]bool // by id; server.mu guards it

	mu      sync.Mutex
	opening int      // sessions whose ids the client does not know yet
	held    []func() // notifications until then
}

// Notice implements [acp.Handler].
func (p *peer) Notice(_ context.Context, method string, params json.RawMessage) {
	send := func() { _ = p.server.conn.Notify(method, params) } // or the client has gone
	p.mu.Lock()
	if p.opening > 0 {
		p.held = append(p.held, send)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	send()
}

// Request implements [acp.Handler].
func (p *peer) Request(ctx context.Context, method string, params json.RawMessage) acp.Answer {
	return func() (any, error) {
		var result json.RawMessage
		err := p.server.conn.Call(ctx, method, params, &result)
		return result, err
	}
}

// pass has the process answer a request.
func (p *peer) pass(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	var result json.RawMessage
	err := p.conn.Call(ctx, method, params, &result)
	if errors.Is(err, acp.ErrClosed) {
		err = &acp.Error{Code: acp.InternalError, Message: "the process of the session has ended: load the session again"}
	}
	return result, err
}

// close ends the process.
func (p *peer) close() {
	_ = p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(endGrace):
		_ = p.kill()
		<-p.ended
	}
}

// peerOf returns the process that has a session, nil if it is none.
func (s *server) peerOf(id string) *peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers {
		if p.sessions[id] {
			return p
		}
	}
	return nil
}

// beginThere begins or opens a session in another directory.
func (s *server) beginThere(ctx context.Context, method string, params json.RawMessage, cwd, dir, id string) (any, error) {
	p, err := s.peerIn(ctx, cwd, dir)
	if err != nil {
		return nil, clientError(err)
	}
	p.mu.Lock()
	if id == "" {
		p.opening++
	}
	p.mu.Unlock()
	result, err := p.pass(ctx, method, params)
	var r acp.SessionResponse
	if err == nil {
		err = json.Unmarshal(result, &r)
	}
	if err == nil {
		s.mu.Lock()
		p.sessions[r.SessionID+id] = true // one of them is empty
		s.mu.Unlock()
	}
	switch {
	case id != "":
		return result, err
	case err != nil:
		p.release()
		return nil, err
	}
	return acp.Followed{Result: result, Then: p.release}, nil
}

// release sends what was held back for a session that the client knows now.
func (p *peer) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opening--; p.opening == 0 {
		for _, send := range p.held {
			send()
		}
		p.held = nil
	}
}

// peerIn returns the process that works in a directory, ready for requests. It is started if there is none.
func (s *server) peerIn(ctx context.Context, cwd, dir string) (*peer, error) {
	p, err := s.startIn(ctx, cwd, dir)
	if err != nil {
		return nil, err
	}
	return p, p.greet() // without the lock of the server, which reads meanwhile
}

// startIn is peerIn, without waiting for the process to be ready.
func (s *server) startIn(ctx context.Context, cwd, dir string) (*peer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.peers[dir]; p != nil {
		return p, nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, s.with.arguments()...) // it ends when its input does
	cmd.Dir, cmd.Env, cmd.Stderr = cwd, append(s.o.Environ, "PWD="+cwd), s.o.Err
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &peer{server: s, stdin: stdin, ended: make(chan struct{}), kill: cmd.Process.Kill, sessions: make(map[string]bool)}
	p.conn = acp.New(stdout, stdin, p)
	life, client := context.WithoutCancel(ctx), s.client
	p.greet = sync.OnceValue(func() error { return p.conn.Call(life, acp.Initialize, client, nil) })
	go func() { // ends with the process
		_ = p.conn.Serve(life)
		_ = cmd.Wait() // why it ended is on standard error
		s.mu.Lock()
		if s.peers[dir] == p {
			delete(s.peers, dir)
		}
		s.mu.Unlock()
		close(p.ended)
	}()
	s.peers[dir] = p
	return p, nil
}

// arguments are those of a process for sessions in another directory.
func (o Options) arguments() []string {
	args := []string{"--acp"}
	for flag, value := range map[string]string{"--agent": o.Agent, "--model": o.Model, "--role": o.Role, "--rag": o.Knowledge} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	if o.Yes {
		args = append(args, "--yes")
	}
	return args
}
