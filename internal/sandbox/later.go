package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
)

// tempPrefix is what the name of the directory begins with in which the temporary directories of boxes are.
const tempPrefix = "loki-sandbox-"

// installed are places that run later and that package managers make anew, for which [Network] is there.
var installed = []string{"node_modules/.bin", ".venv", "venv", ".pnp.cjs", ".pnp.loader.mjs"}

// survey is what a walk through directories finds. The paths are absolute.
type survey struct {
	protected map[string]string // places in the workspace that run later, with the reason
	closed    map[string]string // what no child reads or writes, with the reason
	// held are directories that keep their names, since what is in them is found by these: a directory that is moved away
	// would take a protected or a denied place out of its name.
	held map[string]bool
	// through has the link for each protected place that is found by a link: nm/.bin for node_modules, which leads to nm.
	through map[string]string
	links   []string            // links in protected directories that lead out of these
	execs   map[string][]string // commands of a rebase that is not at its end, by the file that has them
	denied  []string            // the closed ones that a rule denies
}

// look walks through directories once, for the places in the workspace that run later, if guard is set, and for files that
// match patterns, wherever they are. It does not look into what it finds, nor, for what runs later, into dependencies. A
// directory that cannot be listed is closed. Any other error means that the survey is not complete.
func look(l *limits, patterns, dirs []string, guard bool) (survey, error) {
	s := survey{protected: make(map[string]string), closed: make(map[string]string), held: make(map[string]bool), through: make(map[string]string), execs: make(map[string][]string)}
	var globs, roots []string
	for _, pattern := range patterns {
		base, rest := doublestar.SplitPattern(pattern)
		if strings.ContainsRune(pattern, '\\') { // escaped names; the base is not a path then
			base, rest = "/", strings.TrimPrefix(pattern, "/")
		}
		if !strings.ContainsAny(rest, "*?[{\\") {
			s.deny(pattern, pattern)
			continue
		}
		globs = append(globs, pattern)
		for _, dir := range dirs {
			if contains(base, dir) {
				roots = append(roots, dir)
			} else if contains(dir, base) {
				roots = append(roots, base)
			}
		}
	}
	if guard {
		roots = append(roots, l.workspace)
	}
	slices.Sort(roots)
	for i, root := range roots {
		if slices.ContainsFunc(roots[:i], func(r string) bool { return contains(r, root) }) {
			continue
		}
		if err := s.walk(l, root, globs, guard); err != nil {
			return s, err
		}
	}
	return s, nil
}

// walk looks through one directory.
func (s *survey) walk(l *limits, root string, globs []string, guard bool) error {
	passed := "" // where what runs later is not looked for
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // it was there a moment ago
			return nil
		case errors.Is(err, fs.ErrPermission):
			s.closed[path] = "it cannot be looked at"
			return nil
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), tempPrefix): // of boxes, if the directory of temporary files is in it
			return filepath.SkipDir
		}
		for _, pattern := range globs {
			if doublestar.MatchUnvalidated(pattern, filepath.ToSlash(path)) {
				s.deny(pattern, path)
				return leave(d)
			}
		}
		if guard && path != l.workspace && contains(l.workspace, path) && !contains(passed, path) && !s.guard(l, path, d) {
			passed = path
		}
		if d.IsDir() && (len(globs) == 0 && passed == path || d.Name() == "objects" && filepath.Base(filepath.Dir(path)) == ".git") {
			return filepath.SkipDir
		}
		return nil
	})
}

// leave leaves a directory out. For a file it does nothing.
func leave(d fs.DirEntry) error {
	if d.IsDir() {
		return filepath.SkipDir
	}
	return nil
}

