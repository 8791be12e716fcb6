package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

// idempotencyHeader is the header of a request that must not be done twice.
const idempotencyHeader = "Idempotency-Key"

// mostKey is the greatest length of such a key, in bytes.
const mostKey = 255

// mostKept is the size of the largest answer that is kept, in bytes.
const mostKept = 8 << 20

// Answers keeps the answers of requests with an Idempotency-Key for a day. Its methods may be called from
// several goroutines.
type Answers interface {
	// Begin says that the request with a key of a subject is about to be done. digest covers all that matters in it. It
	// returns nil if the request must be done, and otherwise what is known of the earlier request with that key. With
	// again set, a request that is the same and was lost before it had a place must be done, too.
	Begin(ctx context.Context, subject, key string, digest []byte, again bool) (*Kept, error)
	// Place says where a request that has been begun has its effect, should its server end before it is answered.
	Place(ctx context.Context, subject, key, where string) error
	// End keeps the answer of a request that has been begun.
	End(ctx context.Context, subject, key string, answer Kept) error
	// Forget says that a request that has been begun was not done: it may come again.
	Forget(ctx context.Context, subject, key string) error
}

// Kept is an answer that was given before.
type Kept struct {
	Digest []byte // of the request
	State  KeptState
	Status int    // 0 if the client has gone before it came
	Type   string // Content-Type
	Where  string // Location; also without an answer, if the request had its effect there
	Body   []byte
}

// KeptState says how far a request has come.
type KeptState int

// The states of a request.
const (
	KeptWhole   KeptState = iota // it was answered
	KeptRunning                  // it is at work
	KeptLost                     // it was at work when the server ended
)

// Commit says that the request that is served with ctx has had its effect, which stays even if the client
// goes away: a second request with the same Idempotency-Key must not have it again. where is the path of
// the result, such as a run.
func Commit(ctx context.Context, where string) { callOf(ctx).committed = where }

// Began says that the request that is served with ctx begins to have its effect, such as a run that is on record and continues even
// if the server ends. where is the path of that. Unlike with [Commit] the request may still fail, and be done again then.
func Began(ctx context.Context, where string) {
	if c := callOf(ctx); c.place != nil {
		c.place(where)
	}
}

// RepeatKey returns what identifies the request that is served with ctx and all that repeat it with the same Idempotency-Key, "" for a
// request without one.
func RepeatKey(ctx context.Context) string { return callOf(ctx).repeat }

// once serves a request, or answers as the request with the same key was answered. body is that of the
// request.
func (a *API) once(w http.ResponseWriter, r *http.Request, op Operation, body []byte, serve func(w http.ResponseWriter) error) error {
	keys := r.Header[idempotencyHeader]
	if !op.Idempotent || len(keys) == 0 || a.o.Kept == nil {
		return serve(w)
	}
	key := keys[0]
	if len(keys) > 1 || key == "" || len(key) > mostKey {
		return Invalid(idempotencyHeader, "%s: one key of 1 to %d bytes is expected", idempotencyHeader, mostKey)
	}
	c := callOf(r.Context())
	subject, digest := c.identity.Subject, digestOf(r, c.stream, body)
	before, err := a.o.Kept.Begin(r.Context(), subject, key, digest, op.Again || op.Keyed)
	if err != nil {
		return err
	}
	if before != nil {
		c.outcome.Replayed = true
		return replay(w, digest, before)
	}
	c.place = func(where string) {
		if op.Keyed {
			return // the request may be done again wherever it had its effect
		}
		if err := a.o.Kept.Place(context.WithoutCancel(r.Context()), subject, key, where); err != nil {
			a.o.Log.Warn("it could not be kept where a request has its effect", "request_id", c.id, "error", err.Error())
		}
	}
	own := sha256.Sum256([]byte(subject + "\x00" + key))
	c.repeat = hex.EncodeToString(own[:])
	tape := &tape{StatusWriter: StatusWriter{ResponseWriter: w}}
	done := false
	defer func() { // also after a panic
		a.settle(context.WithoutCancel(r.Context()), subject, key, tape, done, c.committed)
	}()
	if err := serve(tape); err != nil {
		return err
	}
	done = tape.Status < http.StatusBadRequest
	return nil
}

// settle keeps what is on the tape if the request is done, or else what it has committed. Without either it
// forgets that there was a request.
func (a *API) settle(ctx context.Context, subject, key string, t *tape, done bool, committed string) {
	var err error
	switch {
	case done && !t.long:
		k := Kept{Status: t.Status, Type: t.Header().Get("Content-Type"), Where: t.Header().Get("Location"), Body: t.body.Bytes()}
		err = a.o.Kept.End(ctx, subject, key, k)
	case done || committed != "":
		err = a.o.Kept.End(ctx, subject, key, Kept{Where: committed})
	default:
		err = a.o.Kept.Forget(ctx, subject, key)
	}
	if err != nil {
		a.o.Log.Error("an answer could not be kept", "request_id", RequestID(ctx), "error", err.Error())
	}
}

// digestOf returns the digest of all that matters in a request.
func digestOf(r *http.Request, stream bool, body []byte) []byte {
	h := sha256.New()
	for _, part := range []string{r.Method, r.URL.Path, r.URL.RawQuery} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	if stream {
		h.Write([]byte{1})
	}
	h.Write(body)
	return h.Sum(nil)
}

// replay answers as before.
func replay(w http.ResponseWriter, digest []byte, k *Kept) error {
	switch {
	case !bytes.Equal(k.Digest, digest):
		return &Error{
			Status: http.StatusUnprocessableEntity, Code: "idempotency_mismatch", Param: idempotencyHeader,
			Message: "the key was used for another request in the last 24 hours", Hint: "send each request with a key of its own",
		}
	case k.State == KeptRunning:
		if k.Where != "" {
			w.Header().Set("Location", k.Where)
		}
		e := Conflict("the request with this key is still at work").WithHint("wait for its answer, or ask again later")
		e.RetryAfter = time.Second
		return e
	case k.State == KeptLost && k.Where != "":
		w.Header().Set("Location", k.Where)
		return Conflict("the server ended while it worked on the request with this key, which had begun").
			WithHint("GET %s shows how far it has come; what is there is not to be done again", k.Where)
	case k.State == KeptLost:
		return Conflict("the server ended while it worked on the request with this key, so it is not known how far it came").
			WithHint("check what was done, for example with GET /v1/runs, and repeat the request with another key")
	case k.Status == 0 && k.Where != "":
		w.Header().Set("Location", k.Where)
		return Conflict("the request with this key was done, but the client did not wait for its answer").
			WithHint("GET %s shows the result", k.Where)
	case k.Status == 0:
		return Conflict("the request with this key was done, but its answer was not kept").
			WithHint("check what was done, for example with GET /v1/runs; for another request use another key")
	}
	if k.Type != "" {
		w.Header().Set("Content-Type", k.Type)
	}
	if k.Where != "" {
		w.Header().Set("Location", k.Where)
	}
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(k.Status)
	_, err := w.Write(k.Body)
	return writeFailure(err)
}

// tape is a writer that keeps a copy of the answer.
type tape struct {
	StatusWriter
	body bytes.Buffer
	long bool // the answer is longer than mostKept
}

// Write writes a part of the body.
func (t *tape) Write(p []byte) (int, error) {
	if t.long = t.long || t.body.Len()+len(p) > mostKept; !t.long {
		t.body.Write(p)
	}
	return t.StatusWriter.Write(p)
}
