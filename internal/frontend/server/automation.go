package server

import (
	"context"
	"net"
	"sync"

	"loki/internal/app"
	"loki/internal/workflow/schedule/trigger"
)

// NoAddress is the address of a server without a port: it starts runs that are due, and resumes others.
const NoAddress = "none"

// noListener is the listener of a server without a port.
type noListener struct {
	closed chan struct{}
	close  func()
}

func newNoListener() *noListener {
	l := &noListener{closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// Accept returns when the listener is closed.
func (l *noListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

// Close ends Accept.
func (l *noListener) Close() error {
	l.close()
	return nil
}

// Addr returns no address.
func (l *noListener) Addr() net.Addr { return noAddr{} }

type noAddr struct{}

func (noAddr) Network() string { return "tcp" }
func (noAddr) String() string  { return NoAddress }

// automation starts runs by itself, those of schedules and of triggers that watch files, and forgets outdated ones.
type automation struct {
	cancel  context.CancelFunc
	working sync.WaitGroup
}

// automate begins it. Each part works until ctx is canceled, or end is called.
func automate(ctx context.Context, a *app.App, hosted app.Hosted, triggers *trigger.Service) *automation {
	ctx, cancel := context.WithCancel(ctx)
	s := &automation{cancel: cancel}
	s.working.Go(func() { a.Background.Schedules(hosted.Store, hosted.Runs).Run(ctx) })
	s.working.Go(func() { a.Background.WatchFiles(ctx, triggers) })
	s.working.Go(func() { a.Background.Retain(ctx, hosted.Store) })
	return s
}

// end ends it, and waits for what is being done.
func (s *automation) end() {
	s.cancel()
	s.working.Wait()
}
