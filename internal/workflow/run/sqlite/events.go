package sqlite

import (
	"loki/internal/base/value"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// eventCount returns how many events of a run are on record.
func eventCount(c *conn, id int64) (int, error) {
	var first int
	var batch []byte
	ok, err := c.row("SELECT first, batch FROM events WHERE run = ? ORDER BY n DESC LIMIT 1", []any{id}, &first, &batch)
	if err != nil || !ok {
		return 0, err
	}
	if first > 0 {
		size, err := record.BatchSize(batch)
		return first - 1 + size, err
	}
	return countEvents(c, id)
}

// countEvents is eventCount for a run with events of a version that did not count them.
func countEvents(c *conn, id int64) (count int, err error) {
	var batch []byte
	err = c.rows("SELECT batch FROM events WHERE run = ?", []any{id}, []any{&batch}, func() error {
		size, err := record.BatchSize(batch)
		count += size
		return err
	})
	return count, err
}

// dropFlushed drops the events of a batch, which were written.
func (j *journal) dropFlushed(batch []record.Event) {
	if len(batch) == 0 {
		return
	}
	if wrote := j.store.o.Wrote; wrote != nil {
		defer wrote(j.name) // without the lock of the events
	}
	j.nextBatch++
	j.written += len(batch)
	j.events.Drop(len(batch))
}

// writeEvents writes a batch in one row.
func (j *journal) writeEvents(c *conn, batch record.Document) error {
	if err := j.blobs.put(c, batch); err != nil {
		return err
	}
	_, err := c.exec("INSERT INTO events (run, n, first, batch) VALUES (?, ?, ?, ?)", j.id, j.nextBatch, j.written+1, batch.Data)
	return err
}

// readEvents returns the events of a run after the one with a number, at most limit of them; 0
// means no limit.
func readEvents(c *conn, blobs record.Reader, id int64, after, limit int) (found []run.EventRecord, err error) {
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
		size, err := record.BatchSize(batch)
		if err == nil {
			found, err = blobs.Batch(found, batch, first, after, limit, func(where record.Place) (value.Value, error) { return readValue(c, blobs, id, where) })
		}
		if err != nil {
			return nil, err
		}
		if first += size; limit > 0 && len(found) == limit {
			break
		}
	}
	return found, nil
}
