package filestore

import (
	"context"
	"errors"
	"io"
	"os"

	"loki/internal/base/file/atomicfile"
	"loki/internal/conversation/session"
)

// draftPattern is what drafts are called, in the directory of their session.
const draftPattern = "draft-*.jsonl"

// draft is a [session.DraftFile]. Its file is locked as long as it is held.
type draft struct{ file *os.File }

// NewDraft implements [session.Log].
func (l *log) NewDraft(ctx context.Context) (session.DraftFile, error) {
	if l.err != nil {
		return nil, l.err
	}
	var d *draft
	err := l.withLock(ctx, func() error { // so that it is never seen without its lock
		f, err := os.CreateTemp(l.path(""), draftPattern)
		if err != nil {
			return err
		}
		if _, err := atomicfile.TryLock(f); err != nil { // it is free: the file is new
			return errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
		d = &draft{f}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// AbandonedDrafts implements [session.Log].
func (l *log) AbandonedDrafts(ctx context.Context) (list []session.DraftFile, err error) {
	drafts := l.drafts()
	if len(drafts) == 0 {
		return nil, nil
	}
	err = l.withLock(ctx, func() error {
		for _, path := range drafts {
			f, err := os.OpenFile(path, os.O_RDWR, 0o600)
			if missing(err) {
				continue
			}
			if err != nil {
				return err
			}
			free, err := atomicfile.TryLock(f)
			if err == nil && free && exists(path) { // else it has just become a turn
				list = append(list, &draft{f})
				continue
			}
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

func (l *log) drafts() []string {
	return atomicfile.Glob(l.path(""), draftPattern)
}

// Busy reports whether a question is being answered in a stored session, by this process or
// another one.
func (st *Store) Busy(_ context.Context, scope session.Scope, id session.ID) (bool, error) {
	r, err := st.room(scope)
	if err != nil {
		return false, err
	}
	for _, path := range (&log{room: r, id: id}).drafts() {
		f, err := os.OpenFile(path, os.O_RDWR, 0o600)
		if missing(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		free, err := atomicfile.TryLock(f)
		if err := errors.Join(err, f.Close()); !free || err != nil {
			return !free, err
		}
	}
	return false, nil
}

// Withdraw implements [session.Log].
func (l *log) Withdraw(ctx context.Context, size int64) (withdrawn bool, err error) {
	r := l.room
	lock, err := r.lock(ctx)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	unused := func() bool {
		info, err := os.Stat(l.path(messagesFile))
		return err == nil && info.Size() == size && len(l.drafts()) == 0
	}
	withdrawn, err = r.deleteDir(ctx, l.id, unused)
	if withdrawn {
		err = errors.Join(err, r.dropNames(l.id, ""))
	}
	return withdrawn, err
}

// Data implements [session.DraftFile].
func (d *draft) Data() ([]byte, error) {
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(d.file)
}

// Append implements [session.DraftFile]. It does not wait for the disk: a draft survives
// the process, not a power cut.
func (d *draft) Append(data []byte) error {
	_, err := d.file.Write(data)
	return err
}

// Remove implements [session.DraftFile].
func (d *draft) Remove() error {
	err := os.Remove(d.file.Name())
	closeErr := d.file.Close()
	if err != nil { // where a file that is open cannot be removed
		err = os.Remove(d.file.Name())
	}
	return errors.Join(err, closeErr)
}

// Close implements [session.DraftFile].
func (d *draft) Close() error { return d.file.Close() }
