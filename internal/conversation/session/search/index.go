package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
)

// Document is what is found: a list of texts.
type Document struct {
	Key   string // unique among all sources
	Stamp string // another one when the document has changed
	Name  string // is looked through too
	At    time.Time
}

// Text is a part of a document.
type Text struct {
	Role string // what it is, for people
	At   time.Time
	Body string
}

// Change is what has changed in a document.
type Change struct {
	Drop   int    // how many of its last texts are gone, -1 for all
	Add    []Text // behind the others
	Cursor []byte // for the next [Source.Read]
}

// Source has documents. Its methods are called one at a time.
type Source interface {
	// List returns all documents. known are the stamps in the index, by key: of a document whose stamp is still the same, List may leave
	// out all but the key and the stamp.
	List(ctx context.Context, known map[string]string) ([]Document, error)
	// Read returns what has changed in a document since the Read that returned cursor, which is nil
	// for a new one. A document that is gone meanwhile, or cannot be read, has no texts.
	Read(ctx context.Context, key string, cursor []byte) (Change, error)
}

// Index is the index of the texts of some sources. Its methods may be called from several goroutines
// and processes.
type Index struct {
	Path    string // of the file; made, with its directory, when it is needed
	Sources []Source

	// Skipped is called with a document that could not be read and is left out. It may be nil.
	Skipped func(key string, err error)
}

// version is that of the tables and of the words in them.
const version = 1

// schema makes the tables. Words are those of package search; for FTS5, which separates them at the
// blanks only, all other characters are letters. The index has no copy of them: they follow from body.
const schema = `
CREATE TABLE docs (
	id     INTEGER PRIMARY KEY,
	key    TEXT NOT NULL UNIQUE,
	stamp  TEXT NOT NULL,
	name   TEXT NOT NULL,
	at     INTEGER NOT NULL,  -- milliseconds
	cursor BLOB
);
CREATE TABLE texts (
	id   INTEGER PRIMARY KEY,
	doc  INTEGER NOT NULL,
	role TEXT NOT NULL,       -- "" for the name of the document
	at   INTEGER NOT NULL,
	body TEXT NOT NULL
);
CREATE INDEX texts_doc ON texts (doc, id);
CREATE VIRTUAL TABLE words USING fts5 (body, content = '', tokenize = 'ascii');
INSERT INTO words (words, rank) VALUES ('secure-delete', 1), ('hashsize', 16777216);
`

// Result is a document that was found.
type Result struct {
	Key  string
	Name string
	At   time.Time // of the document
	Hits int       // texts of it that were found

	// Of the best text.
	Role    string // "" if it is the name
	TextAt  time.Time
	Snippet Snippet
	Score   float64 // above 0; the higher, the better
}

// Found is what a search found.
type Found struct {
	Results []Result // best first
	Total   int      // documents that were found, those in Results included
	More    bool     // there are, or may be, more than Total: so many texts were found that only the newest were ranked
}

// Search brings the index up to date and returns the documents with a text that satisfies the query, at
// most limit. A query without words finds nothing.
func (x *Index) Search(ctx context.Context, query string, limit int) (f Found, err error) {
	terms := parse(query)
	e := expression(terms)
	err = x.use(ctx, func(db *sql.Conn) error {
		if err := x.refresh(ctx, db); err != nil || e == "" {
			return err
		}
		f, err = find(ctx, db, e, requiredTerms(terms), limit)
		return err
	})
	return f, err
}

