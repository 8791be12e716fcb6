package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/web"
)

const maxRedirects = 10

// remote is a server on the network. It implements sdk.Transport on top of the one for the
// server's type.
type remote struct {
	inner  sdk.Transport
	life   context.Context // ends all its requests
	cancel context.CancelFunc
	conn   sdk.Connection // nil until Connect has succeeded
}

// newRemote prepares the transport; nothing is sent.
func newRemote(ctx context.Context, r resolved, o *Options) (*remote, error) {
	target, err := url.Parse(r.URL)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, errors.New("its url is not a valid http or https address")
	}
	header := make(http.Header, len(r.Headers))
	for name, text := range r.Headers {
		if !token(name) || strings.ContainsAny(text, "\r\n\x00") {
			return nil, fmt.Errorf("header %q cannot be sent", name)
		}
		header.Set(name, text)
	}
	// A connection lives as long as the server's handle, not only during the call that
	// made it.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	client := &http.Client{Transport: &carrier{
		next:   o.HTTP,
		life:   life,
		origin: origin(target),
		header: header,
		home:   target,
		legacy: r.Type == SSE,
		server: r.ID,
		tokens: o.Tokens,
		limit:  int64(o.MaxMessage),
		log:    o.Log.With("mcp_server", r.ID),
	}, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if web.Inward(req.Context(), target, req.URL) {
			return fmt.Errorf("it redirects to %s, which is this machine or in its network", req.URL.Host)
		}
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}}
	t := &remote{life: life, cancel: cancel}
	if r.Type == SSE {
		t.inner = &sdk.SSEClientTransport{Endpoint: r.URL, HTTPClient: client, MaxEventSize: o.MaxMessage}
	} else {
		t.inner = &sdk.StreamableClientTransport{Endpoint: r.URL, HTTPClient: client, MaxEventSize: o.MaxMessage}
	}
	return t, nil
}

// Connect implements sdk.Transport. ctx bounds connecting only.
func (t *remote) Connect(ctx context.Context) (sdk.Connection, error) {
	// The stream of SSE is a request that lasts until the connection is closed.
	stop := context.AfterFunc(ctx, t.cancel)
	conn, err := t.inner.Connect(t.life)
	if !stop() && err == nil {
		conn.Close()
		return nil, ctx.Err()
	}
	t.conn = conn
	return conn, err
}

// close ends the session with the server gracefully, until life ends.
func (t *remote) close() {
	if t.conn != nil {
		_ = t.conn.Close()
	}
	t.cancel()
}

// kill ends it at once.
func (t *remote) kill() {
	t.cancel()
	t.close()
}

func origin(u *url.URL) string { return u.Scheme + "://" + strings.ToLower(u.Host) }

// token reports whether name is one by RFC 9110, section 5.6.2.
func token(name string) bool {
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// carrier sends the requests of one connection.
type carrier struct {
	next   http.RoundTripper
	life   context.Context
	origin string // the only target of headers and tokens
	home   *url.URL
	legacy bool // every request is refused by its status, and not only messages
	header http.Header
	server string
	tokens TokenSource
	limit  int64
	log    *slog.Logger
}

// RoundTrip implements http.RoundTripper. A server that refuses a message is an error with its words.
func (c *carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(c.life, cancel)
	end := func() { stop(); cancel() }
	resp, access, err := c.send(ctx, req)
	if err != nil {
		end()
		return nil, err
	}
	if err := refusalOf(req, resp, c.legacy, access); err != nil {
		end()
		return nil, err
	}
	c.redirect(req, resp)
	own := &body{ReadCloser: resp.Body, end: end, left: c.limit}
	resp.Body = own
	switch kind := resp.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "text/event-stream"):
		own.left = -1 // its events are limited, one by one
		resp.Body = &keeper{ReadCloser: own, keep: c.keep, max: 2 * c.limit}
	case strings.HasPrefix(kind, "application/json"):
		data, err := io.ReadAll(own)
		own.Close()
		if err != nil {
			return nil, err
		}
		data = c.keep(data)
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		resp.Header.Del("Content-Length")
	}
	return resp, nil
}

func (c *carrier) keep(message []byte) []byte { return keep(message, c.log) }

// redirect has a message follow a server that has moved within its host, for which clients of today's web make a GET of
// the message.
func (c *carrier) redirect(req *http.Request, resp *http.Response) {
	if req.Method != http.MethodPost || resp.StatusCode != http.StatusMovedPermanently && resp.StatusCode != http.StatusFound {
		return
	}
	if to, err := resp.Location(); err == nil && strings.EqualFold(to.Hostname(), c.home.Hostname()) {
		resp.StatusCode = http.StatusPermanentRedirect
	}
}

// isHome reports whether headers and tokens may be sent to u: to the origin, or to the same host by https where it was
// http.
func (c *carrier) isHome(u *url.URL) bool {
	return origin(u) == c.origin ||
		c.home.Scheme == "http" && u.Scheme == "https" && c.home.Port() == "" && u.Port() == "" && strings.EqualFold(u.Hostname(), c.home.Hostname())
}

// send sends the request, and again with a new token if the server refuses the first. It returns the last one.
func (c *carrier) send(ctx context.Context, req *http.Request) (resp *http.Response, access string, err error) {
	own := c.isHome(req.URL)
	if own && c.tokens != nil {
		if access, err = c.tokens.Token(ctx, c.server); err != nil {
			return nil, "", fmt.Errorf("access token: %w", err)
		}
	}
	resp, err = c.once(ctx, req, own, access)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || !own || c.tokens == nil {
		return resp, access, err
	}
	if r, ok := c.tokens.(Rejecter); ok {
		r.Reject(ctx, c.server, access)
	}
	again, err := c.tokens.Token(ctx, c.server)
	if err != nil || again == access || again == "" || req.Body != nil && req.GetBody == nil {
		return resp, access, nil // the refusal says more than the error
	}
	resp.Body.Close()
	resp, err = c.once(ctx, req, own, again)
	return resp, again, err
}

func (c *carrier) once(ctx context.Context, req *http.Request, own bool, access string) (*http.Response, error) {
	out := req.Clone(ctx)
	if req.GetBody != nil {
		fresh, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		out.Body = fresh
	}
	if own {
		for name, values := range c.header {
			out.Header[name] = values
		}
		if access != "" {
			out.Header.Set("Authorization", "Bearer "+access)
		}
	}
	return c.next.RoundTrip(out)
}

// body is the body of a reply, which has a limit and releases its request.
type body struct {
	io.ReadCloser
	left int64 // negative: no limit
	end  func()
	once sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left < 0 {
		return n, err
	}
	if b.left -= int64(n); b.left < 0 {
		b.left = 0
		return 0, errHuge
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.end)
	return err
}
