package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// installed are places that run later and that package managers make anew, for which [Network] is there.
var installed = []string{"node_modules/.bin", ".venv", "venv"}

// guarded returns the places in the workspace that run later and exist, with the reason, wherever they are. It does not look
// into them, nor into dependencies. At level [Network] package managers may do their work. If the workspace is the home directory, its names with a dot are among them.
func guarded(l *limits) map[string]string {
	workspace := l.workspace
	found := make(map[string]string)
	_ = filepath.WalkDir(workspace, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if path == workspace {
			return nil
		}
		if l.home && filepath.Dir(path) == workspace && strings.HasPrefix(d.Name(), ".") {
			found[path] = "programs read their settings there"
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		name := "/" + strings.ToLower(filepath.ToSlash(path[len(workspace):]))
		for _, p := range laterPlaces {
			if strings.HasSuffix(name, "/"+strings.ToLower(p.path)) && !(l.level == Network && slices.Contains(installed, p.path)) {
				found[path] = p.reason
				if d.IsDir() {
					return filepath.SkipDir
				}
				return nil
			}
		}
		base, parent := d.Name(), filepath.Base(filepath.Dir(path))
		if base == ".git" && !d.IsDir() {
			found[path] = "git finds its settings by it"
		}
		if d.IsDir() && (parent == "node_modules" || l.level == Network && slices.Contains(installed, base) || parent == ".git" && base != "info") {
			return filepath.SkipDir
		}
		return nil
	})
	return found
}

// denied returns the files that match patterns, below directories.
func denied(patterns, dirs []string) []string {
	var found []string
	for _, pattern := range patterns {
		base, rest := doublestar.SplitPattern(pattern)
		if strings.ContainsRune(pattern, '\\') { // escaped names; the base is not a path then
			base, rest = "/", strings.TrimPrefix(pattern, "/")
		}
		if !strings.ContainsAny(rest, "*?[{\\") {
			found = append(found, pattern)
			continue
		}
		for _, dir := range dirs {
			if contains(base, dir) {
				found = append(found, matching(pattern, dir)...)
			} else if contains(dir, base) {
				found = append(found, matching(pattern, base)...)
			}
		}
	}
	return found
}

// matching returns what matches a pattern in a directory. It does not look into what matches.
func matching(pattern, dir string) []string {
	var found []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case doublestar.MatchUnvalidated(pattern, filepath.ToSlash(path)):
			found = append(found, path)
			if d.IsDir() {
				return filepath.SkipDir
			}
		case d.IsDir() && d.Name() == "objects" && filepath.Base(filepath.Dir(path)) == ".git":
			return filepath.SkipDir
		}
		return nil
	})
	return found
}

// withhold moves what a child has put where it would run later out of the workspace, into a new directory of keep, and
// returns what it was. before are the places that were there, by their files.
func (b *Box) withhold(before map[string]os.FileInfo) []Refusal {
	var all []Refusal
	for path, reason := range guarded(&b.held) {
		info, err := os.Lstat(path)
		if err != nil || before[path] != nil && os.SameFile(before[path], info) {
			continue
		}
		r := Refusal{Access: Writing, What: b.s.display(path), Reason: reason}
		if err := b.s.keep(path); err != nil {
			r.Reason += "; it could not be moved away: " + err.Error()
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y Refusal) int { return strings.Compare(x.What, y.What) })
	return all
}

// keep moves a file or directory to the directory of what was withheld, or removes it where there is none.
func (s *Sandbox) keep(path string) error {
	if s.o.State == "" {
		return os.RemoveAll(path)
	}
	dir := filepath.Join(s.o.State, "sandbox", "withheld")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(dir, "")
	if err != nil {
		return err
	}
	return os.Rename(path, filepath.Join(dir, filepath.Base(path)))
}
