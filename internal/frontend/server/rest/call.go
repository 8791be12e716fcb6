package rest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/service/auth"
)

// call is a request while it is served.
type call struct {
	id       string
	identity auth.Identity
	stream   bool // the client asks for server-sent events in its Accept header
	openAI   bool // errors have OpenAI's shape
	route    string
	outcome  Outcome // without what is elsewhere in call
	admitted bool    // nothing keeps it from its endpoint

	commandLine bool // the client is Loki's command line, whose users read hints of flags

	ignored   []string           // members of the body that the endpoint does not know
	body      []byte             // of the request, read before it takes a slot
	place     func(where string) // see Began; nil for a request without an Idempotency-Key
	repeat    string             // see RepeatKey
	committed string             // where its effect is, see Commit; "" if it has had none

	watch *watching // nil for a request that does not watch

	timeout time.Duration
	timer   *time.Timer // ends the request; nil while there is none
}

type callKey struct{}

// callOf returns the request that is served with ctx. Without one it is an empty one.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{identity: auth.Nobody()}
}

// Begin gives a request its id: the client's if it is sane, else a new one. It returns the request with the
// context that endpoints need, and sets the header of the answer.
func Begin(w http.ResponseWriter, r *http.Request) *http.Request {
	c := &call{
		id: r.Header.Get("X-Request-Id"), stream: strings.Contains(r.Header.Get("Accept"), "text/event-stream"),
		commandLine: r.Header.Get("User-Agent") == api.CommandLine,
	}
	if !isSane(c.id) {
		c.id = newUUID()
	}
	w.Header()["X-Request-Id"] = []string{c.id}
	if hasBody(r) { // before the server answers, it reads also what no endpoint wants
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(strangersBody))
	}
	return r.WithContext(context.WithValue(r.Context(), callKey{}, c))
}

// isSane reports whether a client's id may appear in logs and answers.
func isSane(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// newUUID returns a random UUID, version 4 of RFC 9562.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	var s [36]byte
	hex.Encode(s[:8], b[:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:], b[10:])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// Body returns the body of the request that is served with ctx.
func Body(ctx context.Context) []byte { return callOf(ctx).body }

// Subject returns who made the request that is served with ctx.
func Subject(ctx context.Context) auth.Identity { return callOf(ctx).identity }

// RequestID returns the id of the request that is served with ctx.
func RequestID(ctx context.Context) string { return callOf(ctx).id }

// Route returns the path of the endpoint that serves a request, with placeholders; empty if there is none.
func Route(ctx context.Context) string { return callOf(ctx).route }

// IgnoredMembers returns the members of the body that the endpoint does not know and ignores, see [Limits].
func IgnoredMembers(ctx context.Context) []string { return callOf(ctx).ignored }

// WantsStream reports whether the client asks for server-sent events in its Accept header.
func WantsStream(ctx context.Context) bool { return callOf(ctx).stream }

// Progress says that the request that is served with ctx has come nearer to its end, so that it is not
// ended for lack of progress. A stream does so by itself whenever the client takes something.
func Progress(ctx context.Context) {
	if c := callOf(ctx); c.timer != nil {
		c.timer.Reset(c.timeout)
	}
}

// Wait says that the request that is served with ctx waits, for a time that its client has bounded: it is not
// ended for lack of progress until the next Progress.
func Wait(ctx context.Context) {
	if c := callOf(ctx); c.timer != nil {
		c.timer.Stop()
	}
}
