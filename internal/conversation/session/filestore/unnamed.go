package filestore

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"loki/internal/conversation/session"
)

// RemoveUnnamed deletes sessions that are kept without an alias, see [session.Session.KeepUnnamed]:
// those last used before a time, and the oldest of more than keep.
func (st *Store) RemoveUnnamed(ctx context.Context, scope session.Scope, keep int, before time.Time) error {
	r, err := st.room(scope)
	if err != nil {
		return err
	}
	list, err := r.list(ctx)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(m session.Meta) bool { return m.Alias != "" }) // the latest first
	var failed error
	for i, m := range list {
		if i < keep && m.Modified.After(before) {
			continue
		}
		src, err := os.ReadFile(r.path(m.ID, stateFile))
		if err != nil {
			continue // it is gone
		}
		if state, err := session.DecodeState(stateFile, src); err != nil || !state.Unnamed {
			continue
		}
		if err := st.Delete(ctx, scope, m.ID); !errors.Is(err, session.ErrNotFound) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
