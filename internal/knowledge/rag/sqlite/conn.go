package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"loki/internal/knowledge/rag"
)

// conn is a connection to a file that is written. It belongs to one goroutine.
//
// Nothing on it is canceled half-way, which would undo more than the statement: what takes long
// asks its context between statements.
type conn struct {
	db *sql.DB
	c  *sql.Conn
	*statements
	open bool // a transaction
}

// openWriter opens a file for writing. The file must exist; if it is empty, fresh makes it a
// knowledge base without files.
func openWriter(path string, fresh bool) (c *conn, err error) {
	// Only this connection uses the file, so that its log needs no shared memory.
	db, _, err := openFile(path, "mode=rw&_pragma=locking_mode(exclusive)&_pragma=page_size(8192)&_pragma=journal_mode(wal)"+
		"&_pragma=synchronous(normal)&_pragma=cache_size(-65536)&_pragma=wal_autocheckpoint(8192)")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	ctx := context.Background()
	sc, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c = &conn{db: db, c: sc, statements: &statements{on: sc}}
	if fresh {
		_, err := sc.ExecContext(ctx, "BEGIN;"+schema+wordsSchema+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, formatVersion)+
			"INSERT INTO base VALUES ('{}', 0, 0, 1, 0); COMMIT")
		if err != nil {
			return nil, err
		}
	}
	version, err := verify(ctx, sc)
	if err == nil && version == oldVersion {
		err = c.renew()
	}
	if err == nil {
		var has bool
		if has, err = hasUnread(ctx, sc); err == nil && !has {
			err = c.run("ALTER TABLE files ADD COLUMN unread TEXT NOT NULL DEFAULT ''")
		}
	}
	return c, err
}

// hasUnread reports whether a file says of documents what was not read of them, which older ones do not.
func hasUnread(ctx context.Context, db querier) (has bool, err error) {
	err = readRow(ctx, db, "SELECT count(*) FROM pragma_table_info('files') WHERE name = 'unread'", &has)
	return has, err
}

// renew gives a file an index of words in place of that of version [oldVersion].
func (c *conn) renew() error {
	err := c.begin()
	if err == nil {
		err = c.run("DROP TABLE segments; DROP TABLE words; ALTER TABLE base DROP COLUMN indexed;" + wordsSchema)
	}
	if err == nil {
		err = fill(context.Background(), c.c, c.exec)
	}
	if err == nil {
		err = c.run(fmt.Sprintf("PRAGMA user_version = %d", formatVersion))
	}
	if err != nil {
		return err
	}
	return c.commit()
}

func (c *conn) exec(query string, args ...any) error {
	s, err := c.get(query)
	if err == nil {
		_, err = s.ExecContext(context.Background(), args...)
	}
	return err
}

// run runs statements that are not going to be run again.
func (c *conn) run(query string) error {
	_, err := c.c.ExecContext(context.Background(), query)
	return err
}

// begin begins a transaction if none is open.
func (c *conn) begin() error {
	if c.open {
		return nil
	}
	err := c.exec("BEGIN IMMEDIATE")
	c.open = err == nil
	return err
}

func (c *conn) commit() error {
	err := c.exec("COMMIT")
	c.open = err != nil
	return err
}

func (c *conn) setSettings(set rag.Settings) error {
	data, err := json.Marshal(set)
	if err != nil {
		return err
	}
	return c.exec("UPDATE base SET settings = ?", string(data))
}

// close ends the connection, and with it a transaction that is open. The log becomes part of the
// file.
func (c *conn) close() error {
	if c.open {
		_ = c.run("ROLLBACK") // fails if SQLite has rolled back by itself
	}
	return errors.Join(c.run("PRAGMA journal_mode = DELETE"), c.statements.close(), c.c.Close(), c.db.Close())
}
