// Package answers keeps the answers of requests with an Idempotency-Key, in an SQLite file or in a database that several servers share, so that a request
// that comes again, also after a restart, is answered and not done again.
package answers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"loki/internal/frontend/server/rest"
)

// keptFor is how long an answer is kept.
const keptFor = 24 * time.Hour

// sweepEvery is how often old answers are deleted.
const sweepEvery = 10 * time.Minute

// schema makes the table. process is that of a request at work.
const schema = `
CREATE TABLE IF NOT EXISTS answers (
	subject TEXT NOT NULL,
	key     TEXT NOT NULL,
	digest  BLOB NOT NULL,
	at      INTEGER NOT NULL,  -- seconds
	process TEXT NOT NULL,     -- "" once it is answered
	status  INTEGER NOT NULL,
	type    TEXT NOT NULL,
	place   TEXT NOT NULL,     -- Location
	body    BLOB NOT NULL,
	PRIMARY KEY (subject, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answers_at ON answers (at);
`

// Store is a file of answers. It implements [rest.Answers].
type Store struct {
	path    string
	now     func() time.Time
	process string // tells this process's requests from those of one that ended
	sweeps  sweeps

	mu sync.Mutex
	db *sql.DB // nil before it is needed; guarded by mu
}

// New returns the store in a file, which is made when it is needed. A nil now means time.Now.
func New(path string, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{path: path, now: now, process: rand.Text()}
}

// open opens the file.
func (s *Store) open() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db != nil {
		return s.db, nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600) // the user's own, as SQLite would not
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	q := url.Values{"_pragma": {"busy_timeout(30000)", "journal_mode(WAL)", "synchronous(NORMAL)"}, "_txlock": {"immediate"}}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(s.path), RawQuery: q.Encode()}
	if filepath.VolumeName(s.path) != "" {
		u.Path = "/" + u.Path
	}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(context.Background(), schema); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.path, err), db.Close())
	}
	s.db = db
	return db, nil
}

// sweeps says when old answers are deleted.
type sweeps struct {
	mu   sync.Mutex
	last time.Time // guarded by mu
}

// due reports whether old answers were not deleted lately, in which case the caller does so.
func (s *sweeps) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := now.Sub(s.last) >= sweepEvery
	if due {
		s.last = now
	}
	return due
}

// Begin says that a request is about to be done, see [rest.Answers].
func (s *Store) Begin(ctx context.Context, subject, key string, digest []byte, again bool) (*rest.Kept, error) {
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	now := s.now()
	if s.sweeps.due(now) {
		if _, err := db.ExecContext(ctx, "DELETE FROM answers WHERE at <= ?", now.Add(-keptFor).Unix()); err != nil {
			return nil, err
		}
	}
	res, err := db.ExecContext(ctx, `INSERT INTO answers (subject, key, digest, at, process, status, type, place, body) VALUES (?, ?, ?, ?, ?, 0, '', '', '')
		ON CONFLICT DO UPDATE SET digest = excluded.digest, at = excluded.at, process = excluded.process, status = 0, type = '', place = '', body = ''
		WHERE at <= ? OR ? AND digest = excluded.digest AND place = '' AND process NOT IN ('', excluded.process)`,
		subject, key, digest, now.Unix(), s.process, now.Add(-keptFor).Unix(), again)
	if err != nil {
		return nil, err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return nil, err
	}
	var k rest.Kept
	var process string
	err = db.QueryRowContext(ctx, "SELECT digest, process, status, type, place, body FROM answers WHERE subject = ? AND key = ?", subject, key).
		Scan(&k.Digest, &process, &k.Status, &k.Type, &k.Where, &k.Body)
	if errors.Is(err, sql.ErrNoRows) { // forgotten at this moment
		return &rest.Kept{Digest: digest, State: rest.KeptRunning}, nil
	}
	switch process {
	case "":
	case s.process:
		k.State = rest.KeptRunning
	default:
		k.State = rest.KeptLost
	}
	return &k, err
}

// Place keeps where a request has its effect, see [rest.Answers].
func (s *Store) Place(ctx context.Context, subject, key, where string) error {
	return s.exec(ctx, "UPDATE answers SET place = ? WHERE subject = ? AND key = ? AND process = ?", where, subject, key, s.process)
}

// End keeps an answer, see [rest.Answers].
func (s *Store) End(ctx context.Context, subject, key string, answer rest.Kept) error {
	return s.exec(ctx, "UPDATE answers SET process = '', status = ?, type = ?, place = ?, body = ? WHERE subject = ? AND key = ? AND process = ?",
		answer.Status, answer.Type, answer.Where, append([]byte{}, answer.Body...), subject, key, s.process)
}

// Forget says that a request was not done, see [rest.Answers].
func (s *Store) Forget(ctx context.Context, subject, key string) error {
	return s.exec(ctx, "DELETE FROM answers WHERE subject = ? AND key = ? AND process = ?", subject, key, s.process)
}

// exec runs a statement.
func (s *Store) exec(ctx context.Context, statement string, args ...any) error {
	db, err := s.open()
	if err == nil {
		_, err = db.ExecContext(ctx, statement, args...)
	}
	return err
}

// Close closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}
