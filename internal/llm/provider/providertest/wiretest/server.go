// Package wiretest is a server on the loopback interface that answers as a test scripts it,
// for the tests of providers. A format's own replies are made by the test of its provider,
// or by a package such as openaitest.
//
// A test scripts the server with one [Reply] per request and afterwards looks at the
// requests that came. The replies include the ways in which servers fail: dropped
// connections, errors, silence.
package wiretest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Server is the server. Its methods may be called from several goroutines.
type Server struct {
	// Check looks at each request before it is answered; an error fails the test. Nil
	// accepts all. It must not be set while requests are served.
	Check func(r *http.Request, body []byte) error

	t    testing.TB
	o    Options
	http *httptest.Server
	done chan struct{} // closed when the test ends

	mu       sync.Mutex
	script   []Reply
	always   Reply
	routes   map[string]Reply // by method and path
	requests []Request
	serving  int
	idle     chan struct{} // closed while serving is 0
}

// Options configures a server.
type Options struct {
	// Provider names the files that requests are recorded in, see [Record]. Empty means
	// that they are not recorded.
	Provider string

	TLS  bool   // the server has a certificate that only [Server.Client] trusts
	Base string // path at the end of the server's URL, such as /v1; requests below it are answered
}

// Request is a request that the server got.
type Request struct {
	Method string
	Path   string // without the base, escaped as it came; with the query if there is one
	Header http.Header
	Body   []byte
	Remote string // the client's address, the same for requests over one connection
}

// JSON returns the body as decoded JSON, nil if it is not an object.
func (r Request) JSON() map[string]any {
	var m map[string]any
	if json.Unmarshal(r.Body, &m) != nil {
		return nil
	}
	return m
}

// Text returns the body.
func (r Request) Text() string { return string(r.Body) }

// New starts a server that runs until the test is over. It answers its requests with
// script, one after the other, and those beyond with the last of it; without a script, with
// status 501.
func New(t testing.TB, o Options, script ...Reply) *Server {
	t.Helper()
	s := &Server{
		t: t, o: o, done: make(chan struct{}), idle: make(chan struct{}), script: script, routes: make(map[string]Reply),
		always: Status(http.StatusNotImplemented, `{"error":{"message":"no reply is scripted"}}`),
	}
	if n := len(script); n > 0 {
		s.always = script[n-1]
	}
	close(s.idle)
	start := httptest.NewServer
	if o.TLS {
		start = httptest.NewTLSServer
	}
	s.http = start(http.StripPrefix(o.Base, http.HandlerFunc(s.serve)))
	t.Cleanup(func() {
		close(s.done)
		s.http.Close()
	})
	return s
}

// URL returns the base URL, without a slash at its end.
func (s *Server) URL() string { return s.http.URL + s.o.Base }

// Client returns an HTTP client whose connections end with the server.
func (s *Server) Client() *http.Client { return s.http.Client() }

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

// Route sets the answer to all requests for a method and a path, such as "GET /models".
// They take nothing from the script.
func (s *Server) Route(methodAndPath string, r Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes[methodAndPath] = r
}

// Requests returns the requests so far, in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Last returns the last request. It fails the test if there is none.
func (s *Server) Last() Request {
	s.t.Helper()
	all := s.Requests()
	if len(all) == 0 {
		s.t.Fatal("the server got no request")
	}
	return all[len(all)-1]
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
	if s.Check != nil {
		if err := s.Check(r, body); err != nil {
			s.t.Error(err)
		}
	}
	if s.o.Provider != "" {
		if err := Record(s.o.Provider, apiOf(r.URL.Path), "http://"+r.Host+s.o.Base+r.URL.RequestURI(), body); err != nil {
			s.t.Errorf("recording a request: %v", err)
		}
	}
	reply(&Call{W: w, R: r, Body: body, closing: s.done})
}

// apiOf returns the last word of a path.
func apiOf(path string) string {
	return path[strings.LastIndexAny(path, "/:")+1:]
}

// begin records the request and returns the answer to it.
func (s *Server) begin(r *http.Request, body []byte) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == 0 {
		s.idle = make(chan struct{})
	}
	s.serving++
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body, Remote: r.RemoteAddr})
	if reply, ok := s.routes[r.Method+" "+r.URL.Path]; ok {
		return reply
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
