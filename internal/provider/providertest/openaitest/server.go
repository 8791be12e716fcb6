// Package openaitest is a server on the loopback interface that speaks the OpenAI
// wire formats and answers as it is told: on /responses in the responses format,
// elsewhere with chat completions.
//
// A test scripts the server with one [Reply] per request and afterwards looks at
// the requests that came. The replies include the ways in which servers fail:
// dropped connections, errors, silence.
package openaitest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Server is the server. Its methods may be called from several goroutines.
type Server struct {
	http *httptest.Server
	done chan struct{} // closed when the test ends

	mu       sync.Mutex
	script   []Reply
	always   Reply
	models   []string
	requests []Request
	serving  int
	idle     chan struct{} // closed while serving is 0
}

// Request is a request that the server got.
type Request struct {
	Method string
	Path   string // without the base, such as /chat/completions; with the query if there is one
	Header http.Header
	Body   []byte
	Remote string // the client's address, the same for requests over one connection
}

// JSON returns the body as decoded JSON, nil if it is none.
func (r Request) JSON() map[string]any {
	var m map[string]any
	if json.Unmarshal(r.Body, &m) != nil {
		return nil
	}
	return m
}

const base = "/v1"

// New starts a server that runs until the test is over. Without a script it
// answers every request with status 501.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{done: make(chan struct{}), idle: make(chan struct{}), always: Status(http.StatusNotImplemented, `{"error":{"message":"no reply is scripted","type":"openaitest"}}`)}
	close(s.idle)
	s.http = httptest.NewServer(http.StripPrefix(base, http.HandlerFunc(s.serve)))
	t.Cleanup(func() {
		close(s.done)
		s.http.Close()
	})
	return s
}

// URL returns the base URL, which ends in /v1.
func (s *Server) URL() string { return s.http.URL + base }

// Script appends replies to the script: each is the answer to one request.
func (s *Server) Script(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, replies...)
}

// Always sets the answer to all requests that the script has none for.
func (s *Server) Always(r Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = r
}

// Models sets what GET /models lists. Asking for the list takes nothing from the
// script.
func (s *Server) Models(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = names
}

// Requests returns the requests so far, in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// WaitIdle returns nil as soon as no request is being served, or ctx's error.
func (s *Server) WaitIdle(ctx context.Context) error {
	s.mu.Lock()
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	reply := s.begin(r, body)
	defer s.end()
	var wants struct {
		Model         string
		Stream        bool
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	_ = json.Unmarshal(body, &wants) // a body of another form wants nothing
	reply(&Call{
		W: w, R: r, Body: body, Model: wants.Model,
		Stream: wants.Stream, Usage: !wants.Stream || wants.StreamOptions.IncludeUsage,
		closing: s.done,
	})
}

// begin records the request and returns the answer to it.
func (s *Server) begin(r *http.Request, body []byte) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == 0 {
		s.idle = make(chan struct{})
	}
	s.serving++
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.String(), Header: r.Header.Clone(), Body: body, Remote: r.RemoteAddr})
	if r.Method == http.MethodGet && r.URL.Path == "/models" {
		return modelList(s.models)
	}
	if len(s.script) == 0 {
		return s.always
	}
	reply := s.script[0]
	s.script = s.script[1:]
	return reply
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving--
	if s.serving == 0 {
		close(s.idle)
	}
}
