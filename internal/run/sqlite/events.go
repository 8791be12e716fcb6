package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"loki/internal/event"
	"loki/internal/value"
)

// A batch of events is a document: the tag, the number of events, and each event as
// its length and a JSON text. The text of a [event.StateUpdated] is without the object
// of values that it ends with. What follows it is their number, and for each its name
// and either
//
//	0 and the value, or
//	the super-step that wrote the whole value plus one, and the super-step that wrote
//	its end, if the value is the one that the key has in the state.
//
// So an event that repeats what the state has, however long, takes a few bytes.

// pendingEvent is an event that is not written yet.
type pendingEvent struct {
	doc    document       // the event, without its values if it has some; not sealed
	values []value.Member // of a state event
	state  bool
	err    error
}

// emptyValues is how a state event without values ends.
var emptyValues = []byte("{}}")

// prepareEvent encodes all of an event but the values of the state.
func (f sealer) prepareEvent(ev event.Event) pendingEvent {
	p := pendingEvent{doc: f.newDocument(256)}
	if updated, ok := ev.Body.(event.StateUpdated); ok {
		bare := ev
		bare.Body = event.StateUpdated{}
		text, err := bare.MarshalJSON()
		if head, ok := bytes.CutSuffix(text, emptyValues); ok && err == nil {
			p.state, p.values = true, updated.Values
			p.doc.json(head)
			return p
		}
	}
	// Encoding a long text as JSON, only to take it out again, would cost more than all
	// the rest.
	short, long := withoutText(ev)
	text, err := short.MarshalJSON()
	if err == nil && long != "" {
		if before, after, ok := bytes.Cut(text, placeholder); ok && !bytes.Contains(after, placeholder) {
			p.doc.jsonAround(before, long, after)
			return p
		}
		text, err = ev.MarshalJSON()
	}
	if err != nil {
		p.err = fmt.Errorf("event %s: %w", ev.Body.Type(), err)
		return p
	}
	p.doc.json(text)
	return p
}

// placeholder is the JSON of the text that withoutText leaves.
var placeholder = []byte(`"\u0000"`)

// withoutText returns the event with a placeholder for its long text, and that text;
// it is empty if the event has none.
func withoutText(ev event.Event) (short event.Event, long string) {
	replace := func(text *string) {
		if len(*text) >= blobFrom && utf8.ValidString(*text) {
			long, *text = *text, "\x00"
		}
	}
	switch body := ev.Body.(type) {
	case event.ToolResult:
		replace(&body.Text)
		ev.Body = body
	case event.Reply:
		replace(&body.Text)
		ev.Body = body
	case event.Finished:
		replace(&body.Output)
		ev.Body = body
	}
	return ev, long
}

// pending returns the events that are not written yet.
func (j *journal) pending() []pendingEvent {
	j.eventMu.Lock()
	defer j.eventMu.Unlock()
	return j.events[:len(j.events):len(j.events)]
}

// flushed drops the events of a batch, which were written.
func (j *journal) flushed(batch []pendingEvent) {
	if len(batch) == 0 {
		return
	}
	j.nextEvent++
	j.eventMu.Lock()
	defer j.eventMu.Unlock()
	j.events = append([]pendingEvent(nil), j.events[len(batch):]...)
}

// encodeEvents returns a batch as a document.
func (j *journal) encodeEvents(batch []pendingEvent) (document, error) {
	d := j.store.seal().newDocument(512 * len(batch))
	d.data = append(d.data, tagEvents)
	d.uvarint(uint64(len(batch)))
	for _, p := range batch {
		if p.err != nil {
			return d, p.err
		}
		text := p.doc.data[crcSize:]
		d.uvarint(uint64(len(text)))
		d.data = append(d.data, text...)
		d.blobs = append(d.blobs, p.doc.blobs...)
		d.data = append(d.data, tagJSON)
		if p.state {
			d.data[len(d.data)-1] = tagObject
			j.appendValues(&d, p.values)
		}
	}
	return d.seal(), nil
}

// writeEvents writes a batch in one row.
func (j *journal) writeEvents(c *conn, batch document) error {
	if err := j.blobs.put(c, batch); err != nil {
		return err
	}
	_, err := c.exec("INSERT INTO events (run, n, batch) VALUES (?, ?, ?)", j.id, j.nextEvent, batch.data)
	return err
}

// appendValues appends the values of a state event.
func (j *journal) appendValues(d *document, values []value.Member) {
	d.uvarint(uint64(len(values)))
	for _, m := range values {
		d.string(m.Name)
		current, ok := j.last.State.Get(m.Name)
		if where, known := j.last.places[m.Name]; ok && known && where.key == m.Name && identical(current, m.Value) {
			d.uvarint(uint64(where.full) + 1)
			d.uvarint(uint64(where.at))
			continue
		}
		d.uvarint(0)
		d.value(m.Value)
	}
}

// readEvents returns the events of a run in the form of machine output.
func readEvents(c *conn, blobs blobReader, id int64) (all []json.RawMessage, err error) {
	var batches [][]byte
	var data []byte
	err = c.rows("SELECT batch FROM events WHERE run = ? ORDER BY n", []any{id}, []any{&data}, func() error {
		batches = append(batches, data)
		data = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, batch := range batches {
		content, err := unseal(batch)
		if err != nil {
			return nil, err
		}
		d := decoder{data: content, blobs: blobs}
		if d.byte() != tagEvents {
			return nil, errDamaged
		}
		for range d.length(3) {
			all = append(all, d.event(func(where place) (value.Value, error) {
				return readValue(c, blobs, id, where)
			}))
		}
		if d.err != nil {
			return nil, d.err
		}
	}
	return all, nil
}

// event reads one event of a batch.
func (d *decoder) event(current func(where place) (value.Value, error)) json.RawMessage {
	one := decoder{data: d.bytes(d.length(1)), blobs: d.blobs}
	text := one.json()
	if one.err != nil {
		d.err = one.err
		return nil
	}
	if d.byte() != tagObject {
		return text
	}
	text = append(text, '{')
	for i := range d.length(3) {
		if i > 0 {
			text = append(text, ',')
		}
		name := d.string(d.byte())
		text = append(value.Of(name).AppendJSON(text), ':')
		full := d.uvarint()
		if full == 0 {
			text = d.value().AppendJSON(text)
			continue
		}
		v, err := current(place{name, int(full - 1), int(d.uvarint())})
		if d.err == nil {
			d.err = err
		}
		text = v.AppendJSON(text)
	}
	return append(text, "}}"...)
}
