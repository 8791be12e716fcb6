package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// A gap of a run whose record cannot be written is noted in a file of its own beside
// the database: markName and the id of the run. It holds a [run.Gap] in JSON. On a full
// disk it may be empty: then all that is known is that there is a gap. The next process
// that can write the database takes the note over into it and removes the file.
const markName = ".gap-"

func (s *Store) markPath(name string) string { return s.path + markName + name }

// writeMark writes the note about a gap beside the database. A note that does not fit
// on the disk is left empty.
func (s *Store) writeMark(name string, g run.Gap) error {
	data, err := s.seal().Gap(g)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.markPath(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		_ = f.Truncate(0)
	}
	_ = f.Close() // that the file is there is what counts
	return nil
}

// readMark returns the note beside the database about a run, nil for none. Of one that
// cannot be read only that it is there is known.
func (s *Store) readMark(name string) *run.Gap {
	data, err := os.ReadFile(s.markPath(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return s.gap(append([]byte{}, data...)) // also of an empty file
}

// gap returns the gap that a note describes, nil for no note.
func (s *Store) gap(data []byte) *run.Gap { return record.Reader{Show: s.o.Unseal}.Gap(data) }

// addStep adds the last super-step on record to a note that does not have it, as it was written on a full disk.
func addStep(c *conn, id int64, g *run.Gap) error {
	var last int
	_, err := c.row("SELECT coalesce(max(step), 0) FROM checkpoints WHERE run = ?", []any{id}, &last)
	g.Step = max(g.Step, last)
	return err
}

// marks returns the ids of the runs with a note beside the database.
func (s *Store) marks() []string {
	entries, err := os.ReadDir(filepath.Dir(s.path))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), filepath.Base(s.path)+markName); ok {
			names = append(names, name)
		}
	}
	return names
}

// adoptMarks takes the notes beside the database over into it, as far as that can be
// written now. The caller holds s.writing.
func (s *Store) adoptMarks() {
	names := s.marks()
	if len(names) == 0 {
		return
	}
	// What locks the file now is not waited for.
	if _, err := s.writer.exec("PRAGMA busy_timeout = 0"); err != nil {
		return
	}
	defer func() {
		_, _ = s.writer.c.ExecContext(context.Background(), fmt.Sprintf("PRAGMA busy_timeout = %d", busyFor.Milliseconds()))
	}()
	for _, name := range names {
		g := s.readMark(name)
		if g == nil {
			continue
		}
		err := s.writer.transaction("BEGIN IMMEDIATE", func() error {
			var id int64
			ok, err := s.writer.row("SELECT id FROM runs WHERE name = ?", []any{name}, &id)
			if err != nil || !ok {
				return err // the note of a run that was deleted goes with it
			}
			if err := addStep(s.writer, id, g); err != nil {
				return err
			}
			return s.writeGap(s.writer, &blobKeeper{run: id, known: make(map[record.Hash]int64)}, *g)
		})
		if err == nil {
			_ = os.Remove(s.markPath(name))
		}
	}
}

// writeGap writes a note about a gap, and how the run ended if that is known.
func (s *Store) writeGap(c *conn, blobs *blobKeeper, g run.Gap) error {
	data, err := s.seal().Gap(g)
	if err != nil {
		return err
	}
	if _, err := c.exec("UPDATE runs SET gap = ? WHERE id = ?", data, blobs.run); err != nil || g.Status == "" {
		return err
	}
	doc, err := s.seal().Ending(run.Ending{Error: g.Error})
	if err != nil {
		return err
	}
	if err := blobs.put(c, doc); err != nil {
		return err
	}
	_, err = c.exec("UPDATE runs SET status = ?, ending = ? WHERE id = ?", string(g.Status), doc.Data, blobs.run)
	return err
}

// gapOf returns the gap of a run, nil for none.
func (s *Store) gapOf(c *conn, id int64, name string) (*run.Gap, error) {
	if g := s.readMark(name); g != nil {
		return g, addStep(c, id, g)
	}
	var data []byte
	ok, err := c.row("SELECT gap FROM runs WHERE id = ?", []any{id}, &data)
	if err != nil || !ok {
		return nil, err
	}
	return s.gap(data), nil
}

// Gap notes that a part of the run is not on record: in the database if the run is over
// or the note cannot be kept beside it.
func (j *journal) Gap(ctx context.Context, g run.Gap) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return run.ErrClosed
	}
	// The note must not be about the run of another process. A file that cannot be read
	// does not say whose it is.
	if err := j.store.view(ctx, j.check); errors.Is(err, run.ErrLeaseLost) {
		j.noteLoss(err)
		return err
	}
	markErr := j.store.writeMark(j.name, g)
	if markErr == nil && g.Status == "" {
		return nil
	}
	err := j.writeLocked("gap", func(c *conn) error { return j.store.writeGap(c, &j.blobs, g) }, nil)
	switch {
	case err == nil:
		_ = os.Remove(j.store.markPath(j.name))
		return nil
	case errors.Is(err, run.ErrLeaseLost):
		_ = os.Remove(j.store.markPath(j.name))
		return err
	case markErr == nil:
		return nil
	}
	return fault.Wrap(fault.Config, markErr, "writing %s", j.store.markPath(j.name))
}

// AcceptGap makes a run with a gap one that can be opened.
func (s *Store) AcceptGap(_ context.Context, id string) error {
	var name string
	err := s.writeRun("accept_gap", id, func(c *conn, row int64, found string) error {
		name = found
		if err := s.free(c, row, name); err != nil {
			return err
		}
		_, err := c.exec("UPDATE runs SET gap = NULL WHERE id = ?", row)
		return err
	})
	if err != nil {
		return err
	}
	if err := os.Remove(s.markPath(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Wrap(fault.Config, err, "removing the note that run %s has a gap", name)
	}
	return nil
}
