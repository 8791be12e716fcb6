package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"sync"

	"loki/internal/base/value"
	"loki/internal/frontend/server/stream"
)

// None is an answer without a body.
type None struct{}

// Reply is an answer that decides by itself what it is: [JSON], [Stream] or [Bytes].
type Reply struct {
	status int // 0 means that of the operation
	header http.Header
	body   any
	raw    []byte
	kind   string // of raw
	stream func(ctx context.Context, w *stream.Writer) error
}

// JSON returns a JSON answer. A status of 0 means that of the operation.
func JSON(status int, body any) *Reply { return &Reply{status: status, body: body} }

// Bytes returns an answer of another type, such as image/svg+xml.
func Bytes(status int, contentType string, body []byte) *Reply {
	return &Reply{status: status, raw: body, kind: contentType}
}

// Stream returns an answer of server-sent events, which send sends. An error before the first event is
// answered as usual; the error of a stream that has begun is sent as an event called error. Each event that
// the client takes is progress. The answer of an operation that watches has begun before send is called, which
// happens on another goroutine.
func Stream(send func(ctx context.Context, w *stream.Writer) error) *Reply {
	return &Reply{stream: send}
}

// With adds a header to the answer and returns it.
func (r *Reply) With(name, value string) *Reply {
	if r.header == nil {
		r.header = make(http.Header)
	}
	r.header.Add(name, value)
	return r
}

// answer writes the answer of an endpoint.
func (a *API) answer(ctx context.Context, w http.ResponseWriter, op Operation, out any) error {
	r, ok := out.(*Reply)
	if !ok {
		return a.writeJSON(w, op.status(reflect.TypeOf(out).Elem()), out)
	}
	for name, values := range r.header {
		w.Header()[name] = values
	}
	switch {
	case r.stream != nil:
		return a.stream(ctx, w, r.stream)
	case r.kind != "":
		w.Header().Set("Content-Type", r.kind)
		w.WriteHeader(cmp.Or(r.status, op.Status, http.StatusOK))
		_, err := w.Write([]byte(a.o.Hide(string(r.raw))))
		return writeFailure(err)
	}
	return a.writeJSON(w, cmp.Or(r.status, op.Status, http.StatusOK), r.body)
}

// stream answers with server-sent events.
func (a *API) stream(ctx context.Context, w http.ResponseWriter, send func(context.Context, *stream.Writer) error) error {
	c := callOf(ctx)
	out := stream.New(w, stream.Options{Stall: a.Limits().Timeout, Progress: func() { Progress(ctx) }})
	if c.watch != nil {
		detached, err := a.detach(ctx, c, out, send)
		if detached {
			return nil
		}
		if err != nil {
			out.Close()
			return writeFailure(err)
		}
	}
	defer out.Close()
	err := send(ctx, out)
	if _, sent := errors.AsType[writtenError](err); err == nil || sent || !out.Begun() {
		return err
	}
	a.sendError(ctx, c, out, err)
	return writeFailure(err)
}

// sendError sends the error of a stream that has begun.
func (a *API) sendError(ctx context.Context, c *call, out *stream.Writer, err error) {
	if ctx.Err() == nil || !errors.Is(context.Cause(ctx), context.Canceled) { // else no client reads it
		body, _ := value.Marshal(a.ErrorBody(ctx, err))
		name := "error"
		if c.openAI {
			name = ""
		}
		_ = out.Send(context.WithoutCancel(ctx), stream.Event{Name: name, Data: body})
	}
}

// writtenError is an error of an answer that has begun: it cannot be answered any more.
type writtenError struct{ error }

// Unwrap returns the error.
func (e writtenError) Unwrap() error { return e.error }

// MarkSent marks an error with which a stream has ended in a way of its own: no event error follows. Only the function of
// a [Stream] of an operation that does not watch returns it.
func MarkSent(err error) error { return writeFailure(err) }

func writeFailure(err error) error {
	if err == nil {
		return nil
	}
	return writtenError{err}
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// writeJSON writes an answer without secrets.
func (a *API) writeJSON(w http.ResponseWriter, status int, body any) error {
	if _, ok := body.(*None); ok || status == http.StatusNoContent {
		w.WriteHeader(status)
		return nil
	}
	b, _ := buffers.Get().(*bytes.Buffer)
	b.Reset()
	defer buffers.Put(b)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return err
	}
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(status)
	_, err := w.Write(hideJSON(b.Bytes(), a.o.Hide))
	return writeFailure(err)
}

// hideJSON returns a JSON text without secrets. Only the inside of its strings changes, so that it stays JSON.
func hideJSON(text []byte, hide func(string) string) []byte {
	if hidden := hide(string(text)); hidden == string(text) {
		return text
	}
	var out []byte
	for {
		from := bytes.IndexByte(text, '"') + 1
		if from == 0 {
			return append(out, text...)
		}
		to := from
		for text[to] != '"' {
			if text[to] == '\\' {
				to++
			}
			to++
		}
		out = append(append(out, text[:from]...), hide(string(text[from:to]))...)
		text = text[to:]
		out, text = append(out, text[0]), text[1:]
	}
}

var jsonType = []string{"application/json"}
