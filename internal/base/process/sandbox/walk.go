//go:build (linux && (amd64 || arm64)) || darwin

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"loki/internal/base/process"
	"loki/internal/base/text/pattern"
)

// stat is what is known of a file.
type stat struct {
	id      fileID
	mode    uint32 // as the system has it, with the type
	links   uint64 // names
	user    int
	changed int64 // when its inode changed, in nanoseconds
}

func (s stat) isDir() bool { return s.mode&unix.S_IFMT == unix.S_IFDIR }

// entry is a name in a directory. The type of a file that is regular, or a device, is 0.
type entry struct {
	name string
	kind fs.FileMode
}

// listing is what is in a directory. It is not changed.
type listing struct {
	changed int64 // when the directory changed last
	entries []entry
	dirs    []string
	marks   []entry // those whose names, or types, can matter
	repo    bool    // git takes it for a repository
}

// settled is how long ago a directory has to have changed before its listing is relied on, in nanoseconds: what changes within
// the same tick of the clock of the file system has the same time.
const settled = int64(100 * time.Millisecond)

// list lists an open directory that was examined before.
func list(dir int, s stat) (*listing, error) {
	began := now()
	entries, err := entriesOf(dir)
	if err != nil {
		return nil, err
	}
	l := &listing{entries: entries}
	if s.changed < began-settled {
		l.changed = s.changed
	}
	has := make(map[string]bool, len(repositoryNames))
	for _, e := range entries {
		lower := strings.ToLower(e.name)
		if repositoryNames[lower] {
			has[lower] = true
		}
		if e.kind == fs.ModeDir {
			l.dirs = append(l.dirs, e.name)
		}
		if e.kind&(fs.ModeSymlink|fs.ModeSocket) != 0 || laterByName()[lower] != nil || repositoryNames[lower] || strings.HasPrefix(lower, ".") || strings.Contains(lower, Withheld) {
			l.marks = append(l.marks, e)
		}
	}
	l.repo = has["head"] && (has["commondir"] || has["objects"] && has["refs"])
	return l, nil
}

// listings are those of directories, kept from one walk to the next. The zero value has none. It may be used from several
// goroutines.
type listings struct {
	mu  sync.Mutex
	all map[fileID]*listing // guarded by mu; the map itself is never changed
}

func (ls *listings) get() map[fileID]*listing {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.all
}

func (ls *listings) set(all map[fileID]*listing) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.all = all
}

// frame is a directory on the way of a walk.
type frame struct {
	parent     *frame // nil for the root
	fd         int    // -1 while it is closed
	id         fileID
	name, path string
	mode       uint32 // what it gets back at the end if lent is set
	lent       bool
	list       *listing
	places     []found // what runs later in it
	place      bool    // it runs later itself
	kept       bool    // it runs later, or is in what does, and no child writes in it
	installed  bool    // package managers make what is in it
	dotted     bool    // what is new in it may run later
	harmless   bool    // names with a dot in it are not what programs look for
}

// found is a name in a directory of what runs later, with the reason.
type found struct {
	name, reason string
	known        bool // it was there before the child
}

// Limits of a walk, neither of which leaves anything out.
const (
	maxOpen = 128  // how many directories are open at a time
	maxPath = 3800 // length of the longest path that is handed to the system, which takes 4096 bytes
)

// walk goes through all that is below a directory, by descriptors: no path is resolved but that of this directory.
type walk struct {
	l           *limits
	s           *survey
	globs       []pattern.Branch
	hides       func(path string, dir bool) (why string) // see [Options].Ignored; nil hides nothing
	guard       bool                                     // what runs later is looked for
	ignoreFiles []string                                 // see [Options]
	scripts     []string                                 // directories of scripts in the workspace
	files       []string                                 // files of this program there
	old         map[fileID]*listing                      // of an earlier walk
	seen        map[fileID]*listing                      // of this one
	own         map[fileID]bool                          // directories of this program, which are left alone
	holds       map[fileID]bool                          // directories in which these are, which keep their names
	gives       func(Refusal)                            // gets what a child made, which is withheld; nil for a walk before a child
	known       baseline                                 // what was there before the child
	began       int64                                    // when the walk before the child did
	stays       string                                   // why what a child made keeps its name; empty if it does not
	changed     []string                                 // names with a dot that were there and changed since
	leads       []found                                  // paths to which links and settings lead
	stack       []*frame                                 // from the root on
	open        int                                      // how many of them are open
	err         error                                    // of a walk that is not complete
	named       func(path string) string
}

// after reports whether the walk is one after a child.
func (w *walk) after() bool { return w.gives != nil }

// root goes through a directory. One that does not exist has nothing in it.
func (w *walk) root(path string) error {
	if s, err := statAt(unix.AT_FDCWD, path); err == nil && w.after() && isShut(s) {
		lend(unix.AT_FDCWD, path, s) // it stays open: its user could not work in it
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case absent(err):
		return nil
	case errors.Is(err, fs.ErrPermission) && !w.after():
		w.s.closed[path] = unseen
		return nil
	case err != nil:
		return err
	}
	f := &frame{fd: fd, name: filepath.Base(path), path: path}
	s, err := statAt(fd, "")
	if err != nil {
		unix.Close(fd)
		return err
	}
	f.id = s.id
	w.open++
	w.enter(f, s)
	for _, t := range w.leads {
		w.withholdAt(f, t)
	}
	w.leave(f)
	return w.err
}

