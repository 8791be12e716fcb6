package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/service/postgres"
)

// sharedSchema makes the tables in a database. A run waits to be looked at when it is due, by the server that claims it.
const sharedSchema = `
CREATE TABLE loki.webhooks (
	run    text PRIMARY KEY,
	doc    bytea NOT NULL,             -- JSON: hooks, and what came of their notices
	due    timestamptz,                -- when to look at the run; NULL once all is sent
	news   bigint NOT NULL DEFAULT 0,  -- how often something may have happened
	member bigint                      -- of the server that sends; NULL for none
);
CREATE INDEX webhooks_due ON loki.webhooks (due);
CREATE TABLE loki.keys (
	name  text PRIMARY KEY,
	value bytea NOT NULL
);`

func sharedTables(db *postgres.DB) *postgres.Part {
	return &postgres.Part{DB: db, Name: "webhooks", Steps: []string{sharedSchema}}
}

// The times of a shared desk.
const (
	dueEvery = 5 * time.Second // how often a server looks what is due
	dueAtAll = 5 * time.Minute // after which a run is looked at in any case
	mostDue  = 100             // runs at once
)

// shared is the book of desks at several servers. A notice is sent by one of them, and by another one should that die.
type shared struct {
	ctx    context.Context // of the desk
	tables *postgres.Part
}

// sentRuns returns the ids of the runs of which all is sent.
func (b *shared) sentRuns() ([]string, error) {
	return postgres.Collect(b.ctx, b.tables, pgx.RowTo[string], `SELECT run FROM loki.webhooks WHERE due IS NULL`)
}

// free is the condition that no server that lives sends the notices of a run.
const free = `NOT EXISTS (SELECT FROM loki.members m WHERE m.id = w.member)`

// due returns the ids of runs to look at now, the one that has waited longest first.
func (b *shared) due() ([]string, error) {
	if _, err := b.tables.DB.Member(b.ctx); err != nil { // whose table is asked
		return nil, err
	}
	return postgres.Collect(b.ctx, b.tables, pgx.RowTo[string], `SELECT run FROM loki.webhooks w WHERE due <= now() AND `+free+` ORDER BY due LIMIT $1`, mostDue)
}

// heard notes that something may have happened in a run. waits is false if there is nothing to send of it.
func (b *shared) heard(run string) (waits bool, err error) {
	n, err := b.tables.Exec(b.ctx, `UPDATE loki.webhooks SET news = news + 1, due = now() WHERE run = $1 AND due IS NOT NULL`, run)
	return n > 0, err
}

// claimed is a run of which a server sends the notices.
type claimed struct {
	run    string
	member int64
	news   int64 // how much was known of it
}

// claim takes a run. ok is false if another server has it, or there is nothing to send of it.
func (b *shared) claim(run string) (c claimed, ok bool, err error) {
	member, err := b.tables.DB.Member(b.ctx)
	if err != nil {
		return c, false, err
	}
	c = claimed{run: run, member: member.ID()}
	err = b.tables.Scan(b.ctx, []any{&c.news}, `UPDATE loki.webhooks w SET member = $2 WHERE run = $1 AND due IS NOT NULL AND (member = $2 OR `+free+`) RETURNING news`, run, c.member)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, false, nil
	}
	return c, err == nil, err
}

// release gives a run back, which is looked at again after a time, or not at all if that is 0. It is due at once if something
// has happened since it was claimed.
func (b *shared) release(c claimed, after time.Duration) (again bool, err error) {
	err = b.tables.Scan(context.WithoutCancel(b.ctx), []any{&again}, `UPDATE loki.webhooks SET member = NULL,
		due = CASE WHEN news <> $2 THEN now() WHEN $3::float8 = 0 THEN NULL ELSE now() + make_interval(secs => $3::float8) END WHERE run = $1 AND member = $4 RETURNING news <> $2`,
		c.run, c.news, after.Seconds(), c.member)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return again, err
}

func (b *shared) read(run string) (f file, err error) {
	var doc []byte
	err = b.tables.Scan(b.ctx, []any{&doc}, `SELECT doc FROM loki.webhooks WHERE run = $1`, run)
	if errors.Is(err, pgx.ErrNoRows) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(doc, &f)
	}
	return f, err
}

func (b *shared) change(run string, change func(*file)) error {
	var f file
	ctx := context.WithoutCancel(b.ctx) // what was sent is kept, also at the end
	err := b.tables.Transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var doc []byte
		f = file{}
		if _, err := tx.Exec(ctx, `INSERT INTO loki.webhooks (run, doc) VALUES ($1, '{}') ON CONFLICT DO NOTHING`, run); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT doc FROM loki.webhooks WHERE run = $1 FOR UPDATE`, run).Scan(&doc); err != nil {
			return err
		}
		return json.Unmarshal(doc, &f)
	}, func(ctx context.Context, tx pgx.Tx) error {
		change(&f)
		doc, err := json.Marshal(f)
		if err != nil {
			return err
		}
		statement, args := `DELETE FROM loki.webhooks WHERE run = $1`, []any{run}
		if len(f.Hooks) > 0 {
			statement, args = `UPDATE loki.webhooks SET doc = $2, due = coalesce(due, now()) WHERE run = $1`, append(args, doc)
		}
		_, err = tx.Exec(ctx, statement, args...)
		return err
	})
	return b.tables.DB.Explain(err)
}

func (b *shared) remove(run string) {
	_, _ = b.tables.Exec(b.ctx, `DELETE FROM loki.webhooks WHERE run = $1`, run) // else it is found again
}
