// Package server is the face of programs and browsers: it serves the REST API, the OpenAI-compatible
// endpoints and the page.
//
// What an endpoint does is in the packages below it, what all share in [loki/internal/server/rest]. Here
// they are put together and served, from the first line on standard error to the last request.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"loki/internal/app"
	"loki/internal/fault"
	"loki/internal/server/openai"
	"loki/internal/server/page"
	"loki/internal/server/rest"
	"loki/internal/server/runs"
	"loki/internal/server/talk"
)

// defaultAddress is where a server listens that nothing else is said to.
const defaultAddress = "127.0.0.1:3400"

// Options configure Start.
type Options struct {
	App     *app.App
	Address string // HOST:PORT; empty means that of the configuration; port 0 picks one
	Warn    func(text string)
	Log     *slog.Logger // nil for none
}

// Server is a server that accepts connections.
type Server struct {
	o        Options
	api      *rest.API
	http     *http.Server
	listener net.Listener
	started  time.Time

	cancel context.CancelCauseFunc // ends all requests
	served chan error              // what the listener ended with
}

// Start begins to serve. The caller ends it with Shutdown. ctx ends all requests at once.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{o: o, started: time.Now(), served: make(chan error, 1)}
	if s.o.Log == nil {
		s.o.Log = slog.New(slog.DiscardHandler)
	}
	s.api = rest.New(rest.Options{Version: app.Version, Hide: o.App.Hide, Log: s.o.Log})
	s.register()
	address := cmp.Or(o.Address, defaultAddress)
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, listenError(address, err)
	}
	s.listener = listener
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	go func() { s.served <- s.http.Serve(listener) }() // ends with Shutdown, which waits for it
	return s, nil
}

// listenError says why an address cannot be listened at, and what to do.
func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fault.New(fault.Failure, "cannot serve at %s: another program listens there", address).WithHint("choose another port, or let the system choose: loki --serve 127.0.0.1:0")
	}
	return fault.Wrap(fault.Failure, err, "cannot serve at %s", address)
}

// Addr returns where the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// register puts the endpoints together.
func (s *Server) register() {
	s.metadata()
	talk.Register(s.api, s.o.App)
	openai.Register(s.api, s.o.App)
	runs.Register(s.api, s.o.App)
	page.Register(s.api)
}

// handler is what all requests go through before they find their endpoint.
func (s *Server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.api.ServeHTTP(w, rest.Begin(w, r))
	})
}

// Shutdown ends the server: it lets requests finish for grace, then cancels them, and waits for them.
func (s *Server) Shutdown(ctx context.Context, grace time.Duration) error {
	s.api.Drain()
	wait, done := context.WithTimeout(ctx, grace)
	s.api.Idle(wait)
	done()
	s.cancel(rest.ErrStopping())
	wait, done = context.WithTimeout(ctx, 10*time.Second)
	defer done()
	err := s.http.Shutdown(wait)
	if err != nil {
		_ = s.http.Close()
		err = fmt.Errorf("requests did not end: %w", err)
	}
	if served := <-s.served; err == nil && !errors.Is(served, http.ErrServerClosed) {
		err = served
	}
	return err
}
