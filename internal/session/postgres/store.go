// Package postgres keeps sessions in a PostgreSQL database, so that several servers have the same ones.
//
// A change of a session is a transaction that has its row to itself. A draft is held by the [postgres.Member] that its
// process is, and [Store.Enter] has the turns of a session follow each other over all processes in the same way. While the
// database cannot be reached, all calls wait for it for some time.
package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"loki/internal/auth"
	"loki/internal/fault"
	"loki/internal/postgres"
	"loki/internal/retry"
	"loki/internal/session"
)

// patience is how long a call waits for a database that cannot be reached.
const patience = 30 * time.Second

// pause is how long it waits between tries.
const pause = 200 * time.Millisecond

// Store is a [session.Store] in a database.
type Store struct {
	options session.Options
	db      *postgres.DB
	table   session.Table
}

var _ session.Store = (*Store)(nil)

// New returns the store in a database, which it does not connect to yet. The database is the caller's: what other
// processes are to see is written when a call returns, and a process that ends closes the database.
func New(db *postgres.DB, o session.Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{options: o, db: db}
}

// querier is the pool, or a transaction.
type querier interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, statement string, args ...any) pgx.Row
}

// try calls do, with the tables there, until it works, fails for good or patience is over. do may have worked when it is
// called again.
func (st *Store) try(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the database gives no answer"))
	defer cancel()
	for {
		err := st.db.Migrate(ctx, part, version1)
		if err == nil {
			err = do(ctx)
		}
		if !pgconn.SafeToRetry(err) && !postgres.Passing(err) || retry.Sleep(ctx, pause) != nil {
			return st.db.Explain(err)
		}
	}
}

// exec executes a statement and returns how many rows it concerned. Executed twice it has the same effect.
func (st *Store) exec(ctx context.Context, statement string, args ...any) (rows int64, err error) {
	err = st.try(ctx, func(ctx context.Context) error {
		tag, err := st.db.Pool().Exec(ctx, statement, args...)
		rows = tag.RowsAffected()
		return err
	})
	return rows, err
}

// scan executes a statement, likewise, and scans the row that it returns. No row is [pgx.ErrNoRows].
func (st *Store) scan(ctx context.Context, to []any, statement string, args ...any) error {
	return st.try(ctx, func(ctx context.Context) error { return st.db.Pool().QueryRow(ctx, statement, args...).Scan(to...) })
}

// collect executes a query and returns what it finds.
func collect[T any](ctx context.Context, st *Store, row pgx.RowToFunc[T], query string, args ...any) (list []T, err error) {
	err = st.try(ctx, func(ctx context.Context) error {
		rows, err := st.db.Pool().Query(ctx, query, args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, row)
		return err
	})
	return list, err
}

// begin begins a transaction. A process that was stopped in one does not keep others waiting for long.
const begin = `BEGIN; SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '15s'`

