package sqlite

import (
	"context"
	"errors"
	"slices"
	"time"

	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// Signal keeps a signal, also for a run that another process holds.
func (s *Store) Signal(_ context.Context, id, name string, value []byte, key string) (sig run.Signal, err error) {
	doc := s.seal().EncodeJSON(value)
	err = s.write("signal", false, func(c *conn) error {
		row, found, err := findRun(c, id)
		if err != nil {
			return err
		}
		if key != "" {
			sent, err := readSignals(c, s.readBlobs(c), row)
			if i := slices.IndexFunc(sent, func(s run.Signal) bool { return s.Key == key }); i >= 0 || err != nil {
				if err == nil {
					sig = sent[i]
				}
				return err
			}
		}
		var status string
		if _, err := c.row("SELECT status FROM runs WHERE id = ?", []any{row}, &status); err != nil {
			return err
		}
		if !run.Status(status).Resumable() {
			return &run.EndedError{ID: found, Status: run.Status(status)}
		}
		keeper := blobKeeper{run: row, known: make(map[record.Hash]int64)}
		if err := keeper.put(c, doc); err != nil {
			return err
		}
		sig = run.Signal{Name: name, Value: value, At: s.o.Now(), Key: key}
		if _, err := c.row("SELECT coalesce(max(n), 0) + 1 FROM signals WHERE run = ?", []any{row}, &sig.Number); err != nil {
			return err
		}
		if _, err := c.exec("INSERT INTO signals (run, n, name, at, doc, key) VALUES (?, ?, ?, ?, ?, ?)", row, sig.Number, name, sig.At.UnixNano(), doc.Data, key); err != nil {
			return err
		}
		_, err = c.exec("UPDATE runs SET updated = max(updated, ?) WHERE id = ?", sig.At.UnixNano(), row)
		return err
	})
	if errors.Is(err, errNoFile) {
		err = noRun(id)
	}
	return sig, err
}

// Signals returns the signals of a run.
func (s *Store) Signals(ctx context.Context, id string) (signals []run.Signal, err error) {
	err = s.viewRun(ctx, id, func(c *conn, row int64, _ string) error {
		signals, err = readSignals(c, s.readBlobs(c), row)
		return err
	})
	return signals, err
}

// Waits returns what a run waits for besides answers.
func (s *Store) Waits(ctx context.Context, id string) (waits []run.Pending, err error) {
	err = s.viewRun(ctx, id, func(c *conn, row int64, _ string) error {
		pending, err := readPending(c, s.readBlobs(c), row)
		_, waits = run.Split(pending)
		return err
	})
	return waits, err
}

// readSignals returns the signals of a run in the order in which they came.
func readSignals(c *conn, blobs record.Reader, id int64) (signals []run.Signal, err error) {
	var sig run.Signal
	var at int64
	var data, taken []byte
	err = c.rows("SELECT n, name, at, doc, taken, key FROM signals WHERE run = ? ORDER BY n", []any{id}, []any{&sig.Number, &sig.Name, &at, &data, &taken, &sig.Key}, func() error {
		text, err := blobs.JSON(data)
		if err != nil {
			return err
		}
		signals = append(signals, run.Signal{Number: sig.Number, Name: sig.Name, Value: text, At: time.Unix(0, at).UTC(), Taken: string(taken), Key: sig.Key})
		data, taken = nil, nil
		return nil
	})
	return signals, err
}

// Take takes a signal.
func (j *journal) Take(_ context.Context, name, by string, before time.Time) (sig run.Signal, ok bool, err error) {
	err = j.write("take", func(c *conn) error {
		signals, err := readSignals(c, j.store.readBlobs(c), j.id)
		if err != nil {
			return err
		}
		if sig, ok = run.FirstOf(signals, name, by, before); !ok {
			return nil
		}
		sig.Taken = by
		_, err = c.exec("UPDATE signals SET taken = ? WHERE run = ? AND n = ?", by, j.id, sig.Number)
		return err
	}, nil)
	return sig, ok, err
}
