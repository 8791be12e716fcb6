package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// lastWords is how long the client of a detached stream may take for what is sent after the end of its context.
const lastWords = 5 * time.Second

// Detach sends the header of the answer and takes the connection from package net/http, so that the handler can
// return: the stream needs neither its stack nor the buffers of the server any more. The caller continues the
// stream from another goroutine, and closes it, which ends the connection. gone is called when the client has left.
// Some time after the end of ctx the connection ends in any case.
//
// It reports false for a request or a writer with which that cannot be done: r must be a GET of HTTP/1.1. The stream
// is as usual then. It is called before anything is sent.
func (s *Writer) Detach(ctx context.Context, r *http.Request, gone func()) (bool, error) {
	chunked := r.Method == http.MethodGet && r.ProtoMajor == 1 && r.ProtoMinor >= 1
	if chunked {
		s.w.Header().Set("Connection", "close")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(nil); err != nil || !chunked {
		return false, err
	}
	conn, _, err := s.ctl.Hijack()
	if errors.Is(err, http.ErrNotSupported) {
		return false, nil
	}
	if err != nil {
		s.err = errors.Join(ErrGone, err)
		return false, s.err
	}
	d := &detached{conn: conn, left: make(chan struct{})}
	go func() { // ends with the connection, which Close ends and waits for
		defer close(d.left)
		for b := []byte{0}; ; { // a client has nothing to say here
			if _, err := conn.Read(b); err != nil {
				break
			}
		}
		gone()
		_ = conn.Close() // also under a write that does not end
	}()
	d.unlink = context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now().Add(lastWords)) })
	s.w, s.ctl, s.detached = d, http.NewResponseController(d), d
	return true, nil
}

// detached writes the rest of a chunked answer whose header has been sent.
type detached struct {
	conn   net.Conn
	left   chan struct{} // closed when nothing is read from conn any more
	unlink func() bool
}

var chunks = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Header implements [http.ResponseWriter].
func (d *detached) Header() http.Header { return http.Header{} }

// WriteHeader implements [http.ResponseWriter].
func (d *detached) WriteHeader(int) {}

// Write writes a chunk. An empty one would be the last.
func (d *detached) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b, _ := chunks.Get().(*bytes.Buffer)
	defer chunks.Put(b)
	b.Reset()
	fmt.Fprintf(b, "%x\r\n", len(p))
	b.Write(p)
	b.WriteString("\r\n")
	_, err := d.conn.Write(b.Bytes())
	return len(p), err
}

// FlushError is for [http.ResponseController].
func (d *detached) FlushError() error { return nil }

// SetWriteDeadline is for [http.ResponseController].
func (d *detached) SetWriteDeadline(t time.Time) error { return d.conn.SetWriteDeadline(t) }

// end ends the answer, as complete if nothing went wrong, and the connection.
func (d *detached) end(err error) {
	d.unlink()
	if err == nil {
		_ = d.conn.SetWriteDeadline(time.Now().Add(lastWords))
		_, _ = d.conn.Write([]byte("0\r\n\r\n"))
	}
	_ = d.conn.Close()
	<-d.left
}
