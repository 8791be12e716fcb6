package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/workflow/run"
)

// Deleting is done in transactions that hold the lock of the file for a few
// milliseconds each, with a pause after each in which others write. A run disappears in
// the first one; what belonged to it is swept out piece by piece. If the process dies
// meanwhile, the next deletion continues with the rest.
//
// Pages that become free are given back after each transaction, because SQLite looks for
// a page among all that are free: done at the end it would take a time that grows with
// the square of their number.
const (
	sweepRows   = 128 // rows of a run that one transaction deletes
	sweepPieces = 128 // pieces of blobs that it deletes, of 8 KiB
	freedPages  = 128 // pages that it gives back

	// From this number of free pages on fewer are given back at once.
	manyFree = 50_000
	// maxPause bounds the pause after a transaction, which is as long as that was.
	maxPause = 25 * time.Millisecond
)

// rowsOf are the tables whose rows belong to the run in their column run, in the order in
// which they are swept, with the rest of their keys. Checkpoints go last: a run that has
// some and is not in runs was not swept to its end.
var rowsOf = [...]struct{ table, key string }{
	{"leases", "run"}, {"questions", "id"}, {"signals", "n"}, {"tasks", "step, node"}, {"events", "n"}, {"steps", "n"}, {"state", "key, step"}, {"checkpoints", "step"},
}

// Delete forgets runs that neither work nor wait, and makes the file smaller by what only
// they used.
func (s *Store) Delete(ctx context.Context, ids ...string) (deleted []string, err error) {
	d := deletion{store: s, ctx: ctx}
	err = d.rest()
	// The newest first: they are at the end of the file, so that fewer pages have to be
	// moved there.
	rows, findErr := d.find(ids)
	if err = errors.Join(err, findErr); err == nil {
		for _, r := range rows {
			var gone bool
			if gone, err = d.forget(r); gone {
				deleted = append(deleted, r.name)
			}
			if err == nil && gone {
				err = d.sweep(r.id)
			}
			if err != nil {
				break
			}
		}
	}
	if errors.Is(err, errNoFile) {
		return nil, nil
	}
	s.checkpoint()
	return deleted, err
}

// deletion is one call of Delete.
type deletion struct {
	store *Store
	ctx   context.Context
}

// target is a run to delete.
type target struct {
	id   int64
	name string
}

// step runs fn in one short transaction, gives the pages back that are free after it, and
// lets others write.
func (d *deletion) step(fn func(c *conn) error) error {
	if err := context.Cause(d.ctx); err != nil {
		return err
	}
	if err := d.withPause(func() error { return d.store.write("delete", false, fn) }); err != nil {
		return err
	}
	for {
		more := false
		err := d.withPause(func() (err error) {
			more, err = d.store.giveBack()
			return err
		})
		if err != nil || !more {
			return err
		}
	}
}

// withPause calls fn and pauses for as long as that took.
func (d *deletion) withPause(fn func() error) error {
	start := time.Now()
	err := fn()
	_ = retry.Sleep(d.ctx, min(time.Since(start), maxPause)) // what comes next sees that ctx has ended
	return err
}

// find returns the runs with the given ids, newest first.
func (d *deletion) find(ids []string) (rows []target, err error) {
	err = d.store.view(d.ctx, func(c *conn) error {
		for _, name := range ids {
			r := target{name: name}
			if ok, err := c.row("SELECT id FROM runs WHERE name = ?", []any{name}, &r.id); err != nil {
				return err
			} else if ok {
				rows = append(rows, r)
			}
		}
		return nil
	})
	slices.SortFunc(rows, func(a, b target) int { return int(b.id - a.id) })
	return rows, err
}

// forget makes a run disappear, unless it works or waits.
func (d *deletion) forget(r target) (gone bool, err error) {
	err = d.step(func(c *conn) error {
		gone = false
		var status string
		if ok, err := c.row("SELECT status FROM runs WHERE id = ?", []any{r.id}, &status); err != nil || !ok || !run.Status(status).Over() {
			return err
		}
		l, ok, err := findLease(c, r.id)
		if err != nil {
			return err
		}
		if ok {
			if held, _, _ := d.store.holds(l); held {
				return nil
			}
		}
		gone = true
		delete(d.store.leased, r.id)
		_, err = c.exec("DELETE FROM runs WHERE id = ?", r.id)
		return err
	})
	return gone && err == nil, err
}

// rest sweeps out what earlier deletions left behind.
func (d *deletion) rest() error {
	var runs []int64
	var blobs []garbage
	err := d.store.view(d.ctx, func(c *conn) error {
		var id int64
		err := c.rows(`
			WITH RECURSIVE ids (id) AS (
				SELECT min(run) FROM checkpoints
				UNION ALL
				SELECT (SELECT min(run) FROM checkpoints WHERE run > ids.id) FROM ids WHERE id IS NOT NULL
			)
			SELECT id FROM ids WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM runs)`,
			nil, []any{&id}, func() error { runs = append(runs, id); return nil })
		if err != nil {
			return err
		}
		var g garbage
		var size int
		return c.rows("SELECT id, size FROM blobs WHERE refs <= 0", nil, []any{&g.id, &size}, func() error {
			g.pieces = piecesOf(size)
			blobs = append(blobs, g)
			return nil
		})
	})
	if err == nil {
		err = d.sweepBlobs(blobs)
	}
	for _, id := range runs {
		if err == nil {
			err = d.sweep(id)
		}
	}
	return err
}

