package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/file/atomicfile"
	"loki/internal/conversation/session"
)

// The names of files and directories.
const (
	byID         = "by-id"
	byName       = "by-name"
	stateFile    = "state.yaml"
	messagesFile = "messages.jsonl"
	tornFile     = "messages.torn"
	planFile     = "plan.md" // a copy of the plan in the state, for people
	ownerFile    = "owner.json"
	lockFile     = "lock"
	unfinished   = ".new-" // what a directory is called while it is filled
)

// room is the directory of one scope.
type room struct {
	scope   session.Scope
	dir     string
	options *Options
}

func (r *room) path(id session.ID, file string) string {
	return filepath.Join(r.dir, byID, string(id), file)
}

func (r *room) namePath(alias session.Alias) string {
	return filepath.Join(r.dir, byName, string(alias))
}

// stored reports whether there is a session called id.
func (r *room) stored(id session.ID) bool { return exists(r.path(id, stateFile)) }

// lock waits for the right to change names. Closing the file gives it back.
func (r *room) lock(ctx context.Context) (*os.File, error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.options.LockTimeout)
	defer cancel()
	return atomicfile.OpenLocked(ctx, filepath.Join(r.dir, lockFile))
}

// resolve returns the id of the session called alias.
func (r *room) resolve(ctx context.Context, alias session.Alias) (session.ID, error) {
	if _, err := session.ParseAlias(string(alias)); err != nil {
		return "", err
	}
	id, err := r.aliasID(ctx, alias)
	if err != nil || id != "" {
		return id, err
	}
	old, err := r.legacyByAlias(ctx, alias)
	if err != nil {
		return "", err
	}
	if old != nil {
		return old.id, nil
	}
	if r.converted(alias) { // perhaps just now, between the two looks
		if id, err = r.aliasID(ctx, alias); err != nil || id != "" {
			return id, err
		}
	}
	return "", session.NotFound(alias)
}

// aliasID returns the id that a file in by-name has, "" if there is none or nothing
// sensible in it.
func (r *room) aliasID(ctx context.Context, alias session.Alias) (session.ID, error) {
	text, err := os.ReadFile(r.namePath(alias))
	if missing(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking for the session %q: %w", alias, err)
	}
	id, err := session.ParseID(strings.TrimSpace(string(text)))
	if err != nil {
		r.options.Warn(ctx, fmt.Errorf("%s is ignored: %w", r.namePath(alias), err))
		return "", nil
	}
	if r.stored(id) {
		return id, nil
	}
	// Else it was being made when the process died, or was deleted.
	if info, err := os.Stat(r.path(id, messagesFile)); err == nil && info.Size() > 0 {
		r.options.Warn(ctx, fmt.Errorf("session %s: %s is gone, so its name begins a new session; its messages are still in %s", alias, r.path(id, stateFile), r.path(id, messagesFile)))
	}
	return "", nil
}

