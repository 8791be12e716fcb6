package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/conversation/session"
)

// Kind is a kind of what users may delete.
type Kind string

// The kinds.
const (
	RoleKind    Kind = "role"
	SessionKind Kind = "session"
	BaseKind    Kind = "rag"
	MacroKind   Kind = "macro"
	AgentKind   Kind = "agent-data"
)

// Kinds returns the names of all kinds.
func Kinds() []string {
	return []string{string(RoleKind), string(SessionKind), string(BaseKind), string(MacroKind), string(AgentKind)}
}

// StoredNames returns the names of what is stored of a kind: of sessions those of a scope, of roles those
// that are files.
func (a *App) StoredNames(ctx context.Context, of Kind, scope session.Scope) ([]string, error) {
	switch of {
	case RoleKind:
		return files(a.Paths.RolesDir, ".md")
	case SessionKind:
		store, err := a.Sessions()
		if err != nil {
			return nil, err
		}
		list, err := store.List(ctx, scope)
		var names []string
		for _, m := range list {
			names = append(names, cmp.Or(string(m.Alias), string(m.ID)))
		}
		return names, err
	case BaseKind:
		return a.Knowledge().Names(ctx)
	case MacroKind:
		return files(a.Paths.MacrosDir, ".yaml")
	}
	return files(a.Paths.AgentsDir, "")
}

// files returns the names of the files in a directory that have an extension, without it; without an
// extension, those of the directories in it. The directory need not exist. Names that begin with a dot do not count.
func files(dir, extension string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), extension)
		if ok && name != "" && !strings.HasPrefix(name, ".") && e.IsDir() == (extension == "") {
			names = append(names, name)
		}
	}
	return names, err
}

// Delete deletes what is stored of a kind under a name, see [App.StoredNames].
func (a *App) Delete(ctx context.Context, of Kind, scope session.Scope, name string) error {
	err := a.delete(ctx, of, scope, name)
	if _, known := errors.AsType[*fault.Error](err); err == nil || known {
		return err
	}
	return fault.Wrap(fault.Failure, err, "deleting %s %s", of, name)
}

func (a *App) delete(ctx context.Context, of Kind, scope session.Scope, name string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%q is not a name", name)
	}
	switch of {
	case RoleKind:
		return os.Remove(filepath.Join(a.Paths.RolesDir, name+".md"))
	case SessionKind:
		return a.DeleteSession(ctx, scope, name)
	case BaseKind:
		return a.Knowledge().Delete(ctx, name)
	case MacroKind:
		return os.Remove(filepath.Join(a.Paths.MacrosDir, name+".yaml"))
	}
	if filepath.Base(name) != name || name == "." { // the directory of an agent is an entry of that of all
		return fmt.Errorf("%q is not the name of an agent", name)
	}
	return os.RemoveAll(a.AgentDir(name))
}

// AgentDir returns the directory of the installed agent called name, all of which [App.Delete] deletes.
func (a *App) AgentDir(name string) string { return filepath.Join(a.Paths.AgentsDir, name) }

// AgentContents returns what is in the directory of the installed agent called name, each directory in
// it with the number of its files, such as "sessions (3 files)".
func (a *App) AgentContents(name string) (list []string, err error) {
	dir := a.AgentDir(name)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		what := e.Name()
		if e.IsDir() {
			n := 0
			_ = filepath.WalkDir(filepath.Join(dir, what), func(_ string, e fs.DirEntry, err error) error { // what cannot be read is not counted
				if err == nil && !e.IsDir() {
					n++
				}
				return nil
			})
			what += " (" + text.Count(n, "file") + ")"
		}
		list = append(list, what)
	}
	return list, err
}

// DeleteSession deletes a stored session, see [conversation.Service.DeleteSession], and what the search
// index has of it.
func (a *App) DeleteSession(ctx context.Context, scope session.Scope, name string) error {
	id, err := a.Conversations().DeleteSession(ctx, scope, name)
	if err != nil {
		return err
	}
	return a.Search().Forget(ctx, scope, id)
}
