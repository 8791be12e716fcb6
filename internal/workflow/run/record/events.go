package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
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

// Event is an event as it is written.
type Event struct {
	doc    Document       // the event, without its values if it has some; not sealed
	values []value.Member // of a state event
	state  bool
	err    error
}

// emptyValues is how a state event without values ends.
var emptyValues = []byte("{}}")

// Event encodes all of an event but the values of the state.
func (f Sealer) Event(ev event.Event) Event {
	p := Event{doc: f.newDocument(256)}
	if updated, ok := ev.Body.(event.StateUpdated); ok {
		bare := ev
		bare.Body = event.StateUpdated{Set: updated.Set}
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

// BatchSize returns the number of events in a batch.
func BatchSize(batch []byte) (int, error) {
	d, err := openBatch(batch, Reader{})
	if err != nil {
		return 0, err
	}
	size := d.length(3)
	return size, d.err
}

// openBatch returns what reads a batch, from its number of events on.
func openBatch(batch []byte, blobs Reader) (decoder, error) {
	content, err := unseal(batch)
	if err != nil {
		return decoder{}, err
	}
	d := decoder{data: content, blobs: blobs}
	if d.byte() != tagEvents {
		return d, ErrDamaged
	}
	return d, nil
}

// Events returns a batch of events as a document. last is the state that they may repeat values of.
func (f Sealer) Events(batch []Event, last *Snapshot) (Document, error) {
	d := f.newDocument(512 * len(batch))
	d.Data = append(d.Data, tagEvents)
	d.uvarint(uint64(len(batch)))
	for _, p := range batch {
		if p.err != nil {
			return d, p.err
		}
		text := p.doc.Data[crcSize:]
		d.uvarint(uint64(len(text)))
		d.Data = append(d.Data, text...)
		d.Blobs = append(d.Blobs, p.doc.Blobs...)
		d.Data = append(d.Data, tagJSON)
		if p.state {
			d.Data[len(d.Data)-1] = tagObject
			d.stateValues(last, p.values)
		}
	}
	return d.seal(), nil
}

// stateValues appends the values of a state event.
func (d *Document) stateValues(last *Snapshot, values []value.Member) {
	d.uvarint(uint64(len(values)))
	for _, m := range values {
		d.string(m.Name)
		current, ok := last.State.Get(m.Name)
		if where, known := last.Places[m.Name]; ok && known && where.Key == m.Name && identical(current, m.Value) {
			d.uvarint(uint64(where.Full) + 1)
			d.uvarint(uint64(where.At))
			continue
		}
		d.uvarint(0)
		d.value(m.Value)
	}
}

// Batch appends the events of a batch, whose first one has a number, after the one with the number after,
// until found has limit of them; 0 means no limit. current returns the value at a place.
func (r Reader) Batch(found []run.EventRecord, batch []byte, first, after, limit int, current func(Place) (value.Value, error)) ([]run.EventRecord, error) {
	d, err := openBatch(batch, r)
	if err != nil {
		return nil, err
	}
	size := d.length(3)
	if first+size <= after+1 {
		return found, d.err
	}
	for ; size > 0 && (limit <= 0 || len(found) < limit); size-- {
		text := d.event(current)
		if d.err != nil {
			return nil, d.err
		}
		if first > after {
			found = append(found, run.EventRecord{Number: first, JSON: text})
		}
		first++
	}
	return found, d.err
}

// event reads one event of a batch.
func (d *decoder) event(current func(where Place) (value.Value, error)) json.RawMessage {
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
		v, err := current(Place{name, int(full - 1), int(d.uvarint())})
		if d.err == nil {
			d.err = err
		}
		text = v.AppendJSON(text)
	}
	return append(text, "}}"...)
}
