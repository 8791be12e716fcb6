package postgres

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"loki/internal/conversation/session"
	"loki/internal/service/auth"
	"loki/internal/service/postgres"
)

// log is the [session.Log] of one session.
type log struct {
	store *Store
	scope session.Scope
	id    session.ID
}

func (l *log) Create(ctx context.Context, st session.State) error {
	_, err := l.store.tables.Exec(ctx, `INSERT INTO loki.sessions (scope, id, alias, state, owner) VALUES ($1, $2, NULLIF($3, ''), $4, $5) ON CONFLICT (scope, id) DO NOTHING`,
		l.scope, l.id, st.Alias, st.Encode(), encodeOwner(st.Owner))
	return aliasInUse(err, st.Alias)
}

func (l *log) Adopt(ctx context.Context, alias session.Alias) (session.ID, error) {
	id, err := l.store.resolve(ctx, l.scope, alias)
	if err == nil {
		l.id = id
	}
	return id, err
}

func (l *log) Load(ctx context.Context) (st session.State, data []byte, err error) {
	if st, err = l.state(ctx); err != nil {
		return st, nil, err
	}
	data, err = l.Tail(ctx, 0)
	return st, data, err
}

func (l *log) state(ctx context.Context) (st session.State, err error) {
	var r row
	err = l.store.tables.Try(ctx, func(ctx context.Context) (err error) {
		r, err = l.row(ctx, l.store.db.Pool(), "")
		return err
	})
	if err != nil {
		return st, l.notFound(err)
	}
	return r.decode(l.id)
}

// row is what the table of sessions has of one.
type row struct {
	number int64
	alias  session.Alias
	state  []byte
	owner  *string
	size   int64
}

// row reads the row of the session. lock, such as "FOR UPDATE", keeps it from others.
func (l *log) row(ctx context.Context, q postgres.Querier, lock string) (r row, err error) {
	err = q.QueryRow(ctx, `SELECT number, coalesce(alias, ''), state, owner, size FROM loki.sessions WHERE scope = $1 AND id = $2 `+lock, l.scope, l.id).
		Scan(&r.number, &r.alias, &r.state, &r.owner, &r.size)
	return r, err
}

// notFound returns the [session.ErrNotFound] if err says that there is no row.
func (l *log) notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return session.NotFound(l.id)
	}
	return err
}

func (r row) decode(id session.ID) (session.State, error) {
	st, err := session.DecodeState("session "+string(id), r.state)
	st.Alias, st.Owner = r.alias, decodeOwner(r.owner)
	return st, err
}

func (l *log) Tail(ctx context.Context, offset int64) (data []byte, err error) {
	err = l.store.tables.Try(ctx, func(ctx context.Context) (err error) {
		data, err = l.tail(ctx, l.store.db.Pool(), offset)
		return err
	})
	return data, l.notFound(err)
}