// transact calls prepare in a transaction, and again in another one if the database is away, then once change, and commits.
func (st *Store) transact(ctx context.Context, prepare func(ctx context.Context, q pgx.Tx) error, change func() error) error {
	var tx pgx.Tx
	err := st.try(ctx, func(try context.Context) (err error) {
		if tx, err = st.db.Pool().BeginTx(try, pgx.TxOptions{BeginQuery: begin}); err != nil {
			return err
		}
		if err = prepare(try, tx); err != nil {
			_ = tx.Rollback(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		_ = tx.Rollback(ctx) // else it ends with the connection
		return st.db.Explain(err)
	}
	return tx.Commit(ctx)
}

// free returns the condition that no living member is the one of a column.
func free(column string) string {
	return `NOT EXISTS (SELECT FROM loki.members WHERE id = ` + column + `)`
}

// newLog returns the log of a new session.
func (st *Store) newLog(scope session.Scope) *log {
	return &log{store: st, scope: scope, id: session.NewID()}
}

// Create implements [session.Store].
func (st *Store) Create(ctx context.Context, scope session.Scope, alias session.Alias, initial session.Settings) (*session.Session, error) {
	l := st.newLog(scope)
	s := session.New(scope, l.id, l, st.options, session.State{Settings: initial, Alias: alias})
	if err := s.Store(ctx); err != nil {
		return nil, err
	}
	return st.table.Add(s), nil
}

// Temp implements [session.Store].
func (st *Store) Temp(scope session.Scope, initial session.Settings) *session.Session {
	l := st.newLog(scope)
	return st.table.Begin(session.NewTemp(scope, l.id, l, st.options, initial))
}

// Fork implements [session.Store].
func (st *Store) Fork(ctx context.Context, s *session.Session, alias session.Alias) (*session.Session, error) {
	l := st.newLog(s.Scope())
	f, err := session.Fork(ctx, s, l.id, l, alias)
	if err != nil {
		return nil, err
	}
	return st.table.Add(f), nil
}

// Open implements [session.Store].
func (st *Store) Open(ctx context.Context, scope session.Scope, id session.ID) (*session.Session, error) {
	if s := st.table.Open(scope, id); s != nil && s.Stored() {
		return s, s.Refresh(ctx)
	}
	s, err := session.Load(ctx, scope, id, &log{store: st, scope: scope, id: id}, st.options)
	if err != nil {
		return nil, err
	}
	return st.table.Add(s), nil
}

// OpenOrCreate implements [session.Store].
func (st *Store) OpenOrCreate(ctx context.Context, scope session.Scope, alias session.Alias, initial func() (session.Settings, error)) (*session.Session, error) {
	if s := st.table.Begun(scope, alias); s != nil {
		err := s.Refresh(ctx)
		if !errors.Is(err, session.ErrNotFound) {
			return s, err
		}
		st.table.Forget(scope, s.ID()) // another process has deleted it
	}
	switch id, err := st.Resolve(ctx, scope, alias); {
	case err == nil:
		s, err := st.Open(ctx, scope, id)
		if !errors.Is(err, session.ErrNotFound) {
			return s, err
		}
		// Meanwhile it is gone.
	case !errors.Is(err, session.ErrNotFound):
		return nil, err
	}
	settings, err := initial()
	if err != nil {
		return nil, err
	}
	l := st.newLog(scope)
	return st.table.Begin(session.New(scope, l.id, l, st.options, session.State{Settings: settings, Alias: alias})), nil
}

// Resolve implements [session.Store].
func (st *Store) Resolve(ctx context.Context, scope session.Scope, alias session.Alias) (id session.ID, err error) {
	if _, err := session.ParseAlias(string(alias)); err != nil {
		return "", err
	}
	err = st.scan(ctx, []any{&id}, `SELECT id FROM loki.sessions WHERE scope = $1 AND alias = $2`, scope, alias)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", session.NotFound(alias)
	}
	return id, err
}

// Rename implements [session.Store].
func (st *Store) Rename(ctx context.Context, scope session.Scope, id session.ID, alias session.Alias) error {
	if err := (&log{store: st, scope: scope, id: id}).Rename(ctx, alias); err != nil {
		return err
	}
	st.table.Renamed(scope, id, alias)
	return nil
}

// Move implements [session.Store].
func (st *Store) Move(ctx context.Context, scope session.Scope, id session.ID, to session.Scope) error {
	var alias *session.Alias
	err := st.scan(ctx, []any{&alias}, `SELECT alias FROM loki.sessions WHERE scope = $1 AND id = $2`, scope, id)
	if err == nil {
		err = st.scan(ctx, []any{&id}, `UPDATE loki.sessions SET scope = $3, modified = now() WHERE scope = $1 AND id = $2 RETURNING id`, scope, id, to)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return session.NotFound(id)
	case err != nil && alias != nil:
		return aliasInUse(err, *alias)
	case err == nil:
		st.table.Forget(scope, id)
	}
	return err
}

// Owner implements [session.Store].
func (st *Store) Owner(ctx context.Context, scope session.Scope, id session.ID) (*auth.Owner, error) {
	return (&log{store: st, scope: scope, id: id}).Owner(ctx)
}

// Claim implements [session.Store].
func (st *Store) Claim(ctx context.Context, scope session.Scope, id session.ID, owner auth.Owner) (*auth.Owner, error) {
	return (&log{store: st, scope: scope, id: id}).Claim(ctx, owner)
}

// Delete implements [session.Store].
func (st *Store) Delete(ctx context.Context, scope session.Scope, id session.ID) error {
	n, err := st.exec(ctx, `DELETE FROM loki.sessions WHERE scope = $1 AND id = $2`, scope, id)
	if err != nil {
		return err
	}
	if st.table.Forget(scope, id); n == 0 {
		return session.NotFound(id)
	}
	return nil
}

// List implements [session.Store].
func (st *Store) List(ctx context.Context, scope session.Scope) ([]session.Meta, error) {
	list, err := collect(ctx, st, func(r pgx.CollectableRow) (m session.Meta, err error) {
		var owner *string
		err = r.Scan(&m.ID, &m.Alias, &m.Modified, &m.Size, &owner)
		m.Owner = decodeOwner(owner)
		return m, err
	}, `SELECT id, coalesce(alias, ''), modified, size, owner FROM loki.sessions WHERE scope = $1`, scope)
	session.SortMetas(list)
	return list, err
}

// Log returns the log of a session from offset on.
func (st *Store) Log(ctx context.Context, scope session.Scope, id session.ID, offset int64) ([]byte, error) {
	return (&log{store: st, scope: scope, id: id}).Tail(ctx, offset)
}

// Glance returns what a session is about: the text of the first question and the number of turns.
func (st *Store) Glance(ctx context.Context, scope session.Scope, id session.ID) (first string, turns int, err error) {
	s, err := session.Load(ctx, scope, id, &log{store: st, scope: scope, id: id}, session.Options{})
	if err != nil {
		return "", 0, err
	}
	first, turns = s.Glance()
	return first, turns, nil
}

// RemoveUnnamed deletes sessions that are kept without an alias, see [session.Session.KeepUnnamed]:
// those last used before a time, and the oldest of more than keep.
func (st *Store) RemoveUnnamed(ctx context.Context, scope session.Scope, keep int, before time.Time) error {
	list, err := st.List(ctx, scope)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(m session.Meta) bool { return m.Alias != "" }) // the latest first
	var failed error
	for i, m := range list {
		if i < keep && m.Modified.After(before) {
			continue
		}
		state, err := (&log{store: st, scope: scope, id: m.ID}).state(ctx)
		if err != nil || !state.Unnamed {
			continue // or it is gone
		}
		if err := st.Delete(ctx, scope, m.ID); fault.CodeOf(err) != fault.NotFound {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
