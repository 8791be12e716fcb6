package filestore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/conversation/session"
	"loki/internal/conversation/session/legacy"
)

// autoSaved is the directory of sessions that older versions saved by themselves.
const autoSaved = "_"

// legacyFile is a session of an older version that has not been converted.
type legacyFile struct {
	path     string
	alias    session.Alias
	id       session.ID
	modified time.Time
}

// legacyID returns the id of a session by the path of its file, below the directory of
// the scope and with slashes.
func legacyID(scope session.Scope, rel string) session.ID {
	sum := sha256.Sum256([]byte("loki session " + string(scope) + "\x00" + rel))
	return session.FormatID([16]byte(sum[:16]), 8) // version 8 is free for ways of one's own
}

// legacyNames returns the files of older versions, as slash paths below the directory.
// If a name is in both places, the one that was given by a user comes first.
func (r *room) legacyNames() ([]string, error) {
	var names []string
	for _, sub := range []string{"", autoSaved} {
		entries, err := os.ReadDir(filepath.Join(r.dir, sub))
		if err != nil && !missing(err) {
			return nil, err
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".yaml") && !e.IsDir() {
				names = append(names, strings.TrimPrefix(sub+"/"+e.Name(), "/"))
			}
		}
	}
	return names, nil
}

// legacyFile returns the path of the file that the session called id comes from, or
// would come from; "" if there is none.
func (r *room) legacyFile(id session.ID) (string, error) {
	names, err := r.legacyNames()
	for _, name := range names {
		if legacyID(r.scope, name) == id {
			return filepath.Join(r.dir, filepath.FromSlash(name)), nil
		}
	}
	return "", err
}

// legacyFiles returns the sessions that have not been converted and whose names are
// not taken.
func (r *room) legacyFiles(ctx context.Context) ([]legacyFile, error) {
	names, err := r.legacyNames()
	if err != nil {
		return nil, err
	}
	var files, renamed []legacyFile
	seen := make(map[session.Alias]bool)
	free := func(alias session.Alias) bool {
		id, err := r.aliasID(ctx, alias)
		return err == nil && id == "" && !seen[alias]
	}
	for _, name := range names {
		alias := session.LegalAlias(oldName(name))
		old, err := r.legacyAt(name, alias)
		if err != nil {
			return nil, err
		}
		switch {
		case old == nil, oldName(name) == session.TempName: // that was never meant to stay
		case string(alias) != oldName(name):
			renamed = append(renamed, *old)
		case free(alias):
			seen[alias] = true
			files = append(files, *old)
		}
	}
	// Sessions whose names are no longer allowed get names that the others leave.
	for _, old := range renamed {
		legal := old.alias
		for n := 2; !free(old.alias); n++ {
			old.alias = session.Alias(fmt.Sprintf("%s-%d", legal, n))
		}
		seen[old.alias] = true
		files = append(files, old)
	}
	return files, nil
}

// oldName returns what the session in a file of an older version was called.
func oldName(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }

// legacyAt returns the session in one file, nil if it is not there or was converted.
func (r *room) legacyAt(name string, alias session.Alias) (*legacyFile, error) {
	old := legacyFile{path: filepath.Join(r.dir, filepath.FromSlash(name)), alias: alias, id: legacyID(r.scope, name)}
	if r.stored(old.id) {
		return nil, nil
	}
	info, err := os.Stat(old.path)
	if missing(err) || err == nil && info.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	old.modified = info.ModTime()
	return &old, nil
}

// legacyNamesOf returns where the session called alias would be, as slash paths.
func legacyNamesOf(alias session.Alias) []string {
	return []string{string(alias) + ".yaml", autoSaved + "/" + string(alias) + ".yaml"}
}

// converted reports whether a session that was once called alias has been converted.
func (r *room) converted(alias session.Alias) bool {
	return slices.ContainsFunc(legacyNamesOf(alias), func(name string) bool { return r.stored(legacyID(r.scope, name)) })
}

func (r *room) legacyByAlias(ctx context.Context, alias session.Alias) (*legacyFile, error) {
	for _, name := range legacyNamesOf(alias) {
		if old, err := r.legacyAt(name, alias); old != nil || err != nil {
			return old, err
		}
	}
	files, err := r.legacyFiles(ctx)
	for _, old := range files {
		if old.alias == alias {
			return &old, nil
		}
	}
	return nil, err
}

