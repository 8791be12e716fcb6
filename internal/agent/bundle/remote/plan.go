package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value"
)

// State says what happens, or has happened, to a file or server.
type State string

// The states.
const (
	New       State = "new"       // it is not there
	Identical State = "identical" // what is there is the same
	Updated   State = "updated"   // what is there is the bundle's of before, unchanged
	Conflict  State = "conflict"  // what is there is the user's, and another
	Replaced  State = "replaced"  // so it was, and the user wanted the bundle's
	Kept      State = "kept"      // or wanted to keep it, or only the user has changed it since the last update
	Renamed   State = "renamed"   // or wanted both: the server of the bundle has another name
	Removed   State = "removed"   // the bundle has it no longer, and it is unchanged
	Left      State = "left"      // the bundle has it no longer, and the user has changed it
)

// Item is a file or MCP server of a bundle and what happens to it.
type Item struct {
	Category Category `json:"category"`
	Path     string   `json:"path"`         // in the bundle, or the name of the server there
	As       string   `json:"as,omitempty"` // the name of the server here, if it is another one
	State    State    `json:"state"`
}

// item is an Item with what is known about it.
type item struct {
	Item
	base    *Entry      // what the record says; nil for nothing
	ours    string      // digest of what is there; empty if nothing is
	theirs  string      // digest of what the bundle has; empty if it has it no longer
	content []byte      // of a file of the bundle
	spec    value.Value // of a server of the bundle
}

// judge returns what happens to what a bundle has as theirs and the user as ours. In an update the
// user's own changes stay where the bundle has none.
func judge(base *Entry, ours, theirs string, update bool) State {
	switch {
	case theirs == "" && ours != "" && base.installed(ours):
		return Removed
	case theirs == "":
		return Left // or there is nothing: it is only forgotten
	case ours == theirs:
		return Identical
	case base != nil && base.installed(ours):
		return Updated
	case update && base != nil && base.SHA256 == theirs:
		return Kept
	case ours == "" && (base == nil || !update || base.SHA256 == ""):
		return New
	}
	return Conflict
}

// writes reports whether the bundle's is put there.
func (s State) writes() bool { return s == New || s == Updated || s == Replaced || s == Renamed }

// entry returns what the record says when the item is done with; ok is false for nothing.
func (t *item) entry() (e Entry, ok bool) {
	e = Entry{Path: t.Path, As: t.As, SHA256: t.theirs}
	switch t.State {
	case Removed, Left:
		return e, false
	case Identical, Kept:
		e.Kept = t.base == nil || t.base.Kept
	}
	return e, true
}

// pendingEntry returns what the record says while the item is being written; ok is false for nothing.
func (t *item) pendingEntry() (e Entry, ok bool) {
	switch {
	case t.base != nil:
		e = *t.base
	case !t.State.writes():
		return t.entry()
	}
	if e.Path, e.As = t.Path, t.As; t.State.writes() {
		e.Next, e.Kept = t.theirs, false
	}
	return e, true
}

// target returns where a file of a bundle is installed.
func (d Dirs) target(file string) string {
	_, rel, _ := strings.Cut(strings.TrimPrefix(file, "functions/"), "/")
	return filepath.Join(d.root(file), filepath.FromSlash(rel))
}

// root returns the directory of the category that a file is in.
func (d Dirs) root(file string) string {
	category, _ := categoryOf(file)
	return map[Category]string{Agents: d.Agents, Roles: d.Roles, Macros: d.Macros, Functions: d.Tools, Skills: d.Skills}[category]
}

// digest returns the SHA-256 of the file at path, empty if there is nothing.
func digest(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", fault.New(fault.Config, "%s is a link that leads nowhere", path)
		}
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fault.New(fault.Config, "%s is not a file, and the bundle has one of this name", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// planFiles returns what happens to the files of a bundle and to others in the record. Agents
// come with their definitions last, so that half of one does not look complete.
func (i *Installer) planFiles(files []file, known []Entry, update bool) ([]item, error) {
	var items []item
	add := func(t item) error {
		ours, err := digest(i.Dirs.target(t.Path))
		if err != nil {
			return fault.Wrap(fault.Config, err, "%s cannot be installed", t.Path)
		}
		t.ours, t.State = ours, judge(t.base, ours, t.theirs, update)
		items = append(items, t)
		return nil
	}
	for _, f := range files {
		if err := add(item{Item: Item{Category: f.category, Path: f.path}, base: find(known, f.path), theirs: f.sum, content: f.content}); err != nil {
			return nil, err
		}
	}
	for n := range known {
		category, _ := categoryOf(known[n].Path)
		if !slices.ContainsFunc(items, func(t item) bool { return t.Path == known[n].Path }) {
			if err := add(item{Item: Item{Category: category, Path: known[n].Path}, base: &known[n]}); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(items, func(a, b item) int {
		return slices.Index(Categories(), string(a.Category)) - slices.Index(Categories(), string(b.Category)) + 100*(definition(a)-definition(b))
	})
	return items, nil
}

// definition returns 1 for a file that makes a directory an agent, else 0.
func definition(t item) int {
	if name := path.Base(t.Path); t.Category == Agents && strings.Count(t.Path, "/") == 2 && (name == "graph.yaml" || name == "config.yaml") {
		return 1
	}
	return 0
}

func find(entries []Entry, path string) *Entry {
	if n := slices.IndexFunc(entries, func(e Entry) bool { return e.Path == path }); n >= 0 {
		return &entries[n]
	}
	return nil
}

// freeName returns name, or with a number behind it if it is taken.
func freeName(name string, taken func(name string) bool) string {
	free := name
	for n := 2; taken(free); n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}
