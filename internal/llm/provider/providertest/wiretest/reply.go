package wiretest

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"
)

// Reply answers one request. The functions of this package make the usual ones;
// a test may write its own.
type Reply func(c *Call)

// Call is a request that a [Reply] answers.
type Call struct {
	W    http.ResponseWriter
	R    *http.Request
	Body []byte

	closing <-chan struct{} // closed when the server stops
}

// Streamed reports whether the reply is asked for as a stream: by the header, the URL or
// the body, as the API has it.
func (c *Call) Streamed() bool {
	return c.R.Header.Get("Accept") == "text/event-stream" || strings.Contains(apiOf(c.R.URL.Path), "stream") ||
		strings.Contains(strings.ReplaceAll(string(c.Body), " ", ""), `"stream":true`)
}

// Wait blocks until the client has gone away.
func (c *Call) Wait() {
	select {
	case <-c.R.Context().Done():
	case <-c.closing:
	}
}

// Send writes text and flushes it.
func (c *Call) Send(text string) {
	_, _ = io.WriteString(c.W, text) // the client may be gone, which is what some tests are about
	_ = http.NewResponseController(c.W).Flush()
}

// Body answers with status 200 and body, written and flushed piece by piece.
func Body(contentType string, body ...string) Reply {
	return func(c *Call) {
		c.W.Header().Set("Content-Type", contentType)
		for _, piece := range body {
			c.Send(piece)
		}
	}
}

// Events is [Body] for server-sent events.
func Events(body ...string) Reply { return Body("text/event-stream", body...) }

// JSON is [Body] for a JSON document.
func JSON(body string) Reply { return Status(http.StatusOK, body) }

// Status answers with an HTTP status, a body and header fields, given as names and
// values in turn. A body is JSON unless the fields say otherwise.
func Status(code int, body string, fields ...string) Reply {
	return func(c *Call) {
		c.W.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(fields); i += 2 {
			c.W.Header().Set(fields[i], fields[i+1])
		}
		c.W.WriteHeader(code)
		c.Send(body)
	}
}

// RetryAfter returns the header field that asks to wait, in whole seconds rounded up, for
// [Status].
func RetryAfter(wait time.Duration) (name, value string) {
	return "Retry-After", fmt.Sprint(int(math.Ceil(wait.Seconds())))
}

// Either answers a request for a stream with one reply and others with the other.
func Either(stream, whole Reply) Reply {
	return func(c *Call) {
		if c.Streamed() {
			stream(c)
			return
		}
		whole(c)
	}
}

// Drop closes the connection. What has been sent lacks the end that HTTP asks for.
func Drop(*Call) {
	panic(http.ErrAbortHandler) // the documented way, see http.Handler
}

// Hang says nothing until the client goes away.
func Hang(c *Call) { c.Wait() }

// Then gives one reply after the other, such as the beginning of a stream and [Drop] or
// [Hang].
func Then(replies ...Reply) Reply {
	return func(c *Call) {
		for _, r := range replies {
			r(c)
			_ = http.NewResponseController(c.W).Flush() // the client may be gone
		}
	}
}

// After gives the reply once ready is closed, or none if the client goes away
// before that.
func After(ready <-chan struct{}, r Reply) Reply {
	return func(c *Call) {
		select {
		case <-ready:
			r(c)
		case <-c.R.Context().Done():
		case <-c.closing:
		}
	}
}

// Key returns a function that finds an API key.
func Key(key string) func() (string, error) {
	return func() (string, error) { return key, nil }
}