// tail reads the log from offset to its end.
func (l *log) tail(ctx context.Context, q postgres.Querier, offset int64) (data []byte, err error) {
	rows, err := q.Query(ctx, `SELECT l.at, l.data FROM loki.sessions s LEFT JOIN loki.session_log l ON l.session = s.number AND s.size > $3
		AND l.at >= coalesce((SELECT max(b.at) FROM loki.session_log b WHERE b.session = s.number AND b.at <= $3), 0)
		WHERE s.scope = $1 AND s.id = $2 ORDER BY l.at`, l.scope, l.id, offset)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := false
	for rows.Next() {
		var at *int64
		var part []byte
		if err := rows.Scan(&at, &part); err != nil {
			return nil, err
		}
		if found = true; at != nil {
			data = append(data, part[min(max(offset-*at, 0), int64(len(part))):]...)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if !found {
		return nil, pgx.ErrNoRows
	}
	return data, nil
}

func (l *log) Update(ctx context.Context, change func(session.Tx) error) error {
	t := &tx{ctx: ctx, log: l, write: rand.Text()}
	err := l.store.tables.Transact(ctx, func(ctx context.Context, q pgx.Tx) (err error) {
		t.q = q
		t.row, err = l.row(ctx, q, "FOR UPDATE")
		return err
	}, func(ctx context.Context, _ pgx.Tx) error {
		t.ctx = ctx
		return change(t)
	})
	if t.wrote && postgres.Unknown(err) { // perhaps it was committed
		var last string
		if lookErr := l.store.tables.Scan(ctx, []any{&last}, `SELECT write FROM loki.sessions WHERE number = $1`, t.row.number); lookErr == nil && last == t.write {
			return nil
		}
	}
	return l.store.db.Explain(l.notFound(err))
}

func (l *log) Rename(ctx context.Context, alias session.Alias) error {
	if _, err := session.ParseAlias(string(alias)); err != nil {
		return err
	}
	n, err := l.store.tables.Exec(ctx, `UPDATE loki.sessions SET alias = $3, modified = now() WHERE scope = $1 AND id = $2`, l.scope, l.id, alias)
	if err == nil && n == 0 {
		return session.NotFound(l.id)
	}
	return aliasInUse(err, alias)
}

func (l *log) Owner(ctx context.Context) (*auth.Owner, error) {
	var owner *string
	err := l.store.tables.Scan(ctx, []any{&owner}, `SELECT owner FROM loki.sessions WHERE scope = $1 AND id = $2`, l.scope, l.id)
	return decodeOwner(owner), l.notFound(err)
}

func (l *log) Claim(ctx context.Context, owner auth.Owner) (*auth.Owner, error) {
	var has *string
	err := l.store.tables.Scan(ctx, []any{&has}, `UPDATE loki.sessions SET owner = coalesce(owner, $3) WHERE scope = $1 AND id = $2 RETURNING owner`,
		l.scope, l.id, encodeOwner(&owner))
	return decodeOwner(has), l.notFound(err)
}

// aliasInUse returns the [session.ErrAliasInUse] if err says that an alias is taken.
func aliasInUse(err error, alias session.Alias) error {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.ConstraintName == "sessions_alias" {
		return session.AliasInUse(alias)
	}
	return err
}

// encodeOwner returns an owner as it is stored, nil for none.
func encodeOwner(owner *auth.Owner) *string {
	if owner == nil {
		return nil
	}
	text, _ := json.Marshal(owner) // two strings
	return new(string(text))
}

// decodeOwner returns the owner that is stored. One that cannot be read is an owner without a name, which is no subject: it
// is better not to be seen than to be seen by all.
func decodeOwner(text *string) *auth.Owner {
	if text == nil {
		return nil
	}
	var owner auth.Owner
	if json.Unmarshal([]byte(*text), &owner) != nil {
		return new(auth.Owner)
	}
	return &owner
}

// tx is the [session.Tx] of an update.
type tx struct {
	ctx   context.Context // of the update
	q     pgx.Tx
	log   *log
	row   row
	write string // marks what the update writes
	wrote bool
}

func (t *tx) Size() (int64, error) { return t.row.size, nil }

func (t *tx) Tail(offset int64) ([]byte, error) { return t.log.tail(t.ctx, t.q, offset) }

func (t *tx) Append(size int64, data []byte) error {
	if size < t.row.size {
		for _, cut := range []string{
			`DELETE FROM loki.session_log WHERE session = $1 AND at >= $2`,
			`UPDATE loki.session_log SET data = substring(data FOR ($2 - at)::integer) WHERE session = $1 AND at < $2 AND at + length(data) > $2`,
		} {
			if _, err := t.q.Exec(t.ctx, cut, t.row.number, size); err != nil {
				return err
			}
		}
	}
	t.wrote, t.row.size = true, size+int64(len(data))
	_, err := t.q.Exec(t.ctx, `WITH added AS (INSERT INTO loki.session_log (session, at, data) SELECT $1, $2, $3::bytea WHERE length($3::bytea) > 0)
		UPDATE loki.sessions SET size = $4, modified = now(), write = $5 WHERE number = $1`, t.row.number, size, data, t.row.size, t.write)
	return err
}

func (t *tx) State() (session.State, error) { return t.row.decode(t.log.id) }

func (t *tx) SetState(st session.State) error {
	t.wrote, t.row.state = true, st.Encode()
	_, err := t.q.Exec(t.ctx, `UPDATE loki.sessions SET state = $2, modified = now(), write = $3 WHERE number = $1`, t.row.number, t.row.state, t.write)
	return err
}
