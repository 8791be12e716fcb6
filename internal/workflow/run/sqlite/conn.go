package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// conn is one connection with the statements it has prepared. It is used by one
// goroutine at a time.
//
// Nothing on it is canceled halfway: all statements are short, and what waits for
// another process does so for a limited time.
type conn struct {
	c     *sql.Conn
	stmts map[string]*sql.Stmt
}

func newConn(db *sql.DB) (*conn, error) {
	c, err := db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	return &conn{c: c, stmts: make(map[string]*sql.Stmt)}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.c.Close())...)
}

func (c *conn) stmt(query string) (*sql.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	s, err := c.c.PrepareContext(context.Background(), query)
	if err == nil {
		c.stmts[query] = s
	}
	return s, err
}

// exec runs a statement.
func (c *conn) exec(query string, args ...any) (sql.Result, error) {
	s, err := c.stmt(query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.Background(), args...)
}

// row reads the first row of the result into dest; ok is false if there is none.
func (c *conn) row(query string, args []any, dest ...any) (ok bool, err error) {
	s, err := c.stmt(query)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(context.Background(), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// rows calls each for every row of the result, once its columns are in dest.
func (c *conn) rows(query string, args []any, dest []any, each func() error) error {
	s, err := c.stmt(query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// transaction runs fn between begin and commit, or rollback if it fails.
func (c *conn) transaction(begin string, fn func() error) (err error) {
	if _, err := c.exec(begin); err != nil {
		return err
	}
	committed := false
	defer func() { // also after a panic
		if !committed {
			_, _ = c.exec("ROLLBACK") // fails if SQLite has rolled back by itself
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	if _, err := c.exec("COMMIT"); err != nil {
		return err
	}
	committed = true
	return nil
}

// busyFor is how long a transaction waits for another process. A run tries again after
// that; see [run.Patience].
const busyFor = 5 * time.Second

// connect returns the pool of connections to the file. It opens none.
func connect(path string, pragmas ...string) (*sql.DB, error) {
	q := url.Values{"_pragma": append([]string{fmt.Sprintf("busy_timeout(%d)", busyFor.Milliseconds())}, pragmas...)}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: q.Encode()}
	if filepath.VolumeName(path) != "" {
		u.Path = "/" + u.Path // C:/x is file:///C:/x
	}
	return sql.Open("sqlite", u.String())
}

// openWriter opens the file for writing and makes it ready.
func openWriter(path string, d Durability) (*sql.DB, *conn, error) {
	db, err := connect(path)
	if err != nil {
		return nil, nil, err
	}
	c, err := newConn(db)
	if err == nil {
		err = prepare(c, d)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, c, nil
}

// prepare sets up the connection, and the file if it is empty.
func prepare(c *conn, d Durability) error {
	// Before anything is changed, and all of it at one moment: another process may be
	// creating the schema now.
	var version int
	err := c.transaction("BEGIN", func() (err error) {
		version, err = checkSchema(c)
		return err
	})
	if err != nil {
		return err
	}
	if version == 0 { // else it would take the lock for writing
		if _, err := c.c.ExecContext(context.Background(), "PRAGMA auto_vacuum = INCREMENTAL"); err != nil {
			return err
		}
	}
	for _, pragma := range []string{
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = " + d.synchronous(),
		// The log is brought into the file after 16 MB, not 4: every time costs two
		// waits for the disk.
		"PRAGMA wal_autocheckpoint = 4000",
		"PRAGMA journal_size_limit = 16777216",
	} {
		if _, err := c.c.ExecContext(context.Background(), pragma); err != nil {
			return err
		}
	}
	if version == schemaVersion {
		return nil
	}
	return c.transaction("BEGIN IMMEDIATE", func() error { return upgradeSchema(c) })
}

// versionError says that a file was written by a newer Loki, or by something else.
type versionError struct {
	version int // 0 for a file of something else
}

func (e *versionError) Error() string {
	if e.version == 0 {
		return "it is not a record of runs, but a database of something else"
	}
	return fmt.Sprintf("it was written by a newer version of loki (format %d; this one knows %d)", e.version, schemaVersion)
}

// checkSchema returns the version of the file's schema, 0 for an empty file. It is
// called in a transaction, so that all it reads is of the same moment.
func checkSchema(c *conn) (version int, err error) {
	var id, tables int
	for _, q := range []struct {
		query string
		dest  *int
	}{
		{"PRAGMA application_id", &id},
		{"PRAGMA user_version", &version},
		{"SELECT count(*) FROM sqlite_schema", &tables},
	} {
		if err := c.c.QueryRowContext(context.Background(), q.query).Scan(q.dest); err != nil {
			return 0, err
		}
	}
	switch {
	case id != applicationID && (tables > 0 || version != 0):
		return 0, &versionError{}
	case version > schemaVersion:
		return 0, &versionError{version}
	}
	return version, nil
}

// upgradeSchema takes a file from the version it has to the newest one, unless another
// process has just done so. An empty file takes all steps.
func upgradeSchema(c *conn) error {
	version, err := checkSchema(c)
	if err != nil || version == schemaVersion {
		return err
	}
	for _, step := range schema[version:] {
		if _, err := c.c.ExecContext(context.Background(), step); err != nil {
			return err
		}
	}
	_, err = c.c.ExecContext(context.Background(), fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion))
	return err
}

// createFile creates an empty file that is the user's own, as SQLite would not. The
// log beside it gets the same permissions.
func createFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// busy reports whether err says that another connection holds a lock.
func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
