package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// batch is about how much text a transaction takes in, in bytes. A process that is killed loses no more
// than one. Each document counts as perDocument bytes more, which is what reading it costs.
const (
	batch       = 4 << 20
	perDocument = 4 << 10
)

// refresh brings the index up to date: it reads what has changed, and removes what is gone.
func (x *Index) refresh(ctx context.Context, db *sql.Conn) error {
	type known struct {
		id     int64
		stamp  string
		cursor []byte
	}
	have, stamps := make(map[string]known), make(map[string]string)
	rows, err := db.QueryContext(ctx, "SELECT id, key, stamp, cursor FROM docs")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var k known
		var key string
		if err := rows.Scan(&k.id, &key, &k.stamp, &k.cursor); err != nil {
			return err
		}
		have[key], stamps[key] = k, k.stamp
	}
	if err := rows.Err(); err != nil {
		return err
	}

	w := &writer{db: db}
	defer w.close()
	for _, s := range x.Sources {
		docs, err := s.List(ctx, stamps)
		if err != nil {
			return errors.Join(err, w.end(ctx, false))
		}
		slices.SortStableFunc(docs, func(a, b Document) int { return a.At.Compare(b.At) }) // later texts have greater numbers
		for _, d := range docs {
			k, ok := have[d.Key]
			delete(have, d.Key)
			if ok && k.stamp == d.Stamp {
				continue
			}
			change, err := s.Read(ctx, d.Key, k.cursor)
			if err != nil {
				if ctx.Err() != nil {
					return errors.Join(err, w.end(ctx, false))
				}
				if x.Skipped != nil {
					x.Skipped(d.Key, err)
				}
				change = Change{Drop: -1}
			}
			if err := w.put(ctx, k.id, d, change); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", d.Key, err), w.end(ctx, false))
			}
		}
	}
	for key := range have {
		if err := w.begin(ctx); err != nil {
			return err
		}
		if err := forget(ctx, db, key); err != nil {
			return errors.Join(err, w.end(ctx, false))
		}
	}
	return w.end(ctx, true)
}

// writer writes documents in transactions of a limited size.
type writer struct {
	db          *sql.Conn
	open        bool
	size        int
	text, words *sql.Stmt // insert; nil before the first
}

func (w *writer) close() {
	if w.text != nil {
		_ = errors.Join(w.text.Close(), w.words.Close()) // what they wrote is committed or not
	}
}

func (w *writer) begin(ctx context.Context) error {
	if w.open {
		return nil
	}
	_, err := w.db.ExecContext(ctx, "BEGIN IMMEDIATE")
	w.open = err == nil
	return err
}

// end ends the transaction, if there is one.
func (w *writer) end(ctx context.Context, commit bool) error {
	if !w.open {
		return nil
	}
	w.open, w.size = false, 0
	if !commit {
		_, _ = w.db.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // fails if SQLite has rolled back by itself
		return nil
	}
	_, err := w.db.ExecContext(ctx, "COMMIT")
	return err
}

// put writes what has changed in a document; id is 0 for a new one.
func (w *writer) put(ctx context.Context, id int64, d Document, c Change) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	if id == 0 {
		res, err := w.db.ExecContext(ctx, "INSERT INTO docs (key, stamp, name, at, cursor) VALUES (?, '', '', 0, NULL)", d.Key)
		if err != nil {
			return err
		}
		if id, err = res.LastInsertId(); err != nil {
			return err
		}
	}
	var name string
	if err := w.db.QueryRowContext(ctx, "SELECT name FROM docs WHERE id = ?", id).Scan(&name); err != nil {
		return err
	}
	if name != d.Name {
		if err := drop(ctx, w.db, "doc = ? AND role = ''", id); err != nil {
			return err
		}
		if err := w.add(ctx, id, Text{At: d.At, Body: d.Name}); err != nil {
			return err
		}
	}
	switch {
	case c.Drop < 0:
		if err := drop(ctx, w.db, "doc = ? AND role <> ''", id); err != nil {
			return err
		}
	case c.Drop > 0:
		if err := drop(ctx, w.db, "id IN (SELECT id FROM texts WHERE doc = ? AND role <> '' ORDER BY id DESC LIMIT ?)", id, c.Drop); err != nil {
			return err
		}
	}
	for _, t := range c.Add {
		if err := w.add(ctx, id, t); err != nil {
			return err
		}
	}
	if _, err := w.db.ExecContext(ctx, "UPDATE docs SET stamp = ?, name = ?, at = ?, cursor = ? WHERE id = ?", d.Stamp, d.Name, d.At.UnixMilli(), c.Cursor, id); err != nil {
		return err
	}
	if w.size += perDocument; w.size < batch {
		return nil
	}
	return w.end(ctx, true)
}

func (w *writer) add(ctx context.Context, doc int64, t Text) (err error) {
	if w.text == nil {
		if w.text, err = w.db.PrepareContext(ctx, "INSERT INTO texts (doc, role, at, body) VALUES (?, ?, ?, ?)"); err != nil {
			return err
		}
		if w.words, err = w.db.PrepareContext(ctx, "INSERT INTO words (rowid, body) VALUES (?, ?)"); err != nil {
			return errors.Join(err, w.text.Close())
		}
	}
	words := indexText(t.Body)
	if words == "" && t.Role == "" {
		return nil
	}
	at := t.At
	if at.IsZero() {
		at = time.UnixMilli(0)
	}
	res, err := w.text.ExecContext(ctx, doc, t.Role, at.UnixMilli(), t.Body)
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	w.size += len(t.Body)
	_, err = w.words.ExecContext(ctx, id, words)
	return err
}

// forget removes a document.
func forget(ctx context.Context, db *sql.Conn, key string) error {
	if err := drop(ctx, db, "doc = (SELECT id FROM docs WHERE key = ?)", key); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, "DELETE FROM docs WHERE key = ?", key)
	return err
}

// drop removes the texts that satisfy a condition, with their words, which follow from them.
func drop(ctx context.Context, db *sql.Conn, where string, args ...any) error {
	rows, err := db.QueryContext(ctx, "SELECT id, body FROM texts WHERE "+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	bodies := make(map[int64]string)
	for rows.Next() {
		var id int64
		var body string
		if err := rows.Scan(&id, &body); err != nil {
			return err
		}
		bodies[id] = body
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for id, body := range bodies {
		if _, err := db.ExecContext(ctx, "INSERT INTO words (words, rowid, body) VALUES ('delete', ?, ?)", id, indexText(body)); err != nil {
			return err
		}
		if _, err := db.ExecContext(ctx, "DELETE FROM texts WHERE id = ?", id); err != nil {
			return err
		}
	}
	return nil
}
