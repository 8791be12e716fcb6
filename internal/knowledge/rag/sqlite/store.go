// Package sqlite keeps the index of a knowledge base in one SQLite file.
//
// The file NAME.db is never changed. A build is a file beside it, NAME.db.build, that takes its
// place once it is complete: readers of the old file keep reading it. The exception is Windows,
// which does not replace a file that is open. There Commit and Configure fail as long as an index is
// open, and the next build resumes from what there is.
//
// While a build is under way NAME.db.build.lock is locked. The lock is one of the operating system
// and ends with its process.
//
// Chunks are numbered across all files, in the order they were put, so that the order of the numbers
// is that of ids. The numbers of removed chunks are not used again.
package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
	"loki/internal/knowledge/rag"
)

// What makes a SQLite file one of ours, and the version of its tables.
const (
	applicationID = 0x4c6f5267
	formatVersion = 3
	// oldVersion is that of files with an index of words of another kind, which is made anew from the texts.
	oldVersion = 2
)

const schema = `
CREATE TABLE base (
	settings   TEXT    NOT NULL, -- JSON
	built      INTEGER NOT NULL, -- Unix time in ms
	dimensions INTEGER NOT NULL,
	next_file  INTEGER NOT NULL,
	next_chunk INTEGER NOT NULL
);
CREATE TABLE files (
	id     INTEGER PRIMARY KEY,
	path   TEXT    NOT NULL UNIQUE,
	hash   TEXT    NOT NULL,
	source TEXT    NOT NULL, -- that led to it
	first  INTEGER NOT NULL, -- number of the first chunk
	chunks INTEGER NOT NULL,
	unread TEXT    NOT NULL DEFAULT '' -- parts of it that were not read
);
CREATE TABLE chunks (
	number  INTEGER PRIMARY KEY,
	heading TEXT    NOT NULL,
	start   INTEGER NOT NULL,
	finish  INTEGER NOT NULL,
	digest  INTEGER NOT NULL, -- of heading and text
	text    BLOB    NOT NULL  -- compressed
);
CREATE INDEX chunks_by_digest ON chunks (digest);
CREATE TABLE vectors (
	number INTEGER PRIMARY KEY, -- of the first chunk
	data   BLOB    NOT NULL     -- little-endian float32, of up to vectorRow chunks of one file
);
`

// wordsSchema makes the index of words: the tokens of package rank with blanks in between, so that the punctuation in them is no
// separator. It holds no copy of them: they follow from the chunks.
const wordsSchema = `
CREATE VIRTUAL TABLE words USING fts5 (tokens, content = '', contentless_delete = 1, tokenize = "ascii tokenchars '_.:,;'''");
CREATE VIRTUAL TABLE occurrences USING fts5vocab (words, instance);
INSERT INTO words (words, rank) VALUES ('hashsize', 67108864);
`

// vectorRow is the number of vectors in a row of the table vectors.
const vectorRow = 16

// Store is a [rag.Store] in a file.
type Store struct {
	path string
}

// New returns the store at path. Neither the file nor its directory has to exist.
func New(path string) *Store { return &Store{path} }

func (s *Store) buildPath() string { return s.path + ".build" }
func (s *Store) copyPath() string  { return s.path + ".build.copy" }

// Open returns the index in use.
func (s *Store) Open(ctx context.Context) (rag.Index, error) {
	x, err := openIndex(ctx, s.path)
	if damaged(err) {
		err = &rag.DamagedError{Settings: salvage(ctx, s.path), Err: err}
	}
	if err != nil {
		return nil, explain(s.path, err)
	}
	return x, nil
}

// salvage returns the settings in a damaged file, nil if they cannot be found.
func salvage(ctx context.Context, path string) *rag.Settings {
	const near = 1 << 20 // they are at the beginning of the file
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, near)) // what can be read of it
	for ctx.Err() == nil {
		i := bytes.Index(data, []byte(`{"embedding_model":`))
		if i < 0 {
			return nil
		}
		data = data[i:]
		var set rag.Settings
		if json.NewDecoder(bytes.NewReader(data)).Decode(&set) == nil && set.Validate() == nil && len(set.Documents) > 0 {
			return &set
		}
		data = data[1:]
	}
	return nil
}

