package postgres

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// Documents are small texts that processes change in turn, each in its row. News of a change have the name of the document.
type Documents struct {
	DB    *DB
	Topic string // of the news
	Name  string // of the table, and of the part, see [DB.Migrate]
}

// part returns the tables.
func (d *Documents) part() *Part {
	return &Part{DB: d.DB, Name: d.Name, Steps: []string{`CREATE TABLE loki.` + d.Name + ` (name text PRIMARY KEY, doc text NOT NULL)`}}
}

// Change has change replace a document, "" for a new one, while no other process does. self is the member that this process is, living
// reports whether a member is there, see [Member]. If news is true the other processes hear of it.
func (d *Documents) Change(ctx context.Context, name string, change func(doc, self string, living func(member string) bool) (after string, news bool)) error {
	p := d.part()
	if err := d.DB.Migrate(ctx, p.Name, p.Steps...); err != nil {
		return err
	}
	m, err := d.DB.Member(ctx)
	if err != nil {
		return err
	}
	d.DB.BuryAtTimes(ctx)
	news := false
	err = pgx.BeginFunc(ctx, d.DB.pool, func(tx pgx.Tx) error {
		var doc, after string
		err := tx.QueryRow(ctx, `SELECT doc FROM loki.`+d.Name+` WHERE name = $1 FOR UPDATE`, name).Scan(&doc)
		if errors.Is(err, pgx.ErrNoRows) { // another process may make it now
			err = tx.QueryRow(ctx, `INSERT INTO loki.`+d.Name+` VALUES ($1, '') ON CONFLICT (name) DO UPDATE SET name = $1 RETURNING doc`, name).Scan(&doc)
		}
		var living func(string) bool
		if err == nil {
			living, err = d.livingMembers(ctx, tx)
		}
		if err != nil {
			return err
		}
		if after, news = change(doc, strconv.FormatInt(m.ID(), 10), living); after == doc {
			return nil
		}
		_, err = tx.Exec(ctx, `UPDATE loki.`+d.Name+` SET doc = $2 WHERE name = $1`, name, after)
		return err
	})
	if err == nil && news {
		d.DB.Notify(d.Topic, name)
	}
	return err
}

// livingMembers returns a function that reports whether a member is there.
func (d *Documents) livingMembers(ctx context.Context, q Querier) (func(string) bool, error) {
	rows, err := q.Query(ctx, `SELECT id::text FROM loki.members`)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	all := make(map[string]bool, len(list))
	for _, id := range list {
		all[id] = true
	}
	return func(id string) bool { return all[id] }, err
}

// All returns all documents by name.
func (d *Documents) All(ctx context.Context) (docs map[string]string, living func(member string) bool, err error) {
	type named struct{ Name, Doc string }
	if _, err := d.DB.Member(ctx); err != nil { // makes the table of members
		return nil, nil, err
	}
	list, err := Collect(ctx, d.part(), pgx.RowToStructByPos[named], `SELECT name, doc FROM loki.`+d.Name)
	if err != nil {
		return nil, nil, err
	}
	docs = make(map[string]string, len(list))
	for _, n := range list {
		docs[n.Name] = n.Doc
	}
	d.DB.BuryAtTimes(ctx)
	living, err = d.livingMembers(ctx, d.DB.pool)
	return docs, living, d.DB.Explain(err)
}

// Listen calls heard with the names of documents of which there are news, until ctx ends, see [DB.Listen].
func (d *Documents) Listen(ctx context.Context, heard func(name string)) error {
	return d.DB.Listen(ctx, d.Topic, heard)
}
