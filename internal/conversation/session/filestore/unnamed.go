package filestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"loki/internal/conversation/session"
)

// Record stores a session with one turn, which has no alias, and returns its id. It does not wait for the disk. From time
// to time it removes old ones, as [Store.RemoveUnnamed] does.
func (st *Store) Record(ctx context.Context, scope session.Scope, initial session.Settings, t session.Turn, limits session.Limits) (session.ID, error) {
	r, err := st.room(scope)
	if err != nil {
		return "", err
	}
	state, log, err := session.EncodeNew(st.options.Options, initial, t)
	if err != nil {
		return "", err
	}
	id := session.NewID()
	if err := r.record(context.WithoutCancel(ctx), id, state, log); err != nil {
		return "", err
	}
	if r.due(id) {
		if err := st.RemoveUnnamed(ctx, scope, limits); err != nil {
			st.options.Warn(ctx, fmt.Errorf("old sessions without a name cannot be removed: %w", err))
		}
	}
	return id, nil
}

// record makes a session that is whole, without waiting for the disk.
func (r *room) record(ctx context.Context, id session.ID, st session.State, log []byte) error {
	o := *r.options
	o.NoSync = true
	unsynced := &room{scope: r.scope, dir: r.dir, options: &o}
	lock, err := unsynced.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	return unsynced.place(id, st, log)
}

// removalFile is the file in the directory of a scope whose time is that of the last removal.
const removalFile = "pruned"

// due reports whether unnamed sessions are to be removed after a new one: a day after the last time, and
// after about each 64th, whose id says so, however many there are in a day.
func (r *room) due(id session.ID) bool {
	info, err := os.Stat(filepath.Join(r.dir, removalFile))
	return err != nil || r.options.Now().Sub(info.ModTime()) > 24*time.Hour || id < "04"
}

// RemoveUnnamed deletes sessions that are kept without an alias, see [session.Session.KeepUnnamed]:
// those beyond a limit. One in which a question is being answered stays.
func (st *Store) RemoveUnnamed(ctx context.Context, scope session.Scope, limits session.Limits) error {
	r, err := st.room(scope)
	if err != nil {
		return err
	}
	list, err := r.list(ctx)
	if err != nil {
		return err
	}
	failed := os.WriteFile(filepath.Join(r.dir, removalFile), []byte("\n"), 0o600)
	for _, m := range limits.Beyond(list) {
		src, err := os.ReadFile(r.path(m.ID, stateFile))
		if err != nil {
			continue // it is gone
		}
		if state, err := session.DecodeState(stateFile, src); err != nil || !state.Unnamed {
			continue
		}
		if busy, err := st.Busy(ctx, scope, m.ID); busy || err != nil {
			continue
		}
		if err := st.Delete(ctx, scope, m.ID); !errors.Is(err, session.ErrNotFound) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
