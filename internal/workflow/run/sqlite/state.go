package sqlite

import (
	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// writeCheckpoint writes the checkpoint of a run.
func writeCheckpoint(c *conn, e *record.Checkpoint, blobs *blobKeeper, at int64) error {
	if err := blobs.put(c, e.Doc, e.Visits); err != nil {
		return err
	}
	if err := writeChanges(c, e, blobs); err != nil {
		return err
	}
	_, err := c.exec("INSERT INTO checkpoints (run, step, at, doc, visits) VALUES (?, ?, ?, ?, ?)", blobs.run, e.Step, at, e.Doc.Data, e.Visits.Data)
	return err
}

// writeChanges writes what a checkpoint changes of the state, also for one that is on record.
func writeChanges(c *conn, e *record.Checkpoint, blobs *blobKeeper) error {
	for _, ch := range e.Changes {
		if err := blobs.put(c, ch.Doc); err != nil {
			return err
		}
		if _, err := c.exec("INSERT INTO state (run, key, step, full, doc) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET full = excluded.full, doc = excluded.doc",
			blobs.run, ch.Key, e.Step, ch.Full, ch.Doc.Data); err != nil {
			return err
		}
	}
	return nil
}

// readCheckpoint returns the checkpoint of a run after a super-step that it has.
func readCheckpoint(c *conn, blobs record.Reader, id int64, step int) (record.Snapshot, error) {
	s := record.Snapshot{Checkpoint: run.Checkpoint{Step: step, Position: run.Position{Visits: make(map[string]int)}}}
	var data []byte
	err := c.rows("SELECT doc FROM checkpoints WHERE run = ? AND step <= ? ORDER BY step", []any{id, step}, []any{&data}, func() error {
		return s.Advance(blobs, data)
	})
	if err != nil {
		return s, err
	}
	if s.Places, err = readPlaces(c, blobs, id, step); err != nil {
		return s, err
	}
	var members []value.Member
	for key, where := range s.Places {
		v, err := readValue(c, blobs, id, where)
		if err != nil {
			return s, err
		}
		members = append(members, value.Member{Name: key, Value: v})
	}
	s.State = graph.NewState(value.ObjectOf(members...))
	return s, nil
}

// readPlaces returns where the values of all keys after a super-step are. It skips
// from key to key, so that it costs nothing that a key has changed often.
func readPlaces(c *conn, blobs record.Reader, id int64, step int) (map[string]record.Place, error) {
	places := make(map[string]record.Place)
	var where record.Place
	var gone bool
	err := c.rows(`
		WITH RECURSIVE keys (key) AS (
			SELECT min(key) FROM state WHERE run = ?1
			UNION ALL
			SELECT (SELECT min(key) FROM state WHERE run = ?1 AND key > keys.key) FROM keys WHERE key IS NOT NULL
		)
		SELECT s.key, s.step, s.full, s.doc IS NULL FROM keys k JOIN state s
		ON s.run = ?1 AND s.key = k.key AND s.step = (SELECT max(step) FROM state WHERE run = ?1 AND key = k.key AND step <= ?2)`,
		[]any{id, step}, []any{&where.Key, &where.At, &where.Full, &gone}, func() error {
			if !gone {
				places[blobs.Text(where.Key)] = where
			}
			return nil
		})
	return places, err
}

// readValue returns the value at a place.
func readValue(c *conn, blobs record.Reader, id int64, where record.Place) (value.Value, error) {
	var docs [][]byte
	var data []byte
	err := c.rows("SELECT doc FROM state WHERE run = ? AND key = ? AND step BETWEEN ? AND ? ORDER BY step",
		[]any{id, where.Key, where.Full, where.At}, []any{&data}, func() error {
			docs = append(docs, data)
			data = nil
			return nil
		})
	if err != nil {
		return value.Value{}, err
	}
	return blobs.Whole(docs)
}
