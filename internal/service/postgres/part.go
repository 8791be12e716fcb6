package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/fault/retry"
)

// pause is how long a call waits between tries.
const pause = 200 * time.Millisecond

// Part is what a part of the program has in a database: tables that are made when they are needed. Its methods wait for some
// time while the database is away, and do again what may have been done already; their errors are those of [DB.Explain].
type Part struct {
	DB    *DB
	Name  string   // of the part, see [DB.Migrate]
	Steps []string // likewise
}

// Try calls do, with the tables there, until it works, fails for good, or has been tried for 30 s, see [DB.Within].
func (p *Part) Try(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := p.DB.Within(ctx)
	defer cancel()
	for {
		err := p.DB.Migrate(ctx, p.Name, p.Steps...)
		if err == nil {
			err = do(ctx)
		}
		if !Passing(err) || retry.Sleep(ctx, pause) != nil {
			return p.DB.Explain(err)
		}
	}
}

// Exec executes a statement and returns how many rows it concerned. Executed twice it has to have the same effect.
func (p *Part) Exec(ctx context.Context, statement string, args ...any) (rows int64, err error) {
	err = p.Try(ctx, func(ctx context.Context) error {
		tag, err := p.DB.pool.Exec(ctx, statement, args...)
		rows = tag.RowsAffected()
		return err
	})
	return rows, err
}

// Scan executes a statement, likewise, and scans the first row that it returns. No row is a [pgx.ErrNoRows].
func (p *Part) Scan(ctx context.Context, to []any, statement string, args ...any) error {
	return p.Try(ctx, func(ctx context.Context) error { return p.DB.pool.QueryRow(ctx, statement, args...).Scan(to...) })
}

// Collect executes a query, likewise, and returns its rows.
func Collect[T any](ctx context.Context, p *Part, row pgx.RowToFunc[T], query string, args ...any) (list []T, err error) {
	err = p.Try(ctx, func(ctx context.Context) error {
		rows, err := p.DB.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, row)
		return err
	})
	return list, err
}

// Begin begins a transaction. A process that was stopped in one does not keep others waiting for long.
const Begin = `BEGIN; SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '15s'`

// Transact calls prepare in a transaction, and again in another one if the database is away, then change once, and commits.
// The change and the commit together take as long as a try at most. The error of the commit is not tried again and not explained: it may be
// [Unknown].
func (p *Part) Transact(ctx context.Context, prepare func(ctx context.Context, tx pgx.Tx) error, change func(ctx context.Context, tx pgx.Tx) error) error {
	var tx pgx.Tx
	err := p.Try(ctx, func(try context.Context) (err error) {
		if tx, err = p.DB.pool.BeginTx(try, pgx.TxOptions{BeginQuery: Begin}); err != nil {
			return err
		}
		if err = prepare(try, tx); err != nil {
			_ = tx.Rollback(ctx) // else it ends with the connection
		}
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := p.DB.Within(ctx)
	defer cancel()
	if err := change(ctx, tx); err != nil {
		_ = tx.Rollback(ctx)
		return p.DB.Explain(err)
	}
	return tx.Commit(ctx)
}
