// Package stream writes answers of server-sent events.
//
// Source: the HTML standard, section 9.2, "Server-sent events".
package stream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Event is one frame of a stream.
type Event struct {
	ID   string // where a client resumes, in its header Last-Event-ID; empty for none
	Name string // empty for a message without one
	Data []byte // may have several lines
}

// Options configure New. The zero value of a field is its default.
type Options struct {
	// Comment is how long the stream is silent before a comment keeps proxies awake; 0 means 15 s.
	Comment time.Duration
	// Stall is how long a client may take nothing before it is cut; 0 means 5 minutes.
	Stall time.Duration
	// Progress is called after each write of events that the client's connection has taken; nil for none.
	Progress func()
}

// Writer writes one stream. It may be used from several goroutines. Frames are sent at once. A reader that
// is slow slows Send down, and nothing else.
type Writer struct {
	w    http.ResponseWriter // changed by Detach only
	ctl  *http.ResponseController
	o    Options
	beat *time.Timer

	mu       sync.Mutex // guards what follows, and what is written
	begun    bool
	done     bool
	err      error     // of an earlier write
	detached *detached // what w is, if the stream is detached
}

// ErrGone is the error of a stream that is closed, or whose reader has gone or was cut.
var ErrGone = errors.New("the client of the stream disconnected")

// New returns a stream that answers a request. Nothing is written before the first event or comment. The
// caller closes it before the request ends.
func New(w http.ResponseWriter, o Options) *Writer {
	if o.Comment == 0 {
		o.Comment = 15 * time.Second
	}
	if o.Stall == 0 {
		o.Stall = 5 * time.Minute
	}
	s := &Writer{w: w, ctl: http.NewResponseController(w), o: o}
	s.mu.Lock() // for the timer
	defer s.mu.Unlock()
	s.beat = time.AfterFunc(o.Comment, s.comment)
	return s
}

// Begun reports whether anything has been sent, so that the status of the answer is settled.
func (s *Writer) Begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// Send sends an event. It returns when the connection has taken it, with [ErrGone] in the error's chain if it
// never will. An ended ctx is an error, too.
func (s *Writer) Send(ctx context.Context, ev Event) error {
	return s.SendAll(ctx, []Event{ev})
}

// SendAll sends events in one write.
func (s *Writer) SendAll(ctx context.Context, events []Event) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	b, _ := frames.Get().(*bytes.Buffer)
	defer frames.Put(b)
	b.Reset()
	for _, ev := range events {
		ev.appendTo(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.write(b.Bytes())
	if err == nil && s.o.Progress != nil {
		s.o.Progress()
	}
	return err
}

// frames are buffers for what is sent: a stream that is silent has none.
var frames = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Close ends the stream. It waits for a write that is under way.
func (s *Writer) Close() {
	s.beat.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	if s.detached != nil {
		s.detached.end(s.err)
		s.detached = nil
		return
	}
	_ = s.ctl.SetWriteDeadline(time.Time{})
}

// comment keeps the connection awake.
func (s *Writer) comment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done && s.err == nil {
		_ = s.write([]byte(":\n\n"))
	}
}

// write writes and flushes. The caller holds mu.
func (s *Writer) write(p []byte) error {
	if s.done {
		return ErrGone
	}
	if s.err != nil {
		return s.err
	}
	if !s.begun {
		s.begun = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
	}
	_ = s.ctl.SetWriteDeadline(time.Now().Add(s.o.Stall))
	_, err := s.w.Write(p)
	if err == nil {
		err = s.ctl.Flush()
	}
	if err != nil {
		s.err = errors.Join(ErrGone, err)
		return s.err
	}
	s.beat.Reset(s.o.Comment)
	return nil
}

// Frame returns the event as it is sent.
func (e Event) Frame() []byte {
	var b bytes.Buffer
	e.appendTo(&b)
	return b.Bytes()
}

// appendTo appends the frame. Line ends within id and name would end the field: they are left out.
func (e Event) appendTo(b *bytes.Buffer) {
	for _, field := range []struct{ name, value string }{{"id: ", e.ID}, {"event: ", e.Name}} {
		if field.value != "" {
			b.WriteString(field.name + strings.Map(inLine, field.value) + "\n")
		}
	}
	data := bytes.ReplaceAll(bytes.ReplaceAll(e.Data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	b.WriteString("data: ")
	b.Write(bytes.ReplaceAll(data, []byte("\n"), []byte("\ndata: ")))
	b.WriteString("\n\n")
}

// inLine drops the characters that a field cannot have.
func inLine(r rune) rune {
	if r == '\n' || r == '\r' || r == 0 {
		return -1
	}
	return r
}
