package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"loki/internal/base/fault/retry"
)

// listener accepts connections whose clients have to read: a write that makes no progress for the time that timeout
// returns ends the connection. Of connections that are open at once there are no more than it has places, so that clients do not take
// the files that the work of the server needs.
type listener struct {
	net.Listener
	timeout func() time.Duration

	places chan struct{} // holds a token for each open connection; nil bounds nothing
	evict  func() bool   // closes a connection that waits for its client, and returns false if there is none
	closed context.Context
	close  context.CancelFunc
}

// newListener returns l with at most a number of connections; 0 means any number.
func newListener(l net.Listener, timeout func() time.Duration, most int, evict func() bool) *listener {
	bounded := &listener{Listener: l, timeout: timeout, evict: evict}
	bounded.closed, bounded.close = context.WithCancel(context.Background())
	if most > 0 {
		bounded.places = make(chan struct{}, most)
	}
	return bounded
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.places == nil {
		return &conn{Conn: c, timeout: l.timeout, release: func() {}}, nil
	}
	for {
		select {
		case l.places <- struct{}{}:
			return &conn{Conn: c, timeout: l.timeout, release: sync.OnceFunc(func() { <-l.places })}, nil
		default:
		}
		if !l.evict() && retry.Sleep(l.closed, evictEvery) != nil {
			_ = c.Close()
			return nil, net.ErrClosed
		}
	}
}

// evictEvery is how often a full listener looks for a place.
const evictEvery = 20 * time.Millisecond

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.close()
	return l.Listener.Close()
}

// conn is a connection of a listener.
type conn struct {
	net.Conn
	timeout func() time.Duration
	release func() // its place
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout())); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// unasked are the connections whose clients have asked nothing yet: new ones (a browser opens some in advance), and ones that have
// sent a part of a request's header; and those whose clients ask nothing at the moment. The zero value holds none.
type unasked struct {
	mu    sync.Mutex // guards what follows
	conns map[net.Conn]struct{}
	idle  map[net.Conn]struct{}
	ended bool
}

// connKey is the key of a request's [net.Conn] in its context.
type connKey struct{}

// withConn implements [http.Server.ConnContext].
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// follow implements [http.Server.ConnState].
func (u *unasked) follow(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.idle, c)
	switch {
	case state == http.StateIdle:
		delete(u.conns, c)
		if u.idle == nil {
			u.idle = make(map[net.Conn]struct{})
		}
		u.idle[c] = struct{}{}
	case state != http.StateNew && state != http.StateActive:
		delete(u.conns, c)
	case u.ended && state == http.StateNew:
		_ = c.Close()
	default:
		if u.conns == nil {
			u.conns = make(map[net.Conn]struct{})
		}
		u.conns[c] = struct{}{}
	}
}

// asks is called with the context of a request when its handler begins.
func (u *unasked) asks(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(net.Conn); ok {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.conns, c)
	}
}

// end closes the connections, and new ones from now on. [http.Server.Shutdown] would wait for them.
func (u *unasked) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	for c := range u.conns {
		_ = c.Close()
	}
}

// evict closes one of the connections, one whose client asks nothing at the moment if there is any: clients open that anew. It returns
// false if there is none.
func (u *unasked) evict() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, conns := range []map[net.Conn]struct{}{u.idle, u.conns} {
		for c := range conns {
			delete(conns, c)
			_ = c.Close()
			return true
		}
	}
	return false
}
