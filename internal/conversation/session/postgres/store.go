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
	"loki/internal/service/auth"
	"loki/internal/service/postgres"
)

// Store is a [session.Store] in a database.
type Store struct {
	options session.Options
	db      *postgres.DB
	tables  postgres.Part
	table   session.Table
}

var _ session.Store = (*Store)(nil)

// New returns the store in a database, which it does not connect to yet. The database is the caller's: what other
// processes are to see is written when a call returns, and a process that ends closes the database.
func New(db *postgres.DB, o session.Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{options: o, db: db, tables: postgres.Part{DB: db, Name: "sessions", Steps: []string{version1}}}
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
	if s := st.table.PendingSession(scope, alias); s != nil {
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
	err = st.tables.Scan(ctx, []any{&id}, `SELECT id FROM loki.sessions WHERE scope = $1 AND alias = $2`, scope, alias)
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
	st.table.SetAlias(scope, id, alias)
	return nil
}

// Move implements [session.Store].
func (st *Store) Move(ctx context.Context, scope session.Scope, id session.ID, to session.Scope) error {
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
	n, err := st.tables.Exec(ctx, `DELETE FROM loki.sessions WHERE scope = $1 AND id = $2`, scope, id)
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
	list, err := postgres.Collect(ctx, &st.tables, func(r pgx.CollectableRow) (m session.Meta, err error) {
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
