package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/service/postgres"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// Signal keeps a signal, also of a run that is at work. A run that waits for it is ready.
func (s *Store) Signal(ctx context.Context, id, name string, value []byte, key string) (sig run.Signal, err error) {
	doc := s.seal().EncodeJSON(value)
	var of string
	err = s.change(ctx, "signal", id, func(ctx context.Context, tx pgx.Tx, r locked) error {
		of = r.name
		sent, err := record.Signals(ctx, s.view(tx), r.id)
		if i := slices.IndexFunc(sent, func(s run.Signal) bool { return key != "" && s.Key == key }); i >= 0 || err != nil {
			if err == nil {
				sig = sent[i]
			}
			return err
		}
		if !r.status.Resumable() {
			return &run.EndedError{ID: r.name, Status: r.status}
		}
		now := s.now()
		sig = run.Signal{Name: name, Value: value, At: moment(now), Key: key}
		if err := tx.QueryRow(ctx, `SELECT coalesce(max(n), 0) + 1 FROM loki.signals WHERE run = $1`, r.id).Scan(&sig.Number); err != nil {
			return err
		}
		pending, err := record.Questions(ctx, s.view(tx), r.id, false)
		if err != nil {
			return err
		}
		wakes := slices.ContainsFunc(pending, func(p run.Pending) bool { return p.Arrived([]run.Signal{sig}, sig.At) })
		b := &pgx.Batch{}
		b.Queue(`UPDATE loki.leases SET answered = answered OR $3, updated = greatest(updated, $2) WHERE run = $1`, r.id, now, wakes)
		(&journal{id: r.id}).queueBlobs(b, []record.Document{doc})
		b.Queue(`INSERT INTO loki.signals (run, n, name, at, doc, key) VALUES ($1, $2, $3, $4, $5, $6)`, r.id, sig.Number, postgres.Text(name), now, doc.Data, postgres.Text(key))
		if wakes {
			b.Queue(`UPDATE loki.runs SET due = 0, rested = $2 WHERE id = $1 AND status = $3`, r.id, now, string(run.Suspended))
		}
		return tx.SendBatch(ctx, b).Close()
	})
	if err == nil {
		s.notify(of)
	}
	return sig, err
}

// Withdraw withdraws a signal, also of a run that is at work.
func (s *Store) Withdraw(ctx context.Context, id string, number int) (ok bool, err error) {
	err = s.change(ctx, "withdraw", id, func(ctx context.Context, tx pgx.Tx, r locked) error {
		done, err := tx.Exec(ctx, `UPDATE loki.signals SET taken = $3 WHERE run = $1 AND n = $2 AND taken IS NULL`, r.id, number, run.Withdrawn)
		ok = err == nil && done.RowsAffected() > 0
		return err
	})
	return ok, err
}

// Take takes a signal.
func (j *journal) Take(ctx context.Context, name, by string, before time.Time) (sig run.Signal, ok bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return sig, false, run.ErrClosed
	}
	reading, cancel := within(ctx)
	defer cancel()
	signals, err := record.Signals(reading, j.store.view(j.store.db.Pool()), j.id)
	if err != nil {
		return sig, false, j.store.explain(err)
	}
	if sig, ok = run.FirstOf(signals, name, by, before); !ok || sig.Taken == by {
		return sig, ok, nil
	}
	sig.Taken = by
	return sig, true, j.writeLocked(ctx, write{op: "take", rows: func(b *pgx.Batch) {
		b.Queue(`UPDATE loki.signals SET taken = $3 WHERE run = $1 AND n = $2`, j.id, sig.Number, postgres.Text(by))
	}}, &j.last)
}
