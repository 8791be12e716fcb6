package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/sse"
	"loki/internal/llm/provider/wire"
)

// Decoder reads a reply in the format of a provider.
type Decoder interface {
	// Document takes a reply in one piece: JSON, or nothing.
	Document(body io.Reader) error

	// Event takes the type and the data of one event of a streamed reply. The data has
	// no white space around it and is not empty. over means that nothing follows.
	Event(typ string, data []byte) (over bool, err error)

	// Complete reports whether all of a stream that matters has come.
	Complete() bool

	// End emits the tool calls and the end of the reply. cut says that it is a stream
	// that ended before it was complete, which is an error: [io.ErrUnexpectedEOF] unless
	// the decoder knows better.
	End(cut bool) error
}

// finishGrace is how long a server may be silent after all that matters: usage and the
// end of the stream should follow at once, and are not worth a longer wait.
const finishGrace = 10 * time.Second

// Read reads a reply as what it looks like, server-sent events or JSON: proxies answer in
// the form that was not asked for, and content types are often wrong. A stream that ends
// before it is complete is a [provider.Transient] failure. Read closes the body.
func (f *Frame) Read(ctx context.Context, resp *http.Response, d Decoder) error {
	defer resp.Body.Close()
	r := bufio.NewReader(wire.Halves(resp.Body))
	form, err := sniff(r, resp.Header.Get("Content-Type"))
	switch {
	case err != nil:
	case form == formEvents:
		err = readEvents(resp.Body, r, d)
	case form == formJSON:
		if err = d.Document(r); err == nil {
			err = d.End(false)
		}
	default:
		data, _ := io.ReadAll(io.LimitReader(r, maxShown)) // what has come is worth more than why no more did
		err = wire.BadReply("the reply is neither JSON nor an event stream", data)
	}
	if e, ok := err.(*provider.Error); ok {
		e.Msg = wire.JoinHalves(e.Msg)
	}
	return f.ReplyError(ctx, err)
}

// maxShown is how much is read of a body that is not a reply, in bytes.
const maxShown = 64 << 10

const (
	space         = " \t\r\n"
	byteOrderMark = "\uFEFF"
)

// form is what a body looks like.
type form int

const (
	formUnknown form = iota
	formJSON
	formEvents
)

// sniff returns the form of a body by its beginning. White space before it, which keeps
// connections alive, is skipped.
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
			return formJSON, nil
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
	for _, field := range []string{"id:", "data:", "event:", "retry:"} {
		if start, _ := r.Peek(len(field)); string(start) == field {
			return formEvents, nil
		}
	}
	return formUnknown, nil
}

// readEvents reads a streamed reply from r, which buffers body.
func readEvents(body, r io.Reader, d Decoder) error {
	over := false
	for ev, err := range sse.Decode(r, 0) {
		if err != nil && d.Complete() && provider.KindOf(err) == provider.Transient {
			break // nothing of the reply is lost
		}
		if errors.Is(err, sse.ErrTooLarge) {
			return &provider.Error{Kind: provider.BadReply, Msg: err.Error()}
		}
		if err != nil {
			return err
		}
		data := strings.TrimSpace(ev.Data)
		if data == "" || data == "null" { // which gateways send to keep the connection open
			continue
		}
		if over, err = d.Event(ev.Type, []byte(data)); err != nil {
			return err
		}
		if over {
			break
		}
		if d.Complete() {
			wire.Hurry(body, finishGrace)
		}
	}
	err := d.End(!over && !d.Complete())
	if over && err == nil {
		wire.Drain(body)
	}
	return err
}