// sweep deletes what belonged to a run that is not there any more.
func (d *deletion) sweep(id int64) error {
	for {
		freed, more, err := d.release(id)
		if err == nil {
			err = d.sweepBlobs(freed)
		}
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	for _, t := range rowsOf {
		query := fmt.Sprintf("DELETE FROM %[1]s WHERE run = ?1 AND (%[2]s) IN (SELECT %[2]s FROM %[1]s WHERE run = ?1 LIMIT ?2)", t.table, t.key)
		for more := true; more; {
			err := d.step(func(c *conn) error {
				delete(d.store.leased, id) // of a journal that has not noticed
				res, err := c.exec(query, id, sweepRows)
				if err != nil {
					return err
				}
				n, err := res.RowsAffected()
				more = n == sweepRows
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// garbage is a blob that no run uses. Its row stays until its pieces are gone, so that
// its id is not used again, but no content leads to it any more.
type garbage struct {
	id     int64
	pieces int
}

func piecesOf(size int) int { return (size + pieceSize - 1) / pieceSize }

// release drops uses of blobs by a run, and returns the blobs that no other run uses.
func (d *deletion) release(id int64) (freed []garbage, more bool, err error) {
	err = d.step(func(c *conn) error {
		freed = nil
		type use struct {
			blob int64
			refs int
			size int
		}
		var u use
		var uses []use
		err := c.rows("SELECT u.blob, coalesce(b.refs, 0), coalesce(b.size, 0) FROM uses u LEFT JOIN blobs b ON b.id = u.blob WHERE u.run = ? LIMIT ?",
			[]any{id, sweepRows}, []any{&u.blob, &u.refs, &u.size}, func() error { uses = append(uses, u); return nil })
		if err != nil {
			return err
		}
		more = len(uses) == sweepRows
		for _, u := range uses {
			if u.refs > 1 {
				_, err = c.exec("UPDATE blobs SET refs = refs - 1 WHERE id = ?", u.blob)
			} else {
				freed = append(freed, garbage{u.blob, piecesOf(u.size)})
				_, err = c.exec("UPDATE blobs SET refs = 0, hash = ? WHERE id = ?", fmt.Appendf(nil, "deleted blob %d", u.blob), u.blob)
			}
			if err != nil {
				return err
			}
			if _, err := c.exec("DELETE FROM uses WHERE run = ? AND blob = ?", id, u.blob); err != nil {
				return err
			}
		}
		return nil
	})
	return freed, more, err
}

// sweepBlobs deletes blobs that no run uses, from the end.
func (d *deletion) sweepBlobs(blobs []garbage) error {
	for len(blobs) > 0 {
		left := blobs
		err := d.step(func(c *conn) error {
			left = slices.Clone(blobs)
			for room := sweepPieces; room > 0 && len(left) > 0; {
				b := &left[len(left)-1]
				// Another process may have swept it out meanwhile, and its id may be that of
				// another blob now.
				var refs int
				ok, err := c.row("SELECT refs FROM blobs WHERE id = ?", []any{b.id}, &refs)
				if err != nil {
					return err
				}
				if !ok || refs > 0 {
					room--
					left = left[:len(left)-1]
					continue
				}
				n := min(b.pieces, room)
				b.pieces -= n
				room -= max(n, 1)
				first := b.id*maxPieces + int64(b.pieces)
				if _, err := c.exec("DELETE FROM pieces WHERE id >= ? AND id < ?", first, first+int64(n)); err != nil {
					return err
				}
				if b.pieces > 0 {
					continue
				}
				if _, err := c.exec("DELETE FROM blobs WHERE id = ? AND refs <= 0", b.id); err != nil {
					return err
				}
				left = left[:len(left)-1]
			}
			return nil
		})
		if err != nil {
			return err
		}
		blobs = left
	}
	return nil
}

// giveBack gives some of the pages that are free back to the system. more says that there
// are others.
func (s *Store) giveBack() (more bool, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.ready(false); err != nil {
		return false, s.explain(err)
	}
	var before, after int
	if err := s.freePages(&before); err != nil || before == 0 {
		return false, s.explain(err)
	}
	pages := freedPages
	if before > manyFree {
		pages = max(8, freedPages*manyFree/before)
	}
	s.hook("vacuum")
	_, err = s.writer.c.ExecContext(context.Background(), fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pages))
	s.hook("vacuum")
	if busy(err) {
		return false, nil // they are used again in any case
	}
	if err == nil {
		err = s.freePages(&after)
	}
	return err == nil && after > 0 && after < before, s.explain(err)
}

func (s *Store) freePages(n *int) error {
	return s.writer.c.QueryRowContext(context.Background(), "PRAGMA freelist_count").Scan(n)
}

// checkpoint brings the log into the file, as far as other processes let it.
func (s *Store) checkpoint() {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.writer != nil {
		_, _ = s.writer.c.ExecContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)")
	}
}
