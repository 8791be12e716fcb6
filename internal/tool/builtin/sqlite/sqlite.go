// Package sqlite runs SQL of a model on a SQLite database and returns the result as
// JSON.
//
// The result of a statement with rows is
//
//	{"columns": ["id", "name"], "rows": [[1, "a"], [2, null]]}
//
// with "more_rows": true if more rows exist. That of any other statement is
//
//	{"rows_affected": 1}
//
// The result of several statements is the list of their results. A blob that is UTF-8 is a
// text; any other is the text x'...' with hexadecimal digits.
package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	driver "modernc.org/sqlite"

	"loki/internal/base/value"
	"loki/internal/tool/builtin/sqltext"
)

// Limits of a result.
const (
	maxRows  = 1000
	maxBytes = 48 << 10 // of all values, roughly
	maxValue = 64 << 20 // bytes of a value, or of a row, that a statement without consent makes
)

// limitLength is SQLITE_LIMIT_LENGTH of the C API.
const limitLength = 0

// Database is a database and how it is opened.
type Database struct {
	File     string // or ":memory:"
	Query    string // options for the driver, as in an address
	ReadOnly bool   // nothing can be changed, and no file is created
	// Closed reports whether a database that a statement attaches must not be used, by its absolute path; nil for none.
	Closed func(file string) bool
}

// schemes are the schemes of addresses of SQLite databases.
var schemes = []string{"sqlite3", "sqlite", "moderncsqlite", "sq", "mq", "file"}

// Parse reads an address such as sqlite:FILE, sqlite3://FILE or file:FILE. ok is false if
// the address is not one of SQLite.
func Parse(dsn string) (d Database, ok bool) {
	scheme, rest, found := strings.Cut(dsn, ":")
	if !found {
		return d, false
	}
	for _, s := range schemes {
		if !strings.EqualFold(scheme, s) {
			continue
		}
		rest = strings.TrimPrefix(rest, "//")
		d.File, d.Query, _ = strings.Cut(rest, "?")
		if plain, err := url.PathUnescape(d.File); err == nil {
			d.File = plain
		}
		return d, d.File != ""
	}
	return d, false
}

// Memory reports whether the database is not in a file.
func (d Database) Memory() bool { return strings.HasPrefix(d.File, ":memory:") }

// source is the address for the driver.
func (d Database) source() string {
	options := []string{"_pragma=busy_timeout(5000)"}
	if d.Query != "" {
		options = append(options, d.Query)
	}
	if d.ReadOnly {
		options = append(options, "_pragma=query_only(1)")
		if !d.Memory() && !strings.Contains(d.Query, "mode=") {
			options = append(options, "mode=rw") // and do not create the file
		}
	}
	if d.Memory() {
		return "file::memory:?" + strings.Join(options, "&")
	}
	u := url.URL{Path: filepath.ToSlash(d.File)}
	return "file:" + u.EscapedPath() + "?" + strings.Join(options, "&")
}

// Run runs statements in order on one connection, until one fails. The error names it; the
// results until then come with it.
func (d Database) Run(ctx context.Context, statements []sqltext.Statement) (string, error) {
	if len(statements) == 0 {
		return "", errors.New("the SQL has no statement")
	}
	db, err := sql.Open("sqlite", d.source())
	if err != nil {
		return "", err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return "", endError(ctx, err)
	}
	defer conn.Close()
	if d.ReadOnly { // randomblob(1e9) needs no consent
		if _, err := driver.Limit(conn, limitLength, maxValue); err != nil {
			return "", err
		}
	}
	room := maxBytes
	var results []any
	for i, s := range statements {
		var r any
		if r, err = run(ctx, conn, s, &room); err == nil {
			err = d.checkAttached(ctx, conn)
		}
		if err != nil {
			if err = endError(ctx, err); len(statements) > 1 {
				err = fmt.Errorf("statement %d of %d: %w", i+1, len(statements), err)
			}
			break
		}
		results = append(results, r)
	}
	return marshal(results, len(statements)), err
}

// checkAttached returns an error if a database is attached that is closed.
func (d Database) checkAttached(ctx context.Context, conn *sql.Conn) error {
	if d.Closed == nil {
		return nil
	}
	rows, err := conn.QueryContext(ctx, "SELECT file FROM pragma_database_list WHERE seq > 0 AND file <> ''")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var file string
		if err := rows.Scan(&file); err != nil {
			return err
		}
		if d.Closed(file) {
			return fmt.Errorf("a rule keeps the database %s from models", file)
		}
	}
	return rows.Err()
}

// endError returns the cause of the end of ctx instead of the driver's
// "interrupted".
func endError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func marshal(results []any, statements int) string {
	var v any = results
	switch {
	case len(results) == 0:
		return ""
	case statements == 1:
		v = results[0]
	}
	doc, err := value.Marshal(v)
	if err != nil {
		return fmt.Sprintf("[the result has no JSON form: %v]", err)
	}
	return string(doc) + "\n"
}

// table is the result of a statement with rows.
type table struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	More    bool     `json:"more_rows,omitempty"`
}

// affected is the result of a statement without rows.
type affected struct {
	Rows int64 `json:"rows_affected"`
}

// run runs one statement. room is the number of bytes left for values.
func run(ctx context.Context, conn *sql.Conn, s sqltext.Statement, room *int) (any, error) {
	before, err := changes(ctx, conn)
	if err != nil {
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, s.Text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	if len(columns) == 0 {
		for rows.Next() {
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
		after, err := changes(ctx, conn)
		return affected{after - before}, err
	}
	t := table{Columns: columns, Rows: [][]any{}}
	for rows.Next() {
		// The remaining rows are not read. A statement that changes something has made
		// all changes before its first row.
		if len(t.Rows) == maxRows || *room <= 0 {
			t.More = true
			break
		}
		row := make([]any, len(columns))
		to := make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return nil, err
		}
		for i := range row {
			row[i] = plain(row[i])
			*room -= size(row[i])
		}
		t.Rows = append(t.Rows, row)
	}
	return t, rows.Err()
}

// changes returns how many rows the connection has changed so far.
func changes(ctx context.Context, conn *sql.Conn) (n int64, err error) {
	err = conn.QueryRowContext(ctx, "SELECT total_changes()").Scan(&n)
	return n, err
}

// plain returns a value in its JSON form.
func plain(v any) any {
	switch v := v.(type) {
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
		return fmt.Sprintf("x'%x'", v)
	case string:
		return strings.ToValidUTF8(v, "\uFFFD")
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case float64:
		if _, err := json.Marshal(v); err != nil {
			return fmt.Sprint(v) // an infinity
		}
	}
	return v
}

func size(v any) int {
	if s, ok := v.(string); ok {
		return len(s) + 3
	}
	return 8
}
