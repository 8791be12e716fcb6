// Package postgres keeps sessions in a PostgreSQL database, so that several servers have the same ones.
//
// A change of a session is a transaction that has its row to itself. A draft is held by the [postgres.Member] that its
// process is, and [Store.Enter] has the turns of a session follow each other over all processes in the same way. While the
// database cannot be reached, all calls wait for it for some time.
package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/service/postgres"
)

// Store is a [session.Store] in a database.
type Store struct {
	*session.Opener
	db     *postgres.DB
	tables postgres.Part
}

var _ session.Store = (*Store)(nil)

// New returns the store in a database, which it does not connect to yet. The database is the caller's: what other
// processes are to see is written when a call returns, and a process that ends closes the database.
func New(db *postgres.DB, o session.Options) *Store {
	st := &Store{db: db, tables: postgres.Part{DB: db, Name: "sessions", Steps: []string{version1}}}
	st.Opener = session.NewOpener(o, session.Places{
		Log: func(scope session.Scope, id session.ID) (session.Log, error) {
			return &log{store: st, scope: scope, id: id}, nil
		},
		Resolve: st.resolve, Move: st.move, Delete: st.delete,
	})
	return st
}

// Probe returns an error unless the database can be written to now.
func (st *Store) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := st.db.Migrate(ctx, st.tables.Name, st.tables.Steps...)
	if err == nil {
		_, err = st.db.Pool().Exec(ctx, `UPDATE loki.versions SET at = at WHERE part = $1`, st.tables.Name)
	}
	return st.db.Explain(err)
}

// free returns the condition that no living member is the one of a column.
func free(column string) string {
	return `NOT EXISTS (SELECT FROM loki.members WHERE id = ` + column + `)`
}

func (st *Store) resolve(ctx context.Context, scope session.Scope, alias session.Alias) (id session.ID, err error) {
	if _, err := session.ParseAlias(string(alias)); err != nil {
		return "", err
	}
	err = st.tables.Scan(ctx, []any{&id}, `SELECT id FROM loki.sessions WHERE scope = $1 AND alias = $2`, scope, alias)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", session.NotFound(alias)
	}
	return id, err
}

func (st *Store) move(ctx context.Context, scope session.Scope, id session.ID, to session.Scope) error {
	var alias *session.Alias
	err := st.tables.Scan(ctx, []any{&alias}, `SELECT alias FROM loki.sessions WHERE scope = $1 AND id = $2`, scope, id)
	if err == nil {
		err = st.tables.Scan(ctx, []any{&id}, `UPDATE loki.sessions SET scope = $3, modified = now() WHERE scope = $1 AND id = $2 RETURNING id`, scope, id, to)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return session.NotFound(id)
	case err != nil && alias != nil:
		return aliasInUse(err, *alias)
	}
	return err
}

func (st *Store) delete(ctx context.Context, scope session.Scope, id session.ID) error {
	n, err := st.tables.Exec(ctx, `DELETE FROM loki.sessions WHERE scope = $1 AND id = $2`, scope, id)
	if err == nil && n == 0 {
		return session.NotFound(id)
	}
	return err
}

// List implements [session.Store].
func (st *Store) List(ctx context.Context, scope session.Scope) ([]session.Meta, error) {
	list, err := postgres.Collect(ctx, &st.tables, func(r pgx.CollectableRow) (m session.Meta, err error) {
		var owner *string
		err = r.Scan(&m.ID, &m.Alias, &m.Modified, &m.Size, &owner)
		m.Owner = decodeOwner(owner)
		return m, err
	}, `SELECT id, coalesce(alias, ''), modified, size, owner FROM loki.sessions WHERE scope = $1`, scope)
	session.SortMetas(list)
	return list, err
}

// RemoveUnnamed deletes sessions that are kept without an alias, see [session.Session.KeepUnnamed]:
// those beyond a limit.
func (st *Store) RemoveUnnamed(ctx context.Context, scope session.Scope, limits session.Limits) error {
	list, err := st.List(ctx, scope)
	if err != nil {
		return err
	}
	var failed error
	for _, m := range limits.Beyond(list) {
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