// deny closes what a pattern of a rule matches, and holds the directories by whose names it does: all above it but those
// that ** stands for.
func (s *survey) deny(pattern, path string) {
	s.closed[path] = deniedByRule
	s.denied = append(s.denied, path)
	parts := strings.Split(strings.TrimSuffix(strings.Trim(pattern, "/"), "/**"), "/")
	names := strings.Split(strings.Trim(path, "/"), "/")
	first, last := len(names), 0 // of the names, as many from the front, and from the back
	if i := slices.Index(parts, "**"); i >= 0 && !slices.Contains(parts[i+1:], "**") {
		first, last = i, len(parts)-1-i
	}
	for i := 1; i < len(names); i++ {
		if i <= first || i > len(names)-last {
			s.held["/"+strings.Join(names[:i], "/")] = true
		}
	}
}

// protect protects a place, and where it leads if it is a link.
func (s *survey) protect(l *limits, path, reason string, d fs.DirEntry) {
	s.protected[path] = reason
	if d.Type()&fs.ModeSymlink != 0 {
		s.lead(l, path, "", reason)
	}
	s.entries(l, path, reason)
	if base := d.Name(); base == "config" || base == "config.worktree" {
		s.settings(l, path, filepath.Dir(filepath.Dir(path)), 0)
	}
}

// lead protects what is below the target of a link in the workspace.
func (s *survey) lead(l *limits, link, below, reason string) {
	target, err := filepath.EvalSymlinks(filepath.Join(link, below))
	if err == nil && target != l.workspace && contains(l.workspace, target) {
		s.protected[target], s.through[target] = reason, link
	}
}

// laterByName returns the laterPlaces by the last of their names, in lower case.
var laterByName = sync.OnceValue(func() map[string][]place {
	all := make(map[string][]place)
	for _, p := range laterPlaces {
		name := strings.ToLower(path.Base(p.path))
		all[name] = append(all[name], p)
	}
	return all
})

// guard protects a path if it runs later. It reports whether there can be more such places in it. At level [Network] package
// managers may do their work. If the workspace is the home directory, its names with a dot are protected.
func (s *survey) guard(l *limits, path string, d fs.DirEntry) (deeper bool) {
	base, parent := d.Name(), filepath.Base(filepath.Dir(path))
	switch {
	case d.Type()&fs.ModeSocket != 0:
		s.closed[path] = "a program outside of the sandbox listens there"
		return false
	case l.home && filepath.Dir(path) == l.workspace && strings.HasPrefix(base, "."):
		s.protect(l, path, "programs read their settings there", d)
		return false
	}
	name := "/" + strings.ToLower(filepath.ToSlash(path[len(l.workspace):]))
	for _, p := range laterByName()[strings.ToLower(base)] {
		place := strings.ToLower(p.path)
		if l.level == Network && slices.Contains(installed, p.path) {
			continue
		}
		if strings.HasSuffix(name, "/"+place) {
			s.protect(l, path, p.reason, d)
			dir := path
			for range strings.Count(place, "/") {
				dir = filepath.Dir(dir)
				s.held[dir] = true
			}
			return false
		}
	}
	if d.Type()&fs.ModeSymlink != 0 {
		for _, p := range laterPlaces {
			first, rest, _ := strings.Cut(p.path, "/")
			if rest != "" && strings.EqualFold(first, base) && !(l.level == Network && slices.Contains(installed, p.path)) {
				s.lead(l, path, rest, p.reason)
			}
		}
	}
	switch {
	case d.IsDir() && base != ".git" && isRepository(path):
		for _, name := range []string{"config", "hooks", "config.worktree", "commondir", "info/attributes", "modules", "worktrees"} {
			if p := filepath.Join(path, name); exists(p) {
				s.protected[p] = "git runs what it names"
				s.entries(l, p, s.protected[p])
			}
		}
		s.settings(l, filepath.Join(path, "config"), path, 0)
		s.rebase(path)
	case base == ".git" && d.IsDir():
		s.rebase(path)
	case base == ".git" && !d.IsDir():
		s.protect(l, path, "git finds its settings by it", d)
	}
	return d.IsDir() && parent != "node_modules" && !(l.level == Network && slices.Contains(installed, base)) && (parent != ".git" || base == "info")
}

