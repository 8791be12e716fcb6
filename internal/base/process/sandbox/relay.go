package sandbox

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Dialer makes a connection.
type Dialer func(ctx context.Context) (net.Conn, error)

// errNotDialed says that no connection leads into a box.
var errNotDialed = errors.New("no connection leads into this sandbox")

// Watch watches for what the call of a child that runs until it is stopped makes, see [Sandbox.Watch].
func (b *Box) Watch() (end func() []Refusal, err error) { return b.s.Watch(b.declared) }

// Dial connects to a port at which the child listens. The box needs [Needs].Dialed.
func (b *Box) Dial(ctx context.Context, port int) (net.Conn, error) { return b.dial(ctx, port) }

// Relay hands the connections that come to a listener to the ones that dial makes. It returns when the listener is closed and its connections
// have ended.
func Relay(l net.Listener, dial Dialer) {
	const patience = 5 * time.Second
	ctx, cancel := context.WithCancel(context.Background())
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		open.Go(func() {
			defer in.Close()
			dialing, stop := context.WithTimeout(ctx, patience)
			defer stop()
			out, err := dial(dialing)
			if err != nil {
				return
			}
			defer out.Close()
			defer context.AfterFunc(ctx, func() { // both copies end then
				in.Close()
				_ = out.SetDeadline(time.Now())
			})()
			var back sync.WaitGroup
			back.Go(func() { pass(in, out) })
			pass(out, in)
			back.Wait()
		})
	}
}

// pass copies one direction of a connection, and its end.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.SetDeadline(time.Now()) // the other direction ends, too
	_ = from.SetDeadline(time.Now())
}
