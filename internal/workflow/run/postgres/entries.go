package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/service/postgres"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// originOf returns the origin of a run as its column has it: null for none.
func originOf(info run.Info) *string {
	if info.Origin == nil {
		return nil
	}
	return new(postgres.Text(info.Origin.String()))
}

// Put writes entries, all or nothing.
func (s *Store) Put(ctx context.Context, entries ...run.Entry) error {
	ctx, cancel := within(ctx)
	defer cancel()
	s.hook("entries")
	defer s.hook("entries")
	return s.transaction(ctx, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error { return s.putEntries(ctx, tx, entries) })
}

func (s *Store) putEntries(ctx context.Context, tx pgx.Tx, entries []run.Entry) error {
	for _, e := range entries {
		key := postgres.Text(e.Key)
		var query string
		args := []any{key, e.Version}
		switch {
		case e.Gone:
			query = `DELETE FROM loki.entries WHERE key = $1 AND version = $2`
		case e.Version == 0:
			query = `INSERT INTO loki.entries (key, version, at, run, doc) VALUES ($1, $2 + 1, $3, $4, $5) ON CONFLICT DO NOTHING`
		default:
			query = `UPDATE loki.entries SET version = $2 + 1, at = $3, run = $4, doc = $5 WHERE key = $1 AND version = $2`
		}
		if !e.Gone {
			args = append(args, s.now(), e.Run, s.seal().Bytes(e.Doc))
		}
		tag, err := tx.Exec(ctx, query, args...)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 1 || e.Gone && e.Version == 0 {
			continue
		}
		conflict := &run.ConflictError{Key: e.Key}
		err = tx.QueryRow(ctx, `SELECT run FROM loki.entries WHERE key = $1`, key).Scan(&conflict.Run)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return conflict
	}
	return nil
}

// Entries returns the entries whose keys begin with prefix.
func (s *Store) Entries(ctx context.Context, prefix string, limit int) (entries []run.Entry, err error) {
	most := sql.NullInt64{Int64: int64(limit), Valid: limit > 0}
	err = s.transaction(ctx, oneMoment, func(ctx context.Context, tx pgx.Tx) error {
		entries, err = record.Entries(ctx, s.view(tx), s.reader(), `SELECT key, version, at, run, doc FROM loki.entries WHERE starts_with(key, $1) AND key >= $1 ORDER BY key DESC LIMIT $2`, postgres.Text(prefix), most)
		return err
	})
	return entries, err
}

// DropEntries deletes entries that were written before a time.
func (s *Store) DropEntries(ctx context.Context, prefix string, before time.Time) error {
	return s.transaction(ctx, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM loki.entries WHERE starts_with(key, $1) AND at < $2`, postgres.Text(prefix), before.UnixNano())
		return err
	})
}
