package openai

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"loki/internal/provider"
	"loki/internal/provider/sse"
	"loki/internal/provider/wire"
)

// readReply reads a reply of either form.
func readReply(resp *http.Response, d decoder) error {
	r := bufio.NewReader(resp.Body)
	form, err := sniff(r, resp.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	switch form {
	case formEvents:
		err = readEvents(resp.Body, r, d)
	case formJSON:
		err = readDocument(r, d)
	default:
		data, _ := io.ReadAll(io.LimitReader(r, maxShown))
		err = wire.BadReply("the reply is neither JSON nor an event stream", data)
	}
	if err != nil && err != errStopped {
		if flushed := d.flush(); flushed != nil {
			return flushed
		}
	}
	return err
}

// maxShown is how much is read of a body that is no reply, in bytes.
const maxShown = 64 << 10

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
func readDocument(r io.Reader, d decoder) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := d.document(data); err != nil {
		return err
	}
	return d.end()
}

// finishGrace is how long a server may be silent after all that matters: usage and
// the end of the stream should follow at once, and are not worth a longer wait.
const finishGrace = 10 * time.Second

// readEvents reads a streamed reply from r, which buffers body.
func readEvents(body, r io.Reader, d decoder) error {
	over := false
	for ev, err := range sse.Decode(r, 0) {
		if err != nil {
			if d.complete() && isTransient(err) {
				break
			}
			return tooLarge(err)
		}
		data := strings.TrimSpace(ev.Data)
		if data == "[DONE]" {
			over = true
			break
		}
		if data == "" {
			continue
		}
		if over, err = d.event(ev.Type, []byte(data)); err != nil {
			return err
		}
		if over {
			break
		}
		if d.complete() {
			wire.Hurry(body, finishGrace)
		}
	}
	if !over && !d.complete() {
		return io.ErrUnexpectedEOF
	}
	if err := d.end(); err != nil {
		return err
	}
	if over {
		wire.Drain(body)
	}
	return nil
}

// isTransient reports a broken connection, and not the caller's own cancellation.
func isTransient(err error) bool {
	e, ok := errors.AsType[*provider.Error](err)
	return ok && e.Kind == provider.Transient
}

// tooLarge makes an event over the limit of package sse a bad reply.
func tooLarge(err error) error {
	if errors.Is(err, sse.ErrTooLarge) {
		return &provider.Error{Kind: provider.BadReply, Msg: err.Error()}
	}
	return err
}

// reportedError returns the failure that an event of the type error reports.
func reportedError(data []byte) error {
	var doc map[string]any
	if json.Unmarshal(data, &doc) != nil {
		return wire.Complaint(string(data), "", "")
	}
	return wire.Lacking("answer", data)
}

// notAnObject returns the error for a document that is not of the form of a reply.
func notAnObject(doc []byte) error {
	return cmp.Or(wire.ReplyError(doc), wire.BadReply("the reply is not a JSON object of the expected form", doc))
}