// setName makes alias the name of id. The caller has the lock.
func (r *room) setName(alias session.Alias, id session.ID) error {
	dir := filepath.Join(r.dir, byName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return r.replace(filepath.Join(dir, string(alias)), []byte(string(id)+"\n"))
}

// dropNames removes all aliases of id but keep. The caller has the lock.
func (r *room) dropNames(id session.ID, keep session.Alias) error {
	names, err := os.ReadDir(filepath.Join(r.dir, byName))
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var failed error
	for _, e := range names {
		file := filepath.Join(r.dir, byName, e.Name())
		if e.Name() == string(keep) || !e.Type().IsRegular() {
			continue
		}
		if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == string(id) {
			failed = errors.Join(failed, os.Remove(file))
		}
	}
	return failed
}

// place makes a session with its log. It appears whole or not at all. The caller has
// the lock, and has seen that neither id nor alias are taken.
func (r *room) place(id session.ID, st session.State, log []byte) (err error) {
	parent := filepath.Join(r.dir, byID)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	// A process that died in here has left files behind; no other process is in
	// here now.
	for _, dir := range atomicfile.Glob(parent, unfinished+"*") {
		_ = os.RemoveAll(dir)
	}
	dir := filepath.Join(parent, unfinished+string(id))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	if err := r.write(filepath.Join(dir, messagesFile), log); err != nil {
		return err
	}
	if err := r.write(filepath.Join(dir, stateFile), st.Encode()); err != nil {
		return err
	}
	if st.Settings.Plan != "" {
		if err := r.write(filepath.Join(dir, planFile), []byte(st.Settings.Plan)); err != nil {
			return err
		}
	}
	if st.Owner != nil {
		if err := r.write(filepath.Join(dir, ownerFile), encodeOwner(*st.Owner)); err != nil {
			return err
		}
	}
	// The name goes first: one without a session is none, but a session that has lost
	// its name would be hard to find.
	if st.Alias != "" {
		if err := r.setName(st.Alias, id); err != nil {
			return err
		}
	}
	if err := atomicfile.Rename(dir, filepath.Join(parent, string(id))); err != nil {
		return err
	}
	if !r.options.NoSync {
		atomicfile.SyncDir(parent)
	}
	return nil
}

// move makes a session that is stored here one of another room.
func (r *room) move(ctx context.Context, id session.ID, to *room) error {
	first, second := r, to
	if first.dir > second.dir { // always in the same order, so that two that move do not wait for each other
		first, second = second, first
	}
	for _, one := range []*room{first, second} {
		lock, err := one.lock(ctx)
		if err != nil {
			return err
		}
		defer lock.Close()
	}
	st, err := (&log{room: r, id: id}).state()
	if err != nil {
		return err
	}
	parent := filepath.Join(to.dir, byID)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	if st.Alias != "" {
		switch _, err := to.resolve(ctx, st.Alias); {
		case err == nil:
			return session.AliasInUse(st.Alias)
		case !errors.Is(err, session.ErrNotFound):
			return err
		}
		if err := to.setName(st.Alias, id); err != nil {
			return err
		}
	}
	if err := atomicfile.Rename(filepath.Join(r.dir, byID, string(id)), filepath.Join(parent, string(id))); err != nil {
		return err // a name without a session is none
	}
	if !r.options.NoSync {
		atomicfile.SyncDir(parent)
	}
	return r.dropNames(id, "")
}

// delete removes a session, wherever it comes from. The file of an older version that it comes from goes too: otherwise it
// would be there again.
func (r *room) delete(ctx context.Context, id session.ID) error {
	if !exists(r.dir) {
		return session.NotFound(id)
	}
	lock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	old, err := r.legacyFile(id)
	if err != nil {
		return err
	}
	if old == "" && !r.stored(id) {
		return session.NotFound(id)
	}
	// The old file goes first: a session that is half deleted can be deleted again, one
	// that comes back would be a surprise.
	if old != "" {
		if err := os.Remove(old); err != nil && !missing(err) {
			return err
		}
	}
	if !r.stored(id) {
		return nil
	}
	if err := r.dropNames(id, ""); err != nil {
		return err
	}
	_, err = r.deleteDir(ctx, id, func() bool { return true })
	return err
}

// deleteDir removes the directory of a session if wanted says so, which is called while no
// other process writes to it. It takes two steps because a file that is open, as the lock
// is, cannot be removed everywhere.
func (r *room) deleteDir(ctx context.Context, id session.ID, wanted func() bool) (deleted bool, err error) {
	dir := filepath.Join(r.dir, byID, string(id))
	err = (&log{room: r, id: id}).withLock(ctx, func() error {
		if deleted = wanted(); !deleted {
			return nil
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		failed := os.Remove(filepath.Join(dir, stateFile)) // from here on it is not there
		for _, e := range entries {
			if e.Name() != lockFile && e.Name() != stateFile {
				failed = errors.Join(failed, os.RemoveAll(filepath.Join(dir, e.Name())))
			}
		}
		return failed
	})
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return false, err
	}
	if !deleted {
		return false, nil
	}
	return true, os.RemoveAll(dir)
}

// write makes a file with content.
func (r *room) write(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = r.sync(f)
	}
	return errors.Join(err, f.Close())
}

// replace makes content what is in the file at path, at once.
func (r *room) replace(path string, content []byte) error {
	return atomicfile.Write(path, content, atomicfile.Options{Mode: atomicfile.Private, NoSync: r.options.NoSync})
}

func (r *room) sync(f *os.File) error {
	if r.options.NoSync {
		return nil
	}
	return f.Sync()
}

// list returns what is in the directory.
func (r *room) list(ctx context.Context) ([]session.Meta, error) {
	aliases, err := r.aliases()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(r.dir, byID))
	if err != nil && !missing(err) {
		return nil, err
	}
	var list []session.Meta
	for _, e := range entries {
		id, err := session.ParseID(e.Name())
		if err != nil || string(id) != e.Name() {
			continue
		}
		state, err := os.Stat(r.path(id, stateFile))
		if err != nil {
			continue // not whole
		}
		m := session.Meta{ID: id, Alias: aliases[id], Modified: state.ModTime()}
		if log, err := os.Stat(r.path(id, messagesFile)); err == nil {
			m.Size = log.Size()
			if log.ModTime().After(m.Modified) {
				m.Modified = log.ModTime()
			}
		}
		if m.Owner, err = r.owner(id); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	old, err := r.legacyFiles(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range old {
		list = append(list, session.Meta{ID: o.id, Alias: o.alias, Modified: o.modified})
	}
	session.SortMetas(list)
	return list, nil
}

// aliases returns the names of the sessions, for each the first.
func (r *room) aliases() (map[session.ID]session.Alias, error) {
	entries, err := os.ReadDir(filepath.Join(r.dir, byName))
	if err != nil && !missing(err) {
		return nil, err
	}
	aliases := make(map[session.ID]session.Alias, len(entries))
	for _, e := range entries {
		alias, err := session.ParseAlias(e.Name())
		if err != nil || e.Type()&fs.ModeDir != 0 {
			continue
		}
		text, err := os.ReadFile(r.namePath(alias))
		if err != nil {
			continue
		}
		if id, err := session.ParseID(strings.TrimSpace(string(text))); err == nil && aliases[id] == "" {
			aliases[id] = alias
		}
	}
	return aliases, nil
}
