// Package sse reads server-sent events: a stream of lines "field: value" in which
// an empty line ends an event.
//
// [Decode] follows the event stream interpretation of the WHATWG HTML standard,
// section 9.2: a leading byte order mark is skipped; a line ends with LF, CR or
// CR LF; one space after the colon belongs to the colon; several data fields are
// joined by LF; comments, unknown fields and events without data are skipped; an
// event that the end of the stream cuts off is dropped. The field retry is read
// over, because nothing here reconnects. Bytes that are not UTF-8 become U+FFFD.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// DefaultMaxSize is the limit that [Decode] uses for maxSize 0, in bytes.
const DefaultMaxSize = 16 << 20

// ErrTooLarge is in the chain of the error for a line or an event over the limit.
var ErrTooLarge = errors.New("too large")

// Event is one dispatched event.
type Event struct {
	Type string // "message" if the stream names none
	Data string // empty only for data fields without a value
	ID   string // the last event id that the stream has set, empty if none
}

// Decode returns the events of r as they arrive: an event is yielded as soon as
// the line that ends it has been read, without waiting for further bytes.
//
// maxSize bounds a line, and the data of an event, in bytes; 0 means
// [DefaultMaxSize]. If r fails with anything but [io.EOF], or the limit is passed,
// the sequence yields one error after the events before it, and stops. The
// sequence can be ranged over once; it starts no goroutine and does not close r.
func Decode(r io.Reader, maxSize int) iter.Seq2[Event, error] {
	if maxSize <= 0 {
		maxSize = DefaultMaxSize
	}
	return func(yield func(Event, error) bool) {
		lines := lineReader{r: bufio.NewReader(r), max: maxSize}
		var ev pending
		for {
			line, err := lines.next()
			if err == io.EOF {
				return
			}
			if err == nil {
				err = ev.add(line, maxSize)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			if len(line) == 0 {
				if e, ok := ev.dispatch(); ok && !yield(e, nil) {
					return
				}
			}
		}
	}
}

// pending is the event that is being read.
type pending struct {
	data   []byte // each value followed by LF
	typ    string
	lastID string
}

func (p *pending) add(line []byte, maxSize int) error {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) { // a comment has an empty field name
	case "data":
		if len(p.data)+len(value) > maxSize {
			return fmt.Errorf("server-sent event: %w: more than %d bytes of data", ErrTooLarge, maxSize)
		}
		p.data = append(append(p.data, value...), '\n')
	case "event":
		p.typ = text(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			p.lastID = text(value)
		}
	}
	return nil
}

// dispatch returns the event and makes room for the next one.
func (p *pending) dispatch() (Event, bool) {
	e := Event{Type: p.typ, ID: p.lastID}
	if e.Type == "" {
		e.Type = "message"
	}
	ok := len(p.data) > 0
	if ok {
		e.Data = text(p.data[:len(p.data)-1])
	}
	p.data, p.typ = p.data[:0], ""
	return e, ok
}

// text returns b with U+FFFD for each byte that is not UTF-8.
func text(b []byte) string { return string([]rune(string(b))) }
