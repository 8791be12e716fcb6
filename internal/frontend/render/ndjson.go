package render

import (
	"context"
	"io"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/event"
)

// NDJSON writes each event as one line of JSON, as docs/events.md describes it, in one
// Write each.
type NDJSON struct {
	out  io.Writer
	now  func() time.Time
	buf  []byte
	over bool // the last event of depth 0 was Finished
}

// NewNDJSON returns an NDJSON that writes to out; a nil now means time.Now.
func NewNDJSON(out io.Writer, now func() time.Time) *NDJSON {
	if now == nil {
		now = time.Now
	}
	return &NDJSON{out: out, now: now}
}

// Emit writes ev. The error is that of the writer.
func (n *NDJSON) Emit(_ context.Context, ev event.Event) error {
	if ev.Depth == 0 {
		_, n.over = ev.Body.(event.Finished)
	}
	var err error
	if n.buf, err = value.AppendJSON(n.buf[:0], ev); err == nil {
		n.buf = append(n.buf, '\n')
		_, err = n.out.Write(n.buf)
	}
	return err
}

// Close makes sure that the stream ends with a finished event: if the work ended without
// one, it writes one with the code and text of err.
func (n *NDJSON) Close(err error) error {
	if n.over {
		return nil
	}
	var fin event.Finished
	if err != nil {
		fin.Error, fin.Code = err.Error(), string(fault.CodeOf(err))
	}
	return n.Emit(context.Background(), event.Event{Time: n.now(), Body: fin})
}
