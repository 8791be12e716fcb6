package openai

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"loki/internal/fault"
	"loki/internal/provider"
)

// newTransport returns a transport with connections of its own.
func newTransport(client string, proxy *string, connect time.Duration) (*http.Transport, error) {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: connect,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        100,
		MaxIdleConnsPerHost: 16, // graph nodes ask the same server side by side
		IdleConnTimeout:     90 * time.Second,
	}
	switch {
	case proxy == nil:
		t.Proxy = http.ProxyFromEnvironment
	case *proxy == "" || *proxy == "-":
	default:
		u, err := url.Parse(*proxy)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
			return nil, fault.New(fault.Config, "the proxy of client %q is not an http, https or socks5 URL", client).
				WithHint(`set extra.proxy to a URL such as socks5://127.0.0.1:1080, or to "-" for no proxy`)
		}
		t.Proxy = http.ProxyURL(u)
	}
	return t, nil
}

// followWithinHost follows the redirections that keep method and host. Others
// would turn the request into a GET or take the key elsewhere.
func followWithinHost(req *http.Request, via []*http.Request) error {
	if req.Method != via[0].Method || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme || len(via) > 3 {
		return http.ErrUseLastResponse
	}
	return nil
}

// errTooLong is what reading a body over its limit ends with.
var errTooLong = errors.New("the reply is too long")

// body is a response body with a limit for its length and for the server's
// silence. The time that its reader spends elsewhere does not count.
type body struct {
	rc      io.ReadCloser
	cancel  context.CancelFunc // ends the request
	silence time.Duration      // 0 means any
	silent  atomic.Bool        // the request has been ended for the server's silence
	left    int64              // bytes that may still come
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// One byte more tells a body of exactly the allowed length from a longer one.
		p = p[:min(1, len(p))]
	}
	defer b.watch()()
	n, err := b.rc.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// watch cancels the request after the allowed silence, unless the function that it
// returns is called before.
func (b *body) watch() (stop func()) {
	if b.silence == 0 {
		return func() {}
	}
	timer := time.AfterFunc(b.silence, func() {
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

// Reading what follows a finished reply lets the next request use the connection;
// it is not worth a wait.
const (
	drainTime  = 50 * time.Millisecond
	drainBytes = 4 << 10
)

func (b *body) drain() {
	b.silence, b.left = drainTime, drainBytes
	_, _ = io.Copy(io.Discard, b) // whatever goes wrong costs only the connection
}

// ioError says what a failure to connect, send or read means. ctx is the caller's
// context; silent says that the server has kept silent for too long.
//
// The causes of time-outs are left out of the chain: they pass for the caller's
// own deadline, and cancellation for the user's.
func (c *Client) ioError(ctx context.Context, silent bool, doing, where string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w", doing, where, ctx.Err())
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL, which may hold a key
	}
	failure := func(kind provider.ErrorKind, cause error, format string, args ...any) error {
		return &provider.Error{Kind: kind, Msg: doing + " " + where + ": " + fmt.Sprintf(format, args...), Err: cause}
	}
	netErr, isNet := errors.AsType[net.Error](err)
	switch {
	case silent:
		return failure(provider.Transient, nil, "no data for %v", c.readTimeout)
	case errors.Is(err, errTooLong):
		return failure(provider.BadReply, err, "gave up")
	case isNet && netErr.Timeout():
		return failure(provider.Transient, nil, "no connection within %v", c.connTimeout)
	case isTLSMismatch(err):
		return &provider.Error{Kind: provider.Invalid, Msg: doing + " " + where, Err: err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failure(provider.Transient, nil, "connection closed before the reply was complete")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return failure(provider.Transient, nil, "the request was cut off")
	}
	return &provider.Error{Kind: provider.Transient, Msg: doing + " " + where, Err: err}
}

// isTLSMismatch reports failures of a handshake that will fail again.
func isTLSMismatch(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok || errors.Is(err, http.ErrSchemeMismatch)
}
