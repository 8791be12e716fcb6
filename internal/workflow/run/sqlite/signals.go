package sqlite

import (
	"context"
	"slices"
	"time"

	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// Signal keeps a signal, also for a run that another process holds.
func (s *Store) Signal(ctx context.Context, id, name string, value []byte, key string) (sig run.Signal, err error) {
	doc := s.seal().EncodeJSON(value)
	err = s.writeRun("signal", id, func(c *conn, row int64, found string) error {
		if key != "" {
			sent, err := record.Signals(ctx, s.on(c), row)
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
		_, err := c.exec("UPDATE runs SET updated = max(updated, ?) WHERE id = ?", sig.At.UnixNano(), row)
		return err
	})
	return sig, err
}

// Withdraw withdraws a signal, also of a run that another process holds.
func (s *Store) Withdraw(_ context.Context, id string, number int) (ok bool, err error) {
	err = s.writeRun("withdraw", id, func(c *conn, row int64, _ string) error {
		done, err := c.exec("UPDATE signals SET taken = ? WHERE run = ? AND n = ? AND taken IS NULL", run.Withdrawn, row, number)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		ok = n > 0
		return err
	})
	return ok, err
}

// Take takes a signal.
func (j *journal) Take(ctx context.Context, name, by string, before time.Time) (sig run.Signal, ok bool, err error) {
	err = j.write("take", func(c *conn) error {
		signals, err := record.Signals(ctx, j.store.on(c), j.id)
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
