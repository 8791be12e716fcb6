package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// listener accepts connections whose clients have to read: a write that makes no progress for the time that timeout
// returns ends the connection.
type listener struct {
	net.Listener
	timeout func() time.Duration
}

// Accept implements [net.Listener].
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{c, l.timeout}, nil
}

// conn is a connection of a listener.
type conn struct {
	net.Conn
	timeout func() time.Duration
}

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout())); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// unasked are the connections whose clients have asked nothing yet: new ones (a browser opens some in advance), and
// those that have sent a part of a request's header. The zero value holds none.
type unasked struct {
	mu    sync.Mutex // guards what follows
	conns map[net.Conn]struct{}
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
	switch {
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
