package wire

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"loki/internal/llm/event/logging"
	"loki/internal/llm/provider"
)

// transport is the transport of [NewClient].
type transport struct {
	base      http.RoundTripper
	client    string
	userAgent string
	connect   time.Duration // what base allows for a connection, for messages
	silence   time.Duration // 0 means any
	maxReply  int64         // 0 leaves it to the call
	rules     func() compiled
	anyStatus bool
	log       *slog.Logger

	credentials bool // asks for credentials, see [Options]
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	c := callOf(ctx)
	out, data, err := t.prepare(req, c)
	if err != nil {
		return nil, c.cleanError(err)
	}
	secrets := secretsIn(out)
	c.keep(secrets)
	for hop := 0; ; hop++ {
		t.logRequest(out, data, secrets)
		resp, err := t.send(out, data, cmp.Or(t.maxReply, c.maxReply()))
		if err != nil {
			return nil, secrets.clean(err)
		}
		if read, ok := ctx.Value(headerKey{}).(func(http.Header)); ok && !t.credentials {
			read(resp.Header)
		}
		t.log.Log(ctx, logging.LevelTrace, "provider response", "client", t.client, "status", resp.StatusCode)
		if t.anyStatus || resp.StatusCode >= 200 && resp.StatusCode < 300 {
			return resp, nil
		}
		next := redirection(out, resp)
		if next == nil || hop == maxRedirects {
			return nil, secrets.clean(reject(ctx, resp, out.URL, secrets))
		}
		resp.Body.Close()
		out = next
	}
}

// logRequest logs req, whose body is data, as it is sent.
func (t *transport) logRequest(req *http.Request, data []byte, s secrets) {
	ctx := req.Context()
	if !t.log.Enabled(ctx, logging.LevelTrace) {
		return
	}
	attrs := []any{"client", t.client, "method", req.Method, "url", maskedURL(req.URL, s), "headers", maskedHeaders(req.Header)}
	if !t.credentials {
		attrs = append(attrs, "body", s.hide(string(data)))
	}
	t.log.Log(ctx, logging.LevelTrace, "provider request", attrs...)
}

// prepare returns a copy of req with everything that the configuration adds, and
// its body.
func (t *transport) prepare(req *http.Request, c *call) (*http.Request, []byte, error) {
	data, err := readBody(req)
	if err != nil {
		return nil, nil, err
	}
	out := req.Clone(req.Context())
	if out.Header == nil {
		out.Header = make(http.Header)
	}
	if t.userAgent != "" {
		out.Header.Set("User-Agent", t.userAgent)
	}
	setBody(out, data)
	if c == nil || t.credentials {
		return out, data, nil
	}
	if err := apply(out, c.Patch, t.rules().find(c.API, c.Model)); err != nil {
		return nil, nil, err
	}
	data, err = readBody(out)
	return out, data, err
}

// send sends req with the body data. The body of the response is a [*body].
func (t *transport) send(req *http.Request, data []byte, limit int64) (*http.Response, error) {
	ctx := req.Context()
	where := publicURL(req.URL)
	inner, cancel := context.WithCancel(ctx)
	b := &body{ctx: ctx, cancel: cancel, where: where, silence: t.silence, left: limit}
	out := req.WithContext(inner)
	setBody(out, data)
	stop := b.watch()
	resp, err := t.base.RoundTrip(out)
	stop()
	if err != nil {
		cancel()
		if b.silent.Load() && ctx.Err() == nil {
			return nil, b.tooSilent("asking")
		}
		return nil, ioError(ctx, "asking "+where, t.connect, err)
	}
	b.rc, resp.Body = resp.Body, b
	return resp, nil
}

const maxRedirects = 3

// redirection returns the request that resp sends req to, nil if there is none that
// keeps method and host.
func redirection(req *http.Request, resp *http.Response) *http.Request {
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			return nil
		}
	default:
		return nil
	}
	to, err := req.URL.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" || to.Host != req.URL.Host || to.Scheme != req.URL.Scheme {
		return nil
	}
	next := req.Clone(req.Context())
	next.URL = to
	return next
}

// publicURL returns u without user, query and fragment.
func publicURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Rejection is a response with another status than 2xx. It holds a
// [*provider.Error], which is what callers look for.
type Rejection struct {
	Err  *provider.Error
	Body []byte // the beginning of what the server said, not cleaned of secrets
}

// Error returns the message of the [*provider.Error].
func (r *Rejection) Error() string { return r.Err.Error() }

// Unwrap returns the [*provider.Error].
func (r *Rejection) Unwrap() error { return r.Err }

// maxRejection is how much of a body is read that is only going to be shown.
const maxRejection = 64 << 10

// reject reads and closes the response of a failed request to u. The error shows the query, which may be what is wrong.
func reject(ctx context.Context, resp *http.Response, u *url.URL, s secrets) error {
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxRejection))
	if err != nil && ctx.Err() != nil {
		return err
	}
	// What has been read of a broken body is worth more than how it broke.
	e := statusError(resp, data, maskedURL(u, s))
	e.URL = publicURL(u)
	return &Rejection{Err: e, Body: bytes.Clone(data)}
}
