// Package postgres keeps the facts of the users of servers in a PostgreSQL database, so that several servers have the same ones.
package postgres

import (
	"context"
	"path"

	"github.com/jackc/pgx/v5"

	"loki/internal/agent/memory"
	"loki/internal/service/postgres"
)

const version1 = `
CREATE TABLE loki.memory (
	owner text NOT NULL, -- subject; '' without keys
	dir   text NOT NULL,
	name  text NOT NULL,
	data  bytea NOT NULL, -- as a file has it
	PRIMARY KEY (owner, dir, name)
);`

// Files are the files of one owner.
type Files struct {
	owner  string
	tables postgres.Part
}

var _ memory.Files = (*Files)(nil)

// New returns the files of an owner, a subject or "", in a database, which it does not connect to yet.
func New(db *postgres.DB, owner string) *Files {
	return &Files{postgres.Text(owner), postgres.Part{DB: db, Name: "memory", Steps: []string{version1}}}
}

// Lock implements [memory.Files]. The lock ends with its transaction, which the database ends if this process does not.
func (f *Files) Lock(ctx context.Context) (unlock func(), err error) {
	var tx pgx.Tx
	err = f.tables.Try(ctx, func(try context.Context) (err error) {
		if tx, err = f.tables.DB.Pool().BeginTx(ctx, pgx.TxOptions{BeginQuery: postgres.Begin}); err != nil {
			return err
		}
		if _, err = tx.Exec(try, `SELECT pg_advisory_xact_lock(hashtextextended('loki.memory ' || $1, 0))`, f.owner); err != nil {
			_ = tx.Rollback(ctx) // else it ends with the connection
		}
		return err
	})
	return func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }, err
}

// Dirs implements [memory.Files].
func (f *Files) Dirs(ctx context.Context, dir string) ([]string, error) {
	return postgres.Collect(ctx, &f.tables, pgx.RowTo[string],
		`SELECT DISTINCT split_part(dir, '/', 2) FROM loki.memory WHERE owner = $1 AND split_part(dir, '/', 1) = $2 ORDER BY 1`, f.owner, dir)
}

// Facts implements [memory.Files].
func (f *Files) Facts(ctx context.Context, dir string, wrong func(error)) (facts []memory.Fact, err error) {
	type row struct {
		Name string
		Data []byte
	}
	rows, err := postgres.Collect(ctx, &f.tables, pgx.RowToStructByPos[row], `SELECT name, data FROM loki.memory WHERE owner = $1 AND dir = $2 ORDER BY name`, f.owner, dir)
	for _, r := range rows {
		fact, err := memory.Decode(dir+"/"+r.Name, r.Data)
		if err != nil {
			wrong(err)
			continue
		}
		facts = append(facts, fact)
	}
	return facts, err
}

// Write implements [memory.Files].
func (f *Files) Write(ctx context.Context, file string, data []byte) error {
	_, err := f.tables.Exec(ctx, `INSERT INTO loki.memory (owner, dir, name, data) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner, dir, name) DO UPDATE SET data = excluded.data`, f.owner, path.Dir(file), path.Base(file), data)
	return err
}

// Move implements [memory.Files].
func (f *Files) Move(ctx context.Context, from, to string) error {
	_, err := f.tables.Exec(ctx, `UPDATE loki.memory SET dir = $4, name = $5 WHERE owner = $1 AND dir = $2 AND name = $3`, f.owner, path.Dir(from), path.Base(from), path.Dir(to), path.Base(to))
	return err
}

// Remove implements [memory.Files].
func (f *Files) Remove(ctx context.Context, file string) error {
	_, err := f.tables.Exec(ctx, `DELETE FROM loki.memory WHERE owner = $1 AND dir = $2 AND name = $3`, f.owner, path.Dir(file), path.Base(file))
	return err
}
