package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"loki/internal/event"
	"loki/internal/run"
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

// eventCount returns how many events of a run are on record.
func eventCount(c *conn, id int64) (int, error) {
	var first int
	var batch []byte
	ok, err := c.row("SELECT first, batch FROM events WHERE run = ? ORDER BY n DESC LIMIT 1", []any{id}, &first, &batch)
	if err != nil || !ok {
		return 0, err
	}
	if first > 0 {
		size, err := batchSize(batch)
		return first - 1 + size, err
	}
	return uncounted(c, id)
}

// uncounted is eventCount for a run with events of a version that did not count them.
func uncounted(c *conn, id int64) (count int, err error) {
	var batch []byte
	err = c.rows("SELECT batch FROM events WHERE run = ?", []any{id}, []any{&batch}, func() error {
		size, err := batchSize(batch)
		count += size
		return err
	})
	return count, err
}

// batchSize returns the number of events in a batch.
func batchSize(batch []byte) (int, error) {
	d, err := openBatch(batch, blobReader{})
	if err != nil {
		return 0, err
	}
	size := d.length(3)
	return size, d.err
}

// openBatch returns what reads a batch, from its number of events on.
func openBatch(batch []byte, blobs blobReader) (decoder, error) {
	content, err := unseal(batch)
	if err != nil {
		return decoder{}, err
	}
	d := decoder{data: content, blobs: blobs}
	if d.byte() != tagEvents {
		return d, errDamaged
	}
	return d, nil
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
	if wrote := j.store.o.Wrote; wrote != nil {
		defer wrote(j.name) // without the lock of the events
	}
	j.nextBatch++
	j.written += len(batch)
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
	_, err := c.exec("INSERT INTO events (run, n, first, batch) VALUES (?, ?, ?, ?)", j.id, j.nextBatch, j.written+1, batch.data)
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

// readEvents returns the events of a run after the one with a number, at most limit of them; 0
// means no limit.
func readEvents(c *conn, blobs blobReader, id int64, after, limit int) (found []run.EventRecord, err error) {
	var n, first int
	var batch []byte
	// A batch has at least one event, so that none before the one sought comes after batch after+1.
	ok, err := c.row("SELECT n, first FROM events WHERE run = ? AND n <= ? AND first <= ? ORDER BY n DESC LIMIT 1", []any{id, after + 1, after + 1}, &n, &first)
	if err != nil || !ok {
		return nil, err
	}
	if first == 0 { // it was not counted, so all are
		n, first = 0, 1
	}
	rows := limit + 1
	if limit <= 0 || n == 0 {
		rows = -1
	}
	var batches [][]byte
	err = c.rows("SELECT batch FROM events WHERE run = ? AND n >= ? ORDER BY n LIMIT ?", []any{id, n, rows}, []any{&batch}, func() error {
		batches = append(batches, batch)
		batch = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, batch := range batches {
		d, err := openBatch(batch, blobs)
		if err != nil {
			return nil, err
		}
		size := d.length(3)
		if first+size <= after+1 {
			first += size
			continue
		}
		for range size {
			text := d.event(func(where place) (value.Value, error) {
				return readValue(c, blobs, id, where)
			})
			if d.err != nil {
				return nil, d.err
			}
			if first > after {
				found = append(found, run.EventRecord{Number: first, JSON: text})
			}
			first++
			if limit > 0 && len(found) == limit {
				return found, nil
			}
		}
	}
	return found, nil
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