// Build begins a build or resumes an interrupted one.
func (s *Store) Build(ctx context.Context, set rag.Settings) (rag.Build, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	b := &build{store: s, settings: set, unlock: unlock}
	if err := b.begin(ctx); err != nil {
		return nil, errors.Join(explain(s.path, err), b.Close())
	}
	return b, nil
}

// Configure changes the settings of the index in use that concern searches only: all but the
// documents and the ones that decide what it holds, which must be the same.
func (s *Store) Configure(ctx context.Context, set rag.Settings) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return explain(s.path, s.configure(ctx, set))
}

func (s *Store) configure(ctx context.Context, set rag.Settings) error {
	x, err := openIndex(ctx, s.path)
	if err != nil {
		return err
	}
	old := x.stats.Settings
	if err := x.Close(); err != nil {
		return err
	}
	if !set.SameChunks(old) {
		return errors.New("these settings need a build")
	}
	set.Documents = old.Documents
	return s.rewrite(ctx, func(c *conn) error { return c.setSettings(set) })
}

// rewrite replaces the file by a copy that was changed.
func (s *Store) rewrite(ctx context.Context, change func(c *conn) error) error {
	if err := copyFile(ctx, s.path, s.copyPath()); err != nil {
		return err
	}
	defer os.Remove(s.copyPath())
	c, err := openWriter(s.copyPath(), false)
	if err != nil {
		return err
	}
	if err := errors.Join(change(c), c.close()); err != nil {
		return err
	}
	return replace(s.copyPath(), s.path)
}

// Delete removes the knowledge base.
func (s *Store) Delete(ctx context.Context) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return errors.Join(remove(s.path), s.drop())
}

// drop removes builds that were interrupted.
func (s *Store) drop() error {
	return errors.Join(remove(s.buildPath()), remove(s.buildPath()+"-wal"), remove(s.buildPath()+"-journal"),
		remove(s.copyPath()), remove(s.copyPath()+"-wal"), remove(s.copyPath()+"-journal"))
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lockWait is how long a lock may take that no process holds: processes that end release it first and
// remove the file then.
const lockWait = 100 * time.Millisecond

// lock makes this the only build, across processes.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	path := s.buildPath() + ".lock"
	waiting, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	unlock, err = atomicfile.Lock(waiting, path)
	if err == nil {
		// For the message of another process, so it does not matter if it fails.
		_ = os.WriteFile(path, fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600)
		return unlock, nil
	}
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return nil, explain(s.path, err)
	}
	return nil, fault.New(fault.Usage, "the knowledge base %s is being built by %s", s.path, owner(ctx, path)).
		WithHint("try again when that is done, or end it: what it has done so far is kept")
}

// owner names the process that holds the lock at path. One that took it an instant ago may not have
// written its number yet.
func owner(ctx context.Context, path string) string {
	for range 20 {
		pid, err := os.ReadFile(path)
		if text := string(pid); err == nil && strings.HasSuffix(text, "\n") {
			return "process " + strings.TrimSpace(text)
		}
		select {
		case <-time.After(lockWait / 20):
		case <-ctx.Done():
		}
	}
	return "another process"
}

// copyFile copies a file, by the file system's own means if it has some. The copy is not synced.
func copyFile(ctx context.Context, from, to string) (err error) {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_TRUNC, atomicfile.Private)
	if err != nil {
		return err
	}
	for err == nil {
		if err = ctx.Err(); err == nil {
			_, err = io.CopyN(w, r, 64<<20)
		}
	}
	if err == io.EOF {
		err = nil
	}
	if err = errors.Join(err, w.Close()); err != nil {
		_ = os.Remove(to)
	}
	return err
}

// replace puts a complete file in the place of another one, for good.
func replace(from, to string) error {
	f, err := os.OpenFile(from, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := atomicfile.Rename(from, to); err != nil {
		return fault.Wrap(fault.Failure, err, "the new index cannot take the place of %s", to).
			WithHint("end other processes that use this knowledge base, then try again: what was built is kept")
	}
	atomicfile.SyncDir(filepath.Dir(to))
	return nil
}

// openFile opens a regular file: opening a pipe might never end.
func openFile(path, options string) (*sql.DB, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &formatError{irregular: true}
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, nil, err
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: options}
	if filepath.VolumeName(path) != "" {
		u.Path = "/" + u.Path // C:/x is file:///C:/x
	}
	db, err := sql.Open("sqlite", u.String())
	return db, info, err
}

