package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"loki/internal/base/process/awake"
	"loki/internal/llm/provider"
)

// errTooLong is what reading a body over its limit ends with.
var errTooLong = errors.New("the reply is too long")

// body is a response body with a limit for its length and for the server's
// silence. The time that its reader spends elsewhere does not count.
type body struct {
	rc      io.ReadCloser
	ctx     context.Context    // the caller's; a body belongs to one request
	cancel  context.CancelFunc // ends the request
	where   string             // the URL without what may be secret
	silence time.Duration      // 0 means any
	silent  atomic.Bool        // the request has been ended for the server's silence
	left    int64              // bytes that may still come
}

// Read reads, and fails with an error as [Failure] returns them.
func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// One byte more distinguishes a body of exactly the allowed length from a longer one.
		p = p[:min(1, len(p))]
	}
	stop := b.watch()
	n, err := b.rc.Read(p)
	stop()
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return 0, &provider.Error{Kind: provider.BadReply, Msg: "reading the reply of " + b.where + ": gave up", Err: errTooLong}
	case err == nil || err == io.EOF:
		return n, err
	case b.silent.Load() && b.ctx.Err() == nil:
		return n, b.tooSilent("reading the reply of")
	}
	return n, callOf(b.ctx).cleanError(ioError(b.ctx, "reading the reply of "+b.where, 0, err))
}

func (b *body) tooSilent(doing string) error {
	return &provider.Error{Kind: provider.Transient, Msg: fmt.Sprintf("%s %s: no data for %v", doing, b.where, b.silence)}
}

// watch cancels the request after the allowed silence, unless the function that it
// returns is called before.
func (b *body) watch() (stop func()) {
	if b.silence == 0 {
		return func() {}
	}
	timer := awake.AfterFunc(b.silence, func() {
		b.silent.Store(true)
		b.cancel()
	})
	return func() { timer.Stop() }
}

// Close ends the request. It closes the connection unless the body has been read
// to its end.
func (b *body) Close() error {
	err := b.rc.Close()
	b.cancel()
	return err
}

// Hurry lowers how long the server of a response may be silent from now on, for a
// reply of which only what can be missed is still to come. Of bodies that are not
// from the client of [NewClient] it does nothing. It must not be called while the
// body is read.
func Hurry(responseBody io.Reader, silence time.Duration) {
	if b, ok := responseBody.(*body); ok && (b.silence == 0 || b.silence > silence) {
		b.silence = silence
	}
}

// Reading what follows a finished reply lets the next request use the connection;
// it is not worth a wait.
const (
	drainTime  = 50 * time.Millisecond
	drainBytes = 4 << 10
)

// Drain reads what follows a finished reply, if that is little and comes at once,
// so that the next request can use the connection. Of bodies that are not from the
// client of [NewClient] it does nothing.
func Drain(responseBody io.Reader) {
	if b, ok := responseBody.(*body); ok {
		b.silence, b.left = drainTime, drainBytes
		_, _ = io.Copy(io.Discard, b) // whatever goes wrong costs only the connection
	}
}
