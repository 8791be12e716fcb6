package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// connect serves a CONNECT: it connects to the target, and then passes on what both sides say.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request, t target) {
	host, err := p.tunnel(r.Context(), t)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	client, in, err := http.NewResponseController(w).Hijack()
	if err != nil { // a client of HTTP/2, which the server does not speak
		_ = host.Close()
		return
	}
	both := func() { _, _ = client.Close(), host.Close() } // of ends that are given up
	defer both()
	defer context.AfterFunc(p.ctx, both)()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	silence := time.AfterFunc(idle, both)
	defer silence.Stop()
	pass := func(to net.Conn, from io.Reader) {
		// An error, or what cannot be closed in one direction, ends the other direction, too.
		if _, err := io.Copy(&listened{to, silence}, from); err != nil || closeWrite(to) != nil {
			both()
		}
	}
	var up sync.WaitGroup
	up.Go(func() { pass(host, &readConn{Conn: client, r: in.Reader}) })
	pass(client, host)
	up.Wait()
}

// listened is a writer that puts off what silence does.
type listened struct {
	io.Writer
	silence *time.Timer
}

// Write implements [io.Writer].
func (l *listened) Write(data []byte) (int, error) {
	l.silence.Reset(idle)
	return l.Writer.Write(data)
}

// readConn is a connection of which a part may have been read already.
type readConn struct {
	net.Conn
	r *bufio.Reader
}

// Read implements [io.Reader].
func (c *readConn) Read(data []byte) (int, error) { return c.r.Read(data) }

// CloseWrite says that nothing more is written.
func (c *readConn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
