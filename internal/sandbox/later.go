package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
)

// tempPrefix is what the name of the directory begins with in which the temporary directories of boxes are.
const tempPrefix = "loki-sandbox-"

// installed are places that run later and that package managers make anew, for which [Network] is there.
var installed = []string{"node_modules/.bin", ".venv", "venv"}

// guarded returns the places in the workspace that run later and exist, with the reason, wherever they are. It does not look
// into them, nor into dependencies. At level [Network] package managers may do their work. If the workspace is the home directory, its names with a dot are among them.
//
// sockets are those on which programs outside of the sandbox listen.
func guarded(l *limits) (found map[string]string, sockets []string) {
	workspace := l.workspace
	found = make(map[string]string)
	_ = filepath.WalkDir(workspace, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if path == workspace {
			return nil
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), tempPrefix) { // of boxes, if the directory of temporary files is in the workspace
			return filepath.SkipDir
		}
		if d.Type()&fs.ModeSocket != 0 {
			sockets = append(sockets, path)
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
		if d.IsDir() && base != ".git" && exists(filepath.Join(path, "HEAD")) && exists(filepath.Join(path, "objects")) && exists(filepath.Join(path, "refs")) {
			for _, name := range []string{"config", "hooks", "config.worktree", "commondir"} { // git takes such a directory for a repository
				if p := filepath.Join(path, name); exists(p) {
					found[p] = "git runs what it names"
				}
			}
			return filepath.SkipDir
		}
		if base == ".git" && !d.IsDir() {
			found[path] = "git finds its settings by it"
		}
		if d.IsDir() && (parent == "node_modules" || l.level == Network && slices.Contains(installed, base) || parent == ".git" && base != "info") {
			return filepath.SkipDir
		}
		return nil
	})
	return found, sockets
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

// past are the places that run later as they were before a child began.
type past struct {
	dirs  map[string]os.FileInfo // the directories that they were in
	files []os.FileInfo          // themselves
}

// note returns the past of places.
func note(places map[string]string) past {
	p := past{dirs: make(map[string]os.FileInfo)}
	for path := range places {
		info, err := os.Lstat(path)
		dir, dirErr := os.Stat(filepath.Dir(path))
		if err == nil && dirErr == nil {
			p.dirs[path], p.files = dir, append(p.files, info)
		}
	}
	return p
}

// has reports whether what is at a path now was there, or in a directory that has been renamed since. The child could
// not change it there, so that whatever has become of it is not the child's work.
func (p past) has(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return true
	}
	dir, err := os.Stat(filepath.Dir(path))
	return err == nil && p.dirs[path] != nil && os.SameFile(p.dirs[path], dir) ||
		slices.ContainsFunc(p.files, func(f os.FileInfo) bool { return os.SameFile(f, info) && f.ModTime().Equal(info.ModTime()) })
}

// withhold gives what a child has put where it would run later another name, by which nothing runs it, and returns what it
// was. What a child with a higher level may have made at the same time stays.
func (b *Box) withhold(before past) []Refusal {
	var all []Refusal
	later, _ := guarded(&b.held)
	for path, reason := range later {
		if before.has(path) {
			continue
		}
		r := Refusal{Access: Writing, What: b.s.display(path), Reason: reason}
		if beside := b.s.running.beside(b); !b.declared.Level.Covers(beside) {
			r.Reason += fmt.Sprintf("; it stays, as a command at level %s ran at the same time and may have made it", beside)
		} else if to, err := rename(path); err != nil {
			r.Reason += "; it could not be renamed: " + err.Error()
		} else {
			r.Reason += "; what it wrote is now " + b.s.display(to)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y Refusal) int { return strings.Compare(x.What, y.What) })
	return all
}

// Withheld is what the names of files end in that a command made where they would run later.
const Withheld = ".withheld"

// rename gives a file or directory a new name beside the old one.
func rename(path string) (to string, err error) {
	to = path + Withheld
	for n := 2; exists(to); n++ {
		to = path + Withheld + strconv.Itoa(n)
	}
	return to, os.Rename(path, to)
}

// running are the boxes whose children run, each with the highest level of those that ran beside it. The zero value
// has none. It may be used from several goroutines.
type running struct {
	mu    sync.Mutex // guards boxes
	boxes map[*Box]Level
}

// add adds a box.
func (r *running) add(b *Box) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.boxes == nil {
		r.boxes = make(map[*Box]Level)
	}
	highest := Level("")
	for other, beside := range r.boxes {
		if b.Level().Covers(beside) {
			r.boxes[other] = b.Level()
		}
		if other.Level().Covers(highest) {
			highest = other.Level()
		}
	}
	r.boxes[b] = highest
}

// beside returns the highest level of the others that have run since a box was added, empty if none has.
func (r *running) beside(b *Box) Level {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.boxes[b]
}

func (r *running) remove(b *Box) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.boxes, b)
}
