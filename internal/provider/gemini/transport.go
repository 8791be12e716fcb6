package gemini

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"
	"strings"

	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// callKey is the context key of a [call].
type callKey struct{}

// call is what a request of the SDK needs to know, and what becomes of it.
type call struct {
	key   string // API key, "" if there is a token
	token string // OAuth access token

	shield func(doc []byte) ([]byte, error) // makes a document of the reply safe for the SDK

	sent     bool      // the SDK has made the request
	answered bool      // a reply with status 2xx has come
	body     io.Reader // of a stream
	err      error     // why the reply could not be read to its end
}

// transport stands between the SDK and the network. On the way out it puts in the
// credentials. On the way in it shows the SDK complete and well-formed documents only:
// the SDK panics on documents of an unexpected shape, takes a broken-off one for a bad
// one, and logs failures of the connection to standard error. What it does not show
// goes to the [call].
type transport struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := req.Context().Value(callKey{}).(*call) // all requests are made with Client.call
	c.sent = true
	req = req.Clone(req.Context())
	req.Header.Del("User-Agent") // the SDK's; the client below has its own
	req.Header.Del("X-Goog-Api-Key")
	switch {
	case c.token != "":
		req.Header.Set("Authorization", "Bearer "+c.token)
	case c.key != "":
		req.Header.Set("X-Goog-Api-Key", c.key)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp, err
	}
	c.answered = true
	if strings.Contains(req.URL.Path, ":stream") {
		c.body = resp.Body
		next, stop := iter.Pull2(documents(resp.Body))
		resp.Body = &events{call: c, body: resp.Body, next: next, stop: stop}
		return resp, nil
	}
	resp.Body = io.NopCloser(bytes.NewReader(c.document(resp.Body)))
	return resp, nil
}

// document returns the one document of a reply, or an empty one if it fails.
func (c *call) document(body io.ReadCloser) []byte {
	defer body.Close()
	doc, err := io.ReadAll(body)
	if err == nil {
		err = wire.ReplyError(doc)
	}
	if err != nil {
		c.err = err
		return nil
	}
	shielded, err := c.shield(doc)
	if err != nil {
		c.err = wire.BadReply("the reply is not of the expected form", doc)
	}
	return shielded
}

// events is the body of a stream as the SDK reads it: server-sent events, each of one
// line. It ends with io.EOF, whatever happens.
type events struct {
	call *call
	body io.Closer
	next func() ([]byte, error, bool)
	stop func()
	rest []byte // of the event that is being read
	over bool
}

// Read implements [io.Reader].
func (e *events) Read(p []byte) (int, error) {
	if len(e.rest) == 0 && !e.advance() {
		return 0, io.EOF
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *events) advance() bool {
	if e.over {
		return false
	}
	doc, err, ok := e.next()
	if ok && err == nil {
		err = wire.ReplyError(doc)
	}
	var shielded []byte
	if ok && err == nil {
		if shielded, err = e.call.shield(doc); err != nil {
			err = wire.BadReply("a piece of the reply is not of the expected form", doc)
		}
	}
	if !ok || err != nil {
		e.over, e.call.err = true, err
		return false
	}
	e.rest = append(append([]byte("data: "), shielded...), "\n\n"...)
	return true
}

// Close implements [io.Closer]. The SDK would log an error.
func (e *events) Close() error {
	e.over = true
	e.stop()
	_ = e.body.Close() // nothing is going to be read
	return nil
}

// failure returns what ctx's request failed with, given the SDK's error.
func (c *call) failure(ctx context.Context, doing string, err error) error {
	switch {
	case c.err != nil:
		return wire.Failure(ctx, doing, c.err)
	case err != nil && !c.sent && ctx.Err() == nil:
		return &provider.Error{Kind: provider.Invalid, Msg: "the request cannot be made: " + err.Error()}
	case err != nil && c.answered && ctx.Err() == nil:
		// The document was JSON, but a member is not of the type it should be.
		return wire.BadReply("the reply is not of the expected form", nil)
	case err != nil:
		return withRetryInfo(wire.Failure(ctx, doing, err), err)
	}
	return nil
}