// errDamaged says that what is stored is not what was written.
var errDamaged = errors.New("its contents are malformed")

// verify returns the version of a file, and an error if it is not one of ours.
func verify(ctx context.Context, db querier) (version int64, err error) {
	var id int64
	if err := readRow(ctx, db, "SELECT * FROM pragma_application_id, pragma_user_version", &id, &version); err != nil {
		return 0, err
	}
	if id != applicationID || version != formatVersion && version != oldVersion {
		return 0, &formatError{foreign: id != applicationID, version: version}
	}
	return version, nil
}

// formatError says that a file is not one that this version can read.
type formatError struct {
	irregular bool
	foreign   bool
	version   int64
}

func (e *formatError) Error() string {
	switch {
	case e.irregular:
		return "it is not a regular file"
	case e.foreign:
		return "it is another kind of file"
	}
	age := "a newer"
	if e.version < formatVersion {
		age = "an older"
	}
	return fmt.Sprintf("it was written by %s version of loki (format %d, this one knows %d)", age, e.version, formatVersion)
}

// damaged reports whether err says that a file cannot be read for what is in it.
func damaged(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR:
			return true
		}
	}
	_, json := errors.AsType[*json.SyntaxError](err)
	return json || errors.Is(err, errDamaged)
}

// explain turns an error about the file at path into one for its user.
func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if e, ok := errors.AsType[*formatError](err); ok {
		f := fault.Wrap(fault.Config, err, "%s is not a knowledge base of this version", path)
		if e.irregular || e.foreign {
			return f.WithHint("move it aside: mv %s %s", text.Word(path), text.Word(path+".old"))
		}
		if e.version < formatVersion {
			return f.WithHint("remove the file (rm %s) and build the knowledge base again", text.Word(path))
		}
		return f.WithHint("update loki, or remove the file (rm %s) and build the knowledge base again", text.Word(path))
	}
	if damaged(err) {
		f := fault.Wrap(fault.Failure, err, "the knowledge base %s is damaged", path)
		opening, ok := errors.AsType[*rag.DamagedError](err)
		switch {
		case !ok:
			return f.WithHint("build it again with --rebuild-rag, which replaces what cannot be read")
		case opening.Settings == nil:
			return f.WithHint("remove it (rm %s) and build it again, with --rag-add for each of its documents", text.Word(path))
		}
		return f.WithHint("build it again with --rebuild-rag: its settings and the list of its documents can still be read")
	}
	code := 0
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code = e.Code()
	}
	kind := code & 0xff
	is := func(list ...error) bool {
		return slices.ContainsFunc(list, func(one error) bool { return errors.Is(err, one) })
	}
	const asItWas = "the knowledge base is as it was, and what was built is kept"
	switch {
	case kind == sqlite3.SQLITE_FULL || is(syscall.ENOSPC, syscall.EDQUOT):
		return fault.Wrap(fault.Failure, err, "no space is left to write %s", path).WithHint("free some space and build again: %s", asItWas)
	case kind == sqlite3.SQLITE_READONLY || kind == sqlite3.SQLITE_CANTOPEN || kind == sqlite3.SQLITE_PERM || is(fs.ErrPermission, syscall.EROFS):
		return fault.Wrap(fault.Config, err, "cannot open or write %s", path).
			WithHint("look at the permissions of the file and its directory, and whether the file system is read-only")
	case code == sqlite3.SQLITE_IOERR_READ || code == sqlite3.SQLITE_IOERR_SHORT_READ:
		return fault.Wrap(fault.Failure, err, "the system cannot read %s", path).
			WithHint("the disk or its connection may be broken: look at the log of the system, and build the knowledge base again elsewhere (LOKI_RAGS_DIR)")
	case kind == sqlite3.SQLITE_IOERR || is(syscall.EFBIG, syscall.EIO):
		return fault.Wrap(fault.Failure, err, "the system cannot write %s", path).
			WithHint("look for a limit on the size of files (ulimit -f), a quota or a broken disk, then build again: %s", asItWas)
	}
	return fmt.Errorf("knowledge base %s: %w", path, err)
}
