package sqlite

import (
	"context"
	"errors"
	"time"

	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// Put writes entries, all or nothing.
func (s *Store) Put(_ context.Context, entries ...run.Entry) error {
	return s.write("entries", true, func(c *conn) error { return s.putEntries(c, entries) })
}

func (s *Store) putEntries(c *conn, entries []run.Entry) error {
	for _, e := range entries {
		var version int
		var of string
		if _, err := c.row("SELECT version, run FROM entries WHERE key = ?", []any{e.Key}, &version, &of); err != nil {
			return err
		}
		if version != e.Version {
			return &run.ConflictError{Key: e.Key, Run: of}
		}
		if e.Gone {
			if _, err := c.exec("DELETE FROM entries WHERE key = ?", e.Key); err != nil {
				return err
			}
			continue
		}
		if _, err := c.exec("INSERT OR REPLACE INTO entries (key, version, at, run, doc) VALUES (?, ?, ?, ?, ?)",
			e.Key, version+1, s.o.Now().UnixNano(), e.Run, s.seal().Bytes(e.Doc)); err != nil {
			return err
		}
	}
	return nil
}

// Entries returns the entries whose keys begin with prefix.
func (s *Store) Entries(ctx context.Context, prefix string, limit int) (entries []run.Entry, err error) {
	err = s.view(ctx, func(c *conn) error {
		most := -1
		if limit > 0 {
			most = limit
		}
		v := s.on(c)
		entries, err = record.Entries(ctx, v, v.blobs, "SELECT key, version, at, run, doc FROM entries WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT ?", prefix, prefix+"\xff", most)
		return err
	})
	if errors.Is(err, errNoFile) {
		err = nil
	}
	return entries, err
}

// DropEntries deletes entries that were written before a time.
func (s *Store) DropEntries(_ context.Context, prefix string, before time.Time) error {
	err := s.write("entries", false, func(c *conn) error {
		_, err := c.exec("DELETE FROM entries WHERE key >= ? AND key < ? AND at < ?", prefix, prefix+"\xff", before.UnixNano())
		return err
	})
	if errors.Is(err, errNoFile) {
		err = nil
	}
	return err
}