// unseen is why a directory is closed, or withheld, that cannot be examined.
const unseen = "it cannot be looked at"

func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// join returns the path of a file. If it is much too long for the system, the middle is missing: then it is for people only.
func join(dir, name string) string {
	path := strings.TrimSuffix(dir, "/") + "/" + name
	if len(path) > 3*maxPath {
		path = path[:maxPath+1] + "…/" + name
	}
	return path
}

// enter goes through an open directory and what is below it.
func (w *walk) enter(f *frame, s stat) {
	w.stack = append(w.stack, f)
	if f.list = w.old[f.id]; f.list == nil || f.list.changed != s.changed {
		l, err := list(f.fd, s)
		if err != nil {
			w.noteMissed(f.parent, f.name, f.id, err)
			return
		}
		f.list = l
	}
	w.seen[f.id] = f.list
	w.examine(f)
	for _, name := range f.list.dirs {
		if w.err != nil && !w.after() || !w.reopen(f) {
			return
		}
		w.descend(f, name)
	}
	if w.after() && w.reopen(f) {
		for _, p := range f.places {
			if !p.known {
				w.withhold(f, p)
			}
		}
	}
}

// descend goes through a directory in one.
func (w *walk) descend(p *frame, name string) {
	s, err := statAt(p.fd, name)
	if err != nil || !s.isDir() {
		if err != nil {
			w.noteMissed(p, name, fileID{}, err)
		}
		return
	}
	if l := w.old[s.id]; l != nil && !p.dotted && name[0] != '.' && l.changed == s.changed && len(l.dirs) == 0 && len(l.marks) == 0 && !w.own[s.id] && len(w.globs) == 0 && w.hides == nil && len(w.scripts)+len(w.files) == 0 {
		w.seen[s.id] = l // nothing in it matters
		return
	}
	f := &frame{parent: p, fd: -1, id: s.id, name: name, path: join(p.path, name), mode: s.mode, kept: p.kept}
	if w.own[s.id] {
		if !w.after() && w.guard {
			w.s.closed[f.path] = ownReason
		}
		return
	}
	if w.after() && w.known.shut[s.id] {
		return
	}
	if w.denied(f.path, true) {
		w.s.places.shut[s.id] = true
		return
	}
	if i := slices.IndexFunc(p.places, func(p found) bool { return p.name == name }); i >= 0 {
		f.place, f.kept = true, p.kept || p.places[i].known || !w.after()
	}
	f.installed = p.installed || w.l.level == Network && slices.Contains([]string{"node_modules", ".venv", "venv"}, name)
	w.findDotted(p, f)
	if isShut(s) {
		if !w.after() {
			w.noteMissed(p, name, s.id, fs.ErrPermission)
			return
		}
		f.lent = lend(p.fd, name, s)
	}
	if w.open >= maxOpen {
		for _, around := range w.stack[1:] {
			if around.fd >= 0 && around != p {
				unix.Close(around.fd)
				around.fd = -1
				w.open--
				break
			}
		}
	}
	if f.fd, err = unix.Openat(p.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
		w.noteMissed(p, name, s.id, err)
		return
	}
	w.open++
	if now, err := statAt(f.fd, ""); err == nil {
		f.id, s.changed = now.id, now.changed
	}
	w.enter(f, s)
	w.leave(f)
}

// findDotted finds whether what is new in a directory may run later because of names with a dot.
func (w *walk) findDotted(p, f *frame) {
	lower := strings.ToLower(f.name)
	dot := strings.HasPrefix(lower, ".") && !isRepositoryDir(lower)
	f.harmless = p.harmless || lower == "node_modules" || dot && !p.dotted && isHarmless(lower) || w.isHarmlessPlace(f.path) ||
		w.after() && f.place // it is withheld as a whole
	f.dotted = (p.dotted || dot) && !f.harmless
}

// isShut reports whether the user of this process has a directory that the mode keeps the same user from looking into.
func isShut(s stat) bool {
	user := os.Geteuid()
	return s.isDir() && user != 0 && s.user == user && s.mode&0o500 != 0o500
}

