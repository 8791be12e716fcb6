package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/fault"
)

// sweepRows is how many rows one transaction of a deletion removes, at most.
const sweepRows = 500

// Delete forgets runs that neither work nor wait. A run disappears at once; what belonged to it is swept out in
// small transactions. If the process dies meanwhile, the next deletion of any process continues with the rest.
func (s *Store) Delete(ctx context.Context, ids ...string) (deleted []string, err error) {
	for _, name := range ids {
		if err := context.Cause(ctx); err != nil {
			return deleted, err
		}
		gone, err := s.remove(ctx, name)
		if err != nil {
			return deleted, err
		}
		if gone {
			deleted = append(deleted, name)
			s.notify(name)
		}
	}
	return deleted, s.sweep(ctx)
}

// remove makes a run disappear, unless it works or waits.
func (s *Store) remove(ctx context.Context, name string) (gone bool, err error) {
	err = s.change(ctx, "delete", name, func(ctx context.Context, tx pgx.Tx, r locked) error {
		if !r.status.Over() || r.held != nil {
			return nil
		}
		gone = true
		b := &pgx.Batch{}
		b.Queue(`DELETE FROM loki.runs WHERE id = $1`, r.id)
		b.Queue(`DELETE FROM loki.leases WHERE run = $1`, r.id)
		b.Queue(`INSERT INTO loki.deleted (run) VALUES ($1)`, r.id)
		return tx.SendBatch(ctx, b).Close()
	})
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	return gone && err == nil, err
}

// sweep removes what is left of runs that were deleted.
func (s *Store) sweep(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return s.explain(err)
	}
	rows, err := s.db.Pool().Query(ctx, `SELECT run FROM loki.deleted`)
	if err != nil {
		return s.explain(err)
	}
	runs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return s.explain(err)
	}
	for _, id := range runs {
		for _, table := range rowsOf {
			query := fmt.Sprintf(`DELETE FROM loki.%[1]s WHERE ctid = ANY(ARRAY(SELECT ctid FROM loki.%[1]s WHERE run = $1 LIMIT $2))`, table)
			for more := true; more; {
				tag, err := s.db.Pool().Exec(ctx, query, id, sweepRows)
				if err != nil {
					return s.explain(err)
				}
				more = tag.RowsAffected() == sweepRows
			}
		}
		if _, err := s.db.Pool().Exec(ctx, `DELETE FROM loki.deleted WHERE run = $1`, id); err != nil {
			return s.explain(err)
		}
	}
	return nil
}
