package server

import (
	"net"
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