// lend gives a directory that its user cannot read the mode to do so.
func lend(dir int, name string, s stat) bool {
	fd, err := unix.Openat(dir, name, pathOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return permit(fd, s.mode|0o700) == nil
}

// noteMissed records that a directory could not be examined: it is closed, or withheld if the child made it. One that does not exist
// anymore does not matter.
func (w *walk) noteMissed(p *frame, name string, id fileID, err error) {
	switch {
	case absent(err):
	case p == nil || process.IsLimit(err) && !w.after():
		w.err = errors.Join(w.err, err)
	case !w.after():
		w.cover(w.s.closed, p, join(p.path, name), unseen)
		if id != (fileID{}) {
			w.s.ids[join(p.path, name)] = id
		}
		w.s.places.shut[id] = true
		w.s.places.addProtected(p.id, name, id)
	case w.guard && !p.kept:
		p.places = append(p.places, found{name, unseen, w.known.has(p.id, name, id)})
	}
}

// cover adds a path to places that are closed, or protected. Where it is too long for the system, a directory around it is meant.
func (w *walk) cover(places map[string]string, f *frame, path, reason string) {
	for ; len(path) > maxPath && f != nil; f = f.parent {
		path, reason = f.path, "it has something below it that runs later, at a path that is too long"
	}
	places[path] = reason
}

// reopen opens a directory again that was closed since many others below it were open, and has not been found again from these.
func (w *walk) reopen(f *frame) bool {
	if f.fd >= 0 {
		return true
	}
	fd, err := unix.Openat(w.stack[0].fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for i := 1; err == nil; i++ {
		below, openErr := unix.Openat(fd, w.stack[i].name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		if fd, err = below, openErr; err == nil && w.stack[i] == f {
			if s, statErr := statAt(fd, ""); statErr == nil && s.id == f.id {
				f.fd = fd
				w.open++
				return true
			}
			unix.Close(fd)
			break
		}
	}
	w.err = errors.Join(w.err, fmt.Errorf("%s was moved away meanwhile", f.path))
	return false
}

// leave closes a directory that enter went through, and gives it back its mode. A parent that is closed is opened by way of it.
func (w *walk) leave(f *frame) {
	w.stack = w.stack[:len(w.stack)-1]
	if f.fd < 0 {
		return
	}
	if f.parent != nil && f.parent.fd < 0 {
		if fd, err := unix.Openat(f.fd, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			if s, err := statAt(fd, ""); err == nil && s.id == f.parent.id {
				f.parent.fd = fd
				w.open++
			} else {
				unix.Close(fd)
			}
		}
	}
	if f.lent {
		_ = permit(f.fd, f.mode) // it got another one just now
	}
	unix.Close(f.fd)
	w.open--
}

// longest is how many bytes the name of a file can have.
const longest = 255

// withhold gives what a child put where it would run later another name, by which nothing runs it.
func (w *walk) withhold(f *frame, p found) {
	s, err := statAt(f.fd, p.name)
	if err == nil && w.known.has(f.id, p.name, s.id) {
		w.s.places.addProtected(f.id, p.name, s.id)
		return
	}
	if err != nil || w.own[s.id] || w.holds[s.id] || p.reason == settingsReason && !startsLater(p.name) {
		return
	}
	path := join(f.path, p.name)
	r := Refusal{Access: Writing, What: w.named(path), Reason: p.reason, Level: installs(path, w.l.level)}
	if w.stays != "" {
		r.Reason += "; it stays, as " + w.stays
		if w.s.places.add(f.id, p.name); s.changed >= w.began {
			w.gives(r)
		}
		return
	}
	to, err := rename(f.fd, p.name)
	if errors.Is(err, fs.ErrPermission) { // its mode does not let it be changed
		if own, statErr := statAt(f.fd, ""); statErr == nil && permit(f.fd, own.mode|0o700) == nil {
			to, err = rename(f.fd, p.name)
			_ = permit(f.fd, own.mode)
		}
	}
	if err != nil {
		r.Reason += "; it could not be renamed: " + err.Error()
	} else {
		r.Reason += "; what it wrote is now " + w.named(join(f.path, to))
		if s.links > 1 && !s.isDir() {
			r.Reason += ", which has another name (a hard link), too: copy it before it is put back"
		}
		w.s.moved = append(w.s.moved, moved{path, join(f.path, to)})
	}
	w.gives(r)
}

// rename gives a file in an open directory a new name.
func rename(dir int, name string) (to string, err error) {
	for n := 1; n < 1000; n++ {
		end := Withheld
		if n > 1 {
			end += strconv.Itoa(n)
		}
		if n > 100 { // the others were made to be in the way
			end = Withheld + strconv.FormatUint(rand.Uint64(), 36)
		}
		to = name[:min(len(name), longest-len(end))] + end
		if err = renameIn(dir, name, to); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return to, err
}

// withholdAt withholds what a child made at a path below the root to which a link or settings lead that were there before.
func (w *walk) withholdAt(root *frame, p found) {
	f := &frame{fd: -1, path: root.path}
	fd, err := unix.Openat(root.fd, ".", pathOnly|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	names := strings.Split(strings.TrimPrefix(p.name[len(root.path):], "/"), "/")
	for _, name := range names[:len(names)-1] {
		if err != nil {
			return // it has another name by now
		}
		f.path, f.fd = join(f.path, name), fd
		fd, err = unix.Openat(f.fd, name, pathOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(f.fd)
	}
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if s, err := statAt(fd, ""); err == nil {
		f.fd, f.id = fd, s.id
		w.withhold(f, found{names[len(names)-1], p.reason, false})
	}
}

// read returns the beginning of a regular file in an open directory; nil if there is none.
func read(dir int, name string, most int64) []byte {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(f, most)) // as much as can be read
	return text
}
