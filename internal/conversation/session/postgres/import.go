package postgres

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/jackc/pgx/v5"

	"loki/internal/conversation/session"
)

// Import takes over a session from another store. One of that id that is there already stays as it is: imported is false then. It is a
// [session.ErrAliasInUse] if another one has the alias.
func (st *Store) Import(ctx context.Context, scope session.Scope, c session.Copy) (imported bool, err error) {
	if err := st.tables.DB.Migrate(ctx, st.tables.Name, st.tables.Steps...); err != nil {
		return false, err
	}
	err = pgx.BeginFunc(ctx, st.db.Pool(), func(tx pgx.Tx) error {
		var number int64
		err := tx.QueryRow(ctx, `INSERT INTO loki.sessions (scope, id, alias, state, owner, size, modified) VALUES ($1, $2, NULLIF($3, ''), $4, $5, $6, $7)
			ON CONFLICT (scope, id) DO NOTHING RETURNING number`,
			scope, c.ID, c.State.Alias, c.State.Encode(), encodeOwner(c.State.Owner), len(c.Log), c.Modified).Scan(&number)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		imported = true
		b := &pgx.Batch{}
		if len(c.Log) > 0 {
			b.Queue(`INSERT INTO loki.session_log (session, at, data) VALUES ($1, 0, $2)`, number, c.Log)
		}
		for _, data := range c.Drafts {
			id := rand.Text()
			b.Queue(`INSERT INTO loki.session_drafts (id, session) VALUES ($1, $2)`, id, number)
			b.Queue(`INSERT INTO loki.session_draft_parts (draft, part, data) VALUES ($1, 1, $2)`, id, data)
		}
		return tx.SendBatch(ctx, b).Close()
	})
	return imported && err == nil, st.db.Explain(aliasInUse(err, c.State.Alias))
}
