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

	"loki/internal/session"
	"loki/internal/session/legacy"
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
func (r *room) legacyFiles() ([]legacyFile, error) {
	names, err := r.legacyNames()
	if err != nil {
		return nil, err
	}
	var files []legacyFile
	seen := make(map[session.Alias]bool)
	for _, name := range names {
		alias, err := session.ParseAlias(strings.TrimSuffix(filepath.Base(name), ".yaml"))
		if err != nil || seen[alias] {
			continue
		}
		old, err := r.legacyAt(name, alias)
		if err != nil {
			return nil, err
		}
		if old == nil {
			continue
		}
		if id, err := r.named(alias); err != nil || id != "" {
			continue
		}
		seen[alias] = true
		files = append(files, *old)
	}
	return files, nil
}

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

func (r *room) legacyByAlias(alias session.Alias) (*legacyFile, error) {
	for _, name := range legacyNamesOf(alias) {
		if old, err := r.legacyAt(name, alias); old != nil || err != nil {
			return old, err
		}
	}
	return nil, nil
}

func (r *room) legacyByID(id session.ID) (*legacyFile, error) {
	files, err := r.legacyFiles()
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
	old, err := r.legacyByID(id)
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
		return nil // somebody was faster
	}
	src, err := os.ReadFile(old.path)
	if err != nil {
		return err
	}
	f, err := legacy.Parse(old.path, src)
	if err != nil {
		return err
	}
	at := old.modified.UTC().Truncate(time.Second)
	data, err := f.Transcript.Log(at)
	if err != nil {
		return err
	}
	st := session.State{Settings: f.Settings, Alias: old.alias, DataURLs: f.DataURLs, Created: at}
	if title, ok := old.alias.Title(); ok {
		st.Title = title
	}
	if err := r.place(old.id, st, data); err != nil {
		return fmt.Errorf("converting %s: %w", old.path, err)
	}
	return nil
}
