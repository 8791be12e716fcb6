package postgres

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/jackc/pgx/v5"

	"loki/internal/conversation/session"
	"loki/internal/service/postgres"
)

// draft is a [session.DraftFile]. It is held as long as its row names the member that this process is.
type draft struct {
	store *Store
	id    string
	parts int
}

// NewDraft implements [session.Log].
func (l *log) NewDraft(ctx context.Context) (session.DraftFile, error) {
	member, err := l.store.db.Member(ctx)
	if err != nil {
		return nil, err
	}
	d := &draft{store: l.store, id: rand.Text()}
	n, err := l.store.tables.Exec(ctx, `INSERT INTO loki.session_drafts (id, session, member) SELECT $3, number, $4 FROM loki.sessions WHERE scope = $1 AND id = $2
		ON CONFLICT (id) DO UPDATE SET member = excluded.member`, l.scope, l.id, d.id, member.ID())
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, session.NotFound(l.id)
	}
	return d, nil
}

// AbandonedDrafts implements [session.Log].
func (l *log) AbandonedDrafts(ctx context.Context) ([]session.DraftFile, error) {
	drafts, err := l.drafts(ctx)
	if err != nil || len(drafts) == 0 {
		return nil, err
	}
	member, err := l.store.db.Member(ctx)
	if err == nil {
		err = l.store.db.Explain(l.store.db.Bury(ctx, l.store.db.Pool()))
	}
	if err != nil {
		return nil, err
	}
	return postgres.Collect(ctx, &l.store.tables, func(r pgx.CollectableRow) (session.DraftFile, error) {
		d := &draft{store: l.store}
		return d, r.Scan(&d.id, &d.parts)
	}, `UPDATE loki.session_drafts d SET member = $2 WHERE id = ANY($1) AND `+free("d.member")+`
		RETURNING id, (SELECT count(*) FROM loki.session_draft_parts WHERE draft = d.id)`, drafts, member.ID())
}

// drafts returns the ids of all drafts of the session.
func (l *log) drafts(ctx context.Context) ([]string, error) {
	return postgres.Collect(ctx, &l.store.tables, pgx.RowTo[string],
		`SELECT d.id FROM loki.session_drafts d JOIN loki.sessions s ON s.number = d.session WHERE s.scope = $1 AND s.id = $2`, l.scope, l.id)
}

// Busy reports whether a question is being answered in a stored session, by any process.
func (st *Store) Busy(ctx context.Context, scope session.Scope, id session.ID) (busy bool, err error) {
	drafts, err := (&log{store: st, scope: scope, id: id}).drafts(ctx)
	if err != nil || len(drafts) == 0 {
		return false, err
	}
	st.db.BuryAtTimes(ctx)
	err = st.tables.Scan(ctx, []any{&busy}, `SELECT EXISTS (SELECT FROM loki.session_drafts d WHERE id = ANY($1) AND NOT `+free("d.member")+`)`, drafts)
	return busy, err
}

// Withdraw implements [session.Log].
func (l *log) Withdraw(ctx context.Context, size int64) (withdrawn bool, err error) {
	var r row
	err = l.store.tables.Transact(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		r, err = l.row(ctx, tx, "FOR UPDATE") // no draft is made from here on
		return err
	}, func(ctx context.Context, tx pgx.Tx) error {
		if r.size != size {
			return nil
		}
		tag, err := tx.Exec(ctx, `DELETE FROM loki.sessions WHERE number = $1 AND NOT EXISTS (SELECT FROM loki.session_drafts WHERE session = $1)`, r.number)
		withdrawn = tag.RowsAffected() > 0
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return withdrawn, l.store.db.Explain(err)
}

// Data implements [session.DraftFile].
func (d *draft) Data() (data []byte, err error) {
	err = d.store.tables.Scan(context.Background(), []any{&data}, `SELECT coalesce(string_agg(data, '' ORDER BY part), '') FROM loki.session_draft_parts WHERE draft = $1`, d.id)
	return data, err
}

// Append implements [session.DraftFile].
func (d *draft) Append(data []byte) error {
	d.parts++
	return d.exec(`INSERT INTO loki.session_draft_parts (draft, part, data) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, d.parts, data)
}

// Remove implements [session.DraftFile].
func (d *draft) Remove() error { return d.exec(`DELETE FROM loki.session_drafts WHERE id = $1`) }

// Close implements [session.DraftFile].
func (d *draft) Close() error {
	return d.exec(`UPDATE loki.session_drafts SET member = NULL WHERE id = $1`)
}

// exec executes a statement whose $1 is the draft.
func (d *draft) exec(statement string, args ...any) error {
	_, err := d.store.tables.Exec(context.Background(), statement, append([]any{d.id}, args...)...)
	return err
}
