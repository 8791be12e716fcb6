package openai

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"loki/internal/provider"
	"loki/internal/provider/sse"
)

// Chat implements [provider.Chat].
func (c *Client) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		err := c.chat(ctx, req, func(chunk provider.Chunk) error {
			if ctx.Err() != nil {
				return c.ioError(ctx, false, "reading the reply of", c.name, ctx.Err())
			}
			if !yield(chunk, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && err != errStopped {
			yield(provider.Chunk{}, err)
		}
	}
}

// errStopped says that the consumer of a reply wants no more of it.
var errStopped = errors.New("the consumer stopped")

// chat sends req, adapted to what the server takes, and emits its reply.
func (c *Client) chat(ctx context.Context, req provider.Request, emit func(provider.Chunk) error) error {
	m := c.lookup(req.Model)
	d := c.dialect(req.Model)
	for {
		payload := newChatRequest(req, m, d)
		x, err := c.post(ctx, opChat, req.Model, m, payload, req.Stream)
		if err != nil {
			return err
		}
		if x.ok() {
			b := &builder{emit: emit, req: req}
			defer func() { c.learn(req.Model, d, b.reasoningField) }()
			return x.secrets.inError(x.readReply(ctx, b))
		}
		r := x.reject(ctx)
		next, ok := d.adapt(x.status, r.body, payload)
		if !ok {
			return r.err
		}
		d = next // each adaptation can be made once, so this ends
	}
}

// readReply reads a reply of either form and closes the body.
func (x *exchange) readReply(ctx context.Context, b *builder) error {
	defer x.body.Close()
	r := bufio.NewReader(x.body)
	form, err := sniff(r, x.header.Get("Content-Type"))
	if err != nil {
		return x.readError(ctx, err)
	}
	switch form {
	case formEvents:
		err = x.readEvents(ctx, r, b)
	case formJSON:
		err = x.readDocument(ctx, r, b)
	default:
		data, _ := io.ReadAll(io.LimitReader(r, maxFailure)) // only shown
		err = badReply("the reply is neither JSON nor an event stream", data)
	}
	if err != nil && err != errStopped {
		if flushed := b.flush(); flushed != nil {
			return flushed
		}
	}
	return err
}

const byteOrderMark = "\uFEFF"

// form is what a body looks like.
type form int

const (
	formUnknown form = iota
	formJSON
	formEvents
)

// sniff tells the form of a body by its beginning: content types are often wrong.
// White space before it, which keeps connections alive, is skipped.
func sniff(r *bufio.Reader, contentType string) (form, error) {
	events := strings.HasPrefix(contentType, "text/event-stream")
	for {
		first, err := r.Peek(1)
		if err == nil && first[0] == byteOrderMark[0] {
			if mark, _ := r.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
				_, _ = r.Discard(len(mark)) // it has been peeked
				continue
			}
		}
		switch {
		case err == io.EOF && events:
			return formEvents, nil
		case err == io.EOF:
			return formUnknown, nil
		case err != nil:
			return formUnknown, err
		case strings.IndexByte(space, first[0]) >= 0:
			_, _ = r.Discard(1) // it has been peeked
			continue
		case first[0] == '{' || first[0] == '[':
			return formJSON, nil
		case first[0] == '<':
			return formUnknown, nil // a page, which an event stream would pass over in silence
		case events || first[0] == ':':
			return formEvents, nil
		}
		break
	}
	start, err := r.Peek(len("retry:"))
	if err != nil && err != io.EOF {
		return formUnknown, err
	}
	for _, field := range []string{"data:", "event:", "id:", "retry:"} {
		if n := min(len(field), len(start)); n > 0 && string(start[:n]) == field[:n] {
			return formEvents, nil
		}
	}
	return formUnknown, nil
}

// readDocument reads a reply in one piece.
func (x *exchange) readDocument(ctx context.Context, r io.Reader, b *builder) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return x.readError(ctx, err)
	}
	if err := b.document(data, true); err != nil {
		return err
	}
	if !b.choices {
		return notAReply("choice", data)
	}
	return b.end()
}

// finishGrace is how long a server may be silent after the finish reason: usage and
// the end of the stream should follow at once, and are not worth a longer wait.
const finishGrace = 10 * time.Second

// readEvents reads a streamed reply.
func (x *exchange) readEvents(ctx context.Context, r io.Reader, b *builder) error {
	done := false
	for ev, err := range sse.Decode(r, 0) {
		if err != nil {
			if b.finish != "" && ctx.Err() == nil {
				break // all that matters has come
			}
			if errors.Is(err, sse.ErrTooLarge) {
				return &provider.Error{Kind: provider.BadReply, Msg: err.Error()}
			}
			return x.readError(ctx, err)
		}
		data := strings.TrimSpace(ev.Data)
		if data == "[DONE]" {
			done = true
			break
		}
		if data == "" {
			continue
		}
		if err := b.event(ev.Type, []byte(data)); err != nil {
			return err
		}
		if b.finish != "" && (x.body.silence == 0 || x.body.silence > finishGrace) {
			x.body.silence = finishGrace
		}
	}
	if !done && b.finish == "" {
		return x.readError(ctx, io.ErrUnexpectedEOF)
	}
	if err := b.end(); err != nil {
		return err
	}
	if done {
		x.body.drain()
	}
	return nil
}

// event takes the data of one event. Events of the type error hold errors, in
// whatever form.
func (b *builder) event(typ string, data []byte) error {
	if typ != "error" {
		return b.document(data, false)
	}
	if err := failureWithin(data); err != nil {
		return err
	}
	return failure{msg: shorten(string(data), maxMessage)}.asError(0, nil)
}
