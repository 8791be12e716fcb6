// Package client talks to a server of Loki.
//
// Its methods are the endpoints of the REST API, with the types of package api. A request that is safe to
// repeat is tried again when the connection or the server fails for a moment; streams of events resume
// where they were cut. Errors are those of [loki/internal/base/fault], with the message and the hint of the
// server, so that a command fails as it would without a server.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/web"
	"loki/internal/frontend/api"
)

// Options configure New.
type Options struct {
	URL string // of the server, http or https; HOST:PORT is enough. Required
	Key string // empty for a server that asks for none

	HTTP  *http.Client                                     // nil means one of the package's own
	Sleep func(ctx context.Context, d time.Duration) error // nil means [retry.Sleep]
}

// Client is one server. Its methods may be called from several goroutines.
type Client struct {
	o       Options
	base    *url.URL
	http    *http.Client
	reached atomic.Bool // it has answered once
}

// New returns a client. It connects to nothing yet. The error says what is wrong with the URL.
func New(o Options) (*Client, error) {
	base, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{o: o, base: base, http: o.HTTP}
	if c.o.Sleep == nil {
		c.o.Sleep = retry.Sleep
	}
	if c.http == nil {
		c.http = &http.Client{
			Transport: &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
				TLSHandshakeTimeout: 10 * time.Second,
				ForceAttemptHTTP2:   true,
				MaxIdleConnsPerHost: 4,
				IdleConnTimeout:     30 * time.Second,
			},
			// A key goes to the server that the user named, and nowhere else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return c, nil
}

// parseURL reads the URL of a server.
func parseURL(text string) (*url.URL, error) {
	wrong := func(why string) error {
		return fault.New(fault.Usage, "%q is not the URL of a server: %s", text, why).WithHint("it looks like http://127.0.0.1:3400 or https://loki.example.com")
	}
	full := text
	if !strings.Contains(text, "://") {
		full = "https://" + text
		if host, _, err := net.SplitHostPort(text); web.Loopback(cmp.Or(host, text)) || err == nil && web.Loopback(host) {
			full = "http://" + text
		}
	}
	u, err := url.Parse(full)
	switch {
	case err != nil:
		return nil, wrong("it cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, wrong("it begins with neither http:// nor https://")
	case u.Host == "" || u.Hostname() == "":
		return nil, wrong("it has no host")
	case u.User != nil:
		return nil, fault.New(fault.Usage, "the URL of a server has no user and no password").WithHint("the key is taken from LOKI_SERVER_KEY")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, wrong("it ends with the path")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// URL returns where the server is.
func (c *Client) URL() string { return c.base.String() }

// Exposed reports whether a key would be sent unencrypted to another machine.
func (c *Client) Exposed() bool {
	return c.o.Key != "" && c.base.Scheme == "http" && !web.Loopback(c.base.Hostname())
}

// request is one request.
type request struct {
	method string
	path   string // with leading slash; its parts are escaped
	query  url.Values
	body   any    // JSON; nil for none
	accept string // "" means JSON
	last   string // Last-Event-ID
	once   bool   // it is not safe to repeat
}

// pathOf returns a path with the parts escaped.
func pathOf(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

// do sends a request and reads the JSON of the answer into out, unless that is nil.
func (c *Client) do(ctx context.Context, r request, out any) error {
	var data []byte
	err := c.send(ctx, r, func(resp *http.Response) (err error) {
		defer closeBody(resp)
		if data, err = io.ReadAll(resp.Body); err != nil {
			return c.connectionError(ctx, err)
		}
		return nil
	})
	if err != nil || out == nil {
		return err
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = data
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fault.Wrap(fault.Failure, err, "the answer of %s cannot be read", c.base).WithHint("is it a server of Loki, of about this version? %s/v1/info", c.base)
	}
	return nil
}

// policy is how often a request is sent.
func policy() retry.Policy {
	return retry.Policy{Attempts: 5, Backoff: 200 * time.Millisecond, Factor: 2, MaxBackoff: 5 * time.Second, Jitter: 0.3}
}

// send sends a request until it is answered with success and read has read the answer, whose body it closes.
func (c *Client) send(ctx context.Context, r request, read func(*http.Response) error) error {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return err
		}
	}
	key := "" // the same in each attempt
	if r.method == http.MethodPost {
		key = rand.Text()
	}
	for failures := 1; ; failures++ {
		resp, err := c.try(ctx, r, body, key)
		if err == nil {
			if err = read(resp); err == nil {
				return nil
			}
		}
		asked, again := c.repeatable(r, err)
		wait, ok := policy().Wait(failures, asked, mathrand.Float64())
		if !again || !ok || ctx.Err() != nil {
			return err
		}
		if ended := c.o.Sleep(ctx, wait); ended != nil {
			return err
		}
	}
}

// repeatable reports whether a request that failed may be sent again, and when the server wants that.
func (c *Client) repeatable(r request, err error) (asked time.Duration, ok bool) {
	e, answered := errors.AsType[*Error](err)
	switch {
	case !answered:
		return 0, !r.once && c.reached.Load()
	case e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests && (e.Code == "rate_limited" || e.RetryAfter > 0):
		return e.RetryAfter, true // nothing was done
	case e.Status == http.StatusConflict && e.RetryAfter > 0: // the attempt before is still at work
		return e.RetryAfter, !r.once
	}
	return 0, false
}

// try sends a request once.
func (c *Client) try(ctx context.Context, r request, body []byte, key string) (*http.Response, error) {
	u := *c.base
	u.RawQuery = r.query.Encode()
	address := u.Scheme + "://" + u.Host + u.EscapedPath() + r.path
	if u.RawQuery != "" {
		address += "?" + u.RawQuery
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", cmp.Or(r.accept, "application/json"))
	req.Header.Set("User-Agent", api.CommandLine)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	if key != "" && !r.once {
		req.Header.Set("Idempotency-Key", key)
	}
	if r.last != "" {
		req.Header.Set("Last-Event-ID", r.last)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.connectionError(ctx, err)
	}
	c.reached.Store(true)
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer closeBody(resp)
	return nil, c.failure(resp)
}

// closeBody closes the body of an answer, so that its connection can be used again if little is left.
func closeBody(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
}

// connectionError is the failure of a connection.
func (c *Client) connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the address, which is said anyway
	}
	if c.reached.Load() {
		return fault.Wrap(fault.Failure, err, "the connection to the server at %s was lost", c.base)
	}
	return fault.Wrap(fault.Failure, err, "the server at %s cannot be reached", c.base).WithHint("is it running, and is that its address? loki --serve prints it")
}

// Error is an error that the server answered. It is in the chain of errors of the client.
type Error struct {
	Status     int           // of HTTP
	Code       string        // of the API; empty if the answer had none
	Message    string        // as the server says it
	RequestID  string        // for who looks into the server's log
	RetryAfter time.Duration // 0 if the server does not say
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// FaultCode returns the code of the failure, which decides the exit status.
func (e *Error) FaultCode() fault.Code { return codeOf(e.Code, e.Status) }

// codeOf returns what a code of the API is on the command line.
func codeOf(code string, status int) fault.Code {
	switch {
	case code == "invalid_request" || code == "body_too_large" || code == "question_not_found":
		return fault.Usage
	case code == "unauthorized":
		return fault.Config
	case code == "not_found" || strings.HasSuffix(code, "_not_found"):
		return fault.NotFound
	case code == "provider_error":
		return fault.Provider
	case code == "refused":
		return fault.Refused
	case code == "tool_error":
		return fault.Tool
	case code == "rate_limited" || code == "limit_reached" || code == "timeout":
		return fault.Limit
	case code == "canceled":
		return fault.Canceled
	case code == "" && status == http.StatusNotFound:
		return fault.NotFound
	}
	return fault.Failure
}

// failure returns the error of an answer.
func (c *Client) failure(resp *http.Response) error {
	e := &Error{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), RetryAfter: retry.After(resp.Header)}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	hint := e.read(data)
	switch {
	case e.Code == "unauthorized" && c.o.Key == "":
		hint = "set LOKI_SERVER_KEY to a key that the server knows: loki --key add NAME makes one there"
	case e.Code == "unauthorized":
		hint = "the server does not accept what is in LOKI_SERVER_KEY: the key is unknown, or the token has expired"
	case e.Message == "":
		e.Message = fmt.Sprintf("%s answered %s, and not as a server of Loki does", c.base, resp.Status)
		hint = "is that the address that loki --serve has printed?"
	}
	return fault.Wrap(e.FaultCode(), e, "").WithHint("%s", hint)
}

// read fills e in with the body of an error and returns the hint.
func (e *Error) read(data []byte) (hint string) {
	var body api.Error
	if json.Unmarshal(data, &body) != nil {
		return ""
	}
	e.Code, e.Message = body.Error.Code, body.Error.Message
	e.RequestID = cmp.Or(e.RequestID, body.Error.RequestID)
	return body.Error.Hint
}