// Forget removes a document from the file, if there is one, so that nothing of it is left there.
func (x *Index) Forget(ctx context.Context, key string) error {
	if _, err := os.Stat(x.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return x.use(ctx, func(db *sql.Conn) error {
		return transaction(ctx, db, func() error { return forget(ctx, db, key) })
	})
}

// use calls do with the open file, which no other process changes meanwhile. A file that is damaged is
// made anew, once.
func (x *Index) use(ctx context.Context, do func(db *sql.Conn) error) error {
	if err := os.MkdirAll(filepath.Dir(x.Path), 0o700); err != nil {
		return x.fault(err)
	}
	unlock, err := atomicfile.Lock(ctx, x.Path+".lock")
	if err != nil {
		return x.fault(err)
	}
	defer unlock()
	err = x.open(ctx, do)
	if isDamage(err) && ctx.Err() == nil {
		if err = x.remove(); err == nil {
			err = x.open(ctx, do)
		}
	}
	return x.fault(err)
}

// fault returns an error of the file for people.
func (x *Index) fault(err error) error {
	if err == nil {
		return nil
	}
	_, database := errors.AsType[*sqlite.Error](err)
	_, file := errors.AsType[*fs.PathError](err)
	if !database && !file {
		return err
	}
	return fault.Wrap(fault.Failure, err, "the search index %s cannot be used", x.Path).
		WithHint("it can be deleted at any time, and the next search rebuilds it; its directory must be writable and not full")
}

var errOther = errors.New("another version of the index")

// isDamage reports whether an error says that the file is of no use.
func isDamage(err error) bool {
	if errors.Is(err, errOther) {
		return true
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT:
		return true
	}
	return false
}

func (x *Index) remove() error {
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(x.Path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (x *Index) open(ctx context.Context, do func(db *sql.Conn) error) (err error) {
	f, err := os.OpenFile(x.Path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would let others read it
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(x.Path), RawQuery: url.Values{"_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)", "secure_delete(1)", "cache_size(-16000)", "temp_store(MEMORY)",
	}}.Encode()}
	if filepath.VolumeName(x.Path) != "" {
		u.Path = "/" + u.Path // C:/x is file:///C:/x
	}
	pool, err := sql.Open("sqlite", u.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	db, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := prepare(ctx, db); err != nil {
		return err
	}
	return do(db)
}

// prepare makes the tables in a new file.
func prepare(ctx context.Context, db *sql.Conn) error {
	var is, tables int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&is); err != nil || is == version {
		return err
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if is != 0 || tables > 0 {
		return errOther
	}
	return transaction(ctx, db, func() error {
		_, err := db.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d", version))
		return err
	})
}

// transaction calls do between BEGIN and COMMIT, or ROLLBACK if it fails.
func transaction(ctx context.Context, db *sql.Conn, do func() error) error {
	if _, err := db.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := do()
	if err == nil {
		_, err = db.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, _ = db.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // fails if SQLite has rolled back by itself
	}
	return err
}

// candidates is how many texts are ranked: the newest that satisfy the query. Where there are more, the
// words are too common for a ranking to say much.
const candidates = 5000

// find returns the documents that satisfy an expression.
func find(ctx context.Context, db *sql.Conn, e string, terms []term, limit int) (f Found, err error) {
	var oldest, texts int64
	err = db.QueryRowContext(ctx, "SELECT ifnull(min(id), 0), count(*) FROM (SELECT rowid AS id FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?)", e, candidates).Scan(&oldest, &texts)
	if err != nil || texts == 0 {
		return f, err
	}
	rows, err := db.QueryContext(ctx, `
		SELECT t.doc, t.id, d.key, d.name, d.at, w.score
		FROM (SELECT rowid AS id, bm25(words) AS score FROM words WHERE words MATCH ? AND rowid >= ?) AS w
		JOIN texts AS t ON t.id = w.id JOIN docs AS d ON d.id = t.doc`, e, oldest)
	if err != nil {
		return f, err
	}
	defer rows.Close()
	type best struct {
		Result
		text int64
	}
	byDoc := make(map[int64]*best)
	for rows.Next() {
		var doc, text, at int64
		var r Result
		if err := rows.Scan(&doc, &text, &r.Key, &r.Name, &at, &r.Score); err != nil {
			return f, err
		}
		r.Score, r.At = -r.Score, time.UnixMilli(at).UTC()
		b := byDoc[doc]
		if b == nil {
			b = &best{Result: r, text: text}
			byDoc[doc] = b
		}
		b.Hits++
		if r.Score > b.Score || r.Score == b.Score && text > b.text {
			b.Score, b.text = r.Score, text
		}
	}
	if err := rows.Err(); err != nil {
		return f, err
	}
	var all []*best
	for _, b := range byDoc {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *best) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.At.Compare(a.At), cmp.Compare(a.Key, b.Key))
	})
	f.Total, f.More = len(all), texts == candidates
	for _, b := range all[:min(limit, len(all))] {
		var at int64
		var body string
		if err := db.QueryRowContext(ctx, "SELECT role, at, body FROM texts WHERE id = ?", b.text).Scan(&b.Role, &at, &body); err != nil {
			return f, err
		}
		b.TextAt = time.UnixMilli(at).UTC()
		b.Snippet = snippet(body, terms)
		f.Results = append(f.Results, b.Result)
	}
	return f, nil
}