func (r *room) legacyByID(ctx context.Context, id session.ID) (*legacyFile, error) {
	files, err := r.legacyFiles(ctx)
	for _, old := range files {
		if old.id == id {
			return &old, nil
		}
	}
	return nil, err
}

// ensure sees to it that the session called id is stored, if there is one.
func (r *room) ensure(ctx context.Context, id session.ID) error {
	if r.stored(id) {
		return nil
	}
	old, err := r.legacyByID(ctx, id)
	switch {
	case err != nil:
		return err
	case old != nil:
		return r.migrate(ctx, *old)
	case r.stored(id): // another one has converted it meanwhile
		return nil
	}
	return session.NotFound(id)
}

// migrate converts a session. Its file stays as it is.
func (r *room) migrate(ctx context.Context, old legacyFile) error {
	lock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if r.stored(old.id) {
		return nil // another process was faster
	}
	st, data, err := r.convert(old)
	if err != nil {
		return err
	}
	if err := r.place(old.id, st, data); err != nil {
		return fmt.Errorf("converting %s: %w", old.path, err)
	}
	if name := oldName(old.path); name != string(old.alias) {
		r.options.Warn(ctx, fmt.Errorf("the session %q of an older version is called %q now", name, old.alias))
	}
	return nil
}

// readLegacy returns what the session called id would be once it is converted.
func (r *room) readLegacy(ctx context.Context, id session.ID) (st session.State, log []byte, err error) {
	old, err := r.legacyByID(ctx, id)
	if err == nil && old == nil {
		err = session.NotFound(id)
	}
	if err != nil {
		return st, nil, err
	}
	return r.convert(*old)
}

// convert reads the file of a session of an older version.
func (r *room) convert(old legacyFile) (st session.State, log []byte, err error) {
	src, err := os.ReadFile(old.path)
	if err != nil {
		return st, nil, err
	}
	f, err := legacy.Parse(old.path, src)
	if err != nil {
		return st, nil, err
	}
	if r.scope != "" { // older versions noted the tools of the agent here, by files
		f.Settings.EnabledTools, f.Settings.EnabledMCPServers = nil, nil
	}
	at := old.modified.UTC().Truncate(time.Second)
	if log, err = f.Transcript.Log(at); err != nil {
		return st, nil, err
	}
	st = session.State{Settings: f.Settings, Alias: old.alias, DataURLs: f.DataURLs, Created: at}
	if title, ok := old.alias.Title(); ok {
		st.Title = title
	}
	return st, log, nil
}

// Export returns all that is stored of the session of a list, which stays as it is: one of an older version is not converted.
func (st *Store) Export(ctx context.Context, scope session.Scope, m session.Meta) (c session.Copy, err error) {
	r, err := st.room(scope)
	if err != nil {
		return c, err
	}
	c = session.Copy{ID: m.ID, Modified: m.Modified}
	l := &log{room: r, id: m.ID}
	if c.State, c.Log, err = l.Load(ctx); err != nil {
		return c, err
	}
	c.State.Alias = m.Alias
	for _, path := range l.drafts() {
		data, err := os.ReadFile(path)
		if err != nil && !missing(err) {
			return c, err
		}
		c.Drafts = append(c.Drafts, data)
	}
	return c, nil
}

// OldAlias returns the alias of the session that an older version called name, which is
// no longer allowed; "" if there is none.
func (st *Store) OldAlias(ctx context.Context, scope session.Scope, name string) (session.Alias, error) {
	r, err := st.room(scope)
	if err != nil {
		return "", err
	}
	files, err := r.legacyFiles(ctx)
	if err != nil {
		return "", err
	}
	for _, old := range files {
		if oldName(old.path) == name {
			return old.alias, nil
		}
	}
	if filepath.Base(name) != name {
		return "", nil
	}
	aliases, err := r.aliases()
	if err != nil {
		return "", err
	}
	for _, file := range []string{name + ".yaml", autoSaved + "/" + name + ".yaml"} {
		if alias := aliases[legacyID(r.scope, file)]; alias != "" {
			return alias, nil
		}
	}
	return "", nil
}