// isRepository reports whether git takes a directory for one of its own, whatever its name is: one with a commondir has its
// settings and objects elsewhere.
func isRepository(dir string) bool {
	has := func(name string) bool { return exists(filepath.Join(dir, name)) }
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// past are the places that run later as they were before a child began.
type past struct {
	places map[string]before
	execs  map[string][]string    // of the survey
	denied map[string]os.FileInfo // files that a rule denies
}

// before is what a place was.
type before struct {
	dir, file os.FileInfo // the directory that it was in, and itself
}

// past returns the past of what was found.
func (s *survey) past() past {
	p := past{places: make(map[string]before), execs: s.execs, denied: make(map[string]os.FileInfo)}
	for _, path := range slices.Concat(slices.Collect(maps.Keys(s.protected)), slices.Collect(maps.Values(s.through)), s.links) {
		info, err := os.Lstat(path)
		dir, dirErr := os.Stat(filepath.Dir(path))
		if err == nil && dirErr == nil {
			p.places[path] = before{dir, info}
		}
	}
	for _, path := range s.denied {
		if info, err := os.Lstat(path); err == nil {
			p.denied[path] = info
		}
	}
	return p
}

// without removes places.
func (p past) without(remove func(path string) bool) {
	maps.DeleteFunc(p.places, func(path string, _ before) bool { return remove(path) })
}

func (p past) paths() []string { return slices.Sorted(maps.Keys(p.places)) }

// has reports whether what is at a path now was there, or in a directory that has been renamed since. The child could
// not change it there, unless another program replaced it.
func (p past) has(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return true
	}
	dir, err := os.Stat(filepath.Dir(path))
	was, known := p.places[path]
	if known && err == nil && os.SameFile(was.dir, dir) {
		return true
	}
	for _, b := range p.places {
		if os.SameFile(b.file, info) && b.file.ModTime().Equal(info.ModTime()) {
			return true
		}
	}
	return false
}

// replaced returns the places that have their names and are other files than they were. A box holds files, so that the child
// could reach what another program puts in their place.
func (p past) replaced(display func(path string) string) []Refusal {
	var all []Refusal
	other := func(path string, was os.FileInfo) bool {
		info, err := os.Lstat(path)
		return err == nil && !os.SameFile(info, was)
	}
	for path, b := range p.places {
		if other(path, b.file) {
			all = append(all, Refusal{Access: Replaced, What: display(path), Reason: "it runs later, and the command could write it from then on: look at it"})
		}
	}
	for path, was := range p.denied {
		if other(path, was) {
			all = append(all, Refusal{Access: Replaced, What: display(path), Reason: deniedByRule + ", and the command could read it from then on"})
		}
	}
	slices.SortFunc(all, func(x, y Refusal) int { return strings.Compare(x.What, y.What) })
	return all
}

// withhold gives what a child has put where it would run later another name, by which nothing runs it, and returns what it
// was. What a child with a higher level may have made at the same time stays.
func (b *Box) withhold(before past) []Refusal {
	later, err := look(&b.held, nil, nil, true)
	if err != nil {
		return []Refusal{{Access: Writing, Reason: "what runs later could not be looked for afterwards: " + err.Error()}}
	}
	made := make(map[string]string)
	for path, reason := range later.protected {
		if before.has(path) {
			continue
		}
		if link := later.through[path]; link != "" && !before.has(link) {
			path = link // where it leads is as it was
		}
		made[path] = reason
	}
	for path, execs := range later.execs {
		if slices.ContainsFunc(execs, func(command string) bool { return !slices.Contains(before.execs[path], command) }) {
			made[path] = "git runs the commands in it with the next git rebase --continue"
		}
	}
	var all []Refusal
	for path, reason := range made {
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
