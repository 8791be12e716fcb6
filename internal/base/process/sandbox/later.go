//go:build (linux && (amd64 || arm64)) || darwin

package sandbox

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"loki/internal/base/text/pattern"
)

// survey is what a walk through directories finds. The paths are absolute.
type survey struct {
	protected map[string]string // places in the workspace that run later, with the reason
	closed    map[string]string // what no child reads or writes, with the reason
	// held are directories that keep their names, since what is in them is found by these: a directory that is moved away
	// would take a protected or a denied place out of its name.
	held   map[string]bool
	denied []string          // the closed ones that a rule denies or asks about
	denies []pattern.Branch  // of the rules that deny
	places baseline          // the protected ones
	files  map[string]fileID // likewise, and the denied ones, by path
	ids    map[string]fileID // see limits
	began  int64             // when the walk began, as files have it
	moved  []moved           // files that were withheld
}

func newSurvey() survey {
	return survey{protected: make(map[string]string), closed: make(map[string]string), held: make(map[string]bool), places: newBaseline(), files: make(map[string]fileID), ids: make(map[string]fileID)}
}

// look walks through directories once before a child runs, for the places in the workspace that run later, if guard is set, and for files that
// are denied, wherever they are. A directory that cannot be examined is closed. An error means that the survey is not complete.
func (b *Box) look(l *limits, dirs []string, guard bool) (survey, error) {
	s := newSurvey()
	s.began, s.denies = now(), b.s.o.Denied
	var globs, outside []pattern.Branch
	var roots []string
	for _, b := range b.closedPatterns() {
		base := filepath.FromSlash(b.Dir)
		if b.Glob == "" {
			s.deny(b, base)
			if exists(base) || isASCII(base) {
				continue
			}
			base = filepath.Dir(base) // the file may have other characters for the same letters
		}
		globs = append(globs, b)
		for _, dir := range dirs {
			if contains(base, dir) {
				roots = append(roots, dir)
			} else if contains(dir, base) {
				roots = append(roots, base)
			}
		}
		if !slices.ContainsFunc(dirs, func(dir string) bool { return contains(dir, base) }) { // its files may have names in dirs
			outside = append(outside, b)
		}
	}
	w := b.walk(l, &s)
	w.globs = globs
	if b.s.o.Ignored != nil {
		w.hides = b.s.o.Ignored()
	}
	if guard || w.hides != nil {
		roots = append(roots, l.workspace)
	}
	slices.Sort(roots)
	for i, root := range roots {
		if slices.ContainsFunc(roots[:i], func(r string) bool { return contains(r, root) }) {
			continue
		}
		w.guard = guard && contains(root, l.workspace) // no root that is found is around the workspace
		if err := w.root(root); err != nil {
			return s, err
		}
	}
	if len(roots) > 0 {
		b.s.listings.set(w.seen)
	}
	for _, path := range s.denied {
		if id, ok := identify(path); ok {
			s.files[path] = id
		}
	}
	return s, s.twins(dirs, outside)
}

// limits returns what a box holds its child to, as the files are now, and what the way there found.
func (b *Box) limits() (limits, survey, error) {
	s, f := b.s, b.s.findFixed()
	l := limits{
		level: b.declared.Level, workspace: s.workspace(), userHome: s.o.Home, scripts: resolveAll(s.o.Scripts), home: f.home, links: maps.Clone(f.links),
		read: slices.Clone(f.read), needs: Needs{Read: resolveAll(b.needs.Read), Write: resolveAll(b.needs.Write)},
	}
	if l.workspace != "" {
		l.read = append(l.read, l.workspace)
	}
	if repository := s.repository(); repository != "" {
		l.read = append(l.read, repository)
	}
	written := slices.Concat(s.o.Write, b.declared.Write)
	l.read = append(l.read, s.declaredPlaces(l.links, slices.Concat(s.o.Read, b.declared.Read), written)...)
	writes := b.writes()
	var found survey
	for try := 1; ; try++ {
		var err error
		if found, err = b.look(&l, slices.Concat([]string{l.workspace}, l.read[len(f.read):], l.needs.Read, l.needs.Write), writes); err != nil {
			return limits{}, survey{}, err
		}
		if s.looked != nil {
			s.looked()
		}
		if try == 3 || !found.isStale() { // the plan says so if it is
			break
		}
	}
	l.closed, l.protected, l.held, l.ids = maps.Clone(f.closed), found.protected, found.held, found.ids
	maps.Copy(l.closed, found.closed)
	for _, p := range devicePlaces {
		l.write = append(l.write, p.path)
	}
	if writes {
		l.write = append(append(l.write, l.workspace), s.declaredPlaces(l.links, written, written)...)
	}
	b.keep(&l)
	if writes { // a child makes no socket at level read
		l.closeSockets()
	}
	l.blank(s)
	return l, found, nil
}

// isStale reports whether another program moved meanwhile what must be covered.
func (s *survey) isStale() bool {
	for path, was := range s.ids {
		if now, err := statAt(unix.AT_FDCWD, path); absent(err) || err == nil && now.id != was {
			return true
		}
	}
	return false
}

// walk returns a walk for a box, which leaves the directories of this program alone. What is left in s.places after one that withholds is what
// is there then.
func (b *Box) walk(l *limits, s *survey) *walk {
	old := b.s.listings.get()
	w := &walk{l: l, s: s, ignoreFiles: b.s.o.IgnoreFiles, old: old, seen: make(map[fileID]*listing, len(old)), own: make(map[fileID]bool), holds: make(map[fileID]bool), named: b.s.display}
	for _, dir := range l.scripts {
		if contains(l.workspace, dir) {
			w.scripts = append(w.scripts, dir)
		}
	}
	for _, file := range resolveAll(b.s.o.Files) {
		if contains(l.workspace, file) {
			w.files = append(w.files, file)
		}
	}
	own := slices.Clone(b.s.o.Own)
	if root, err := tempRoot(); err == nil {
		own = append(own, root) // of boxes
	}
	for _, dir := range resolveAll(own) {
		if !contains(l.workspace, dir) || dir == l.workspace {
			continue
		}
		if id, ok := identify(dir); ok {
			w.own[id] = true
		}
		for dir = filepath.Dir(dir); dir != l.workspace; dir = filepath.Dir(dir) {
			if id, ok := identify(dir); ok {
				w.holds[id] = true
			}
		}
	}
	return w
}

// identify returns the identity of the file at a path.
func identify(path string) (fileID, bool) {
	s, err := statAt(unix.AT_FDCWD, path)
	return s.id, err == nil
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// twins closes the other names, hard links, that files have in dirs which a rule denies or asks about. The files are looked for in a limited
// number of entries below each place.
func (s *survey) twins(dirs []string, outside []pattern.Branch) error {
	const most = 20_000
	var linked []twin
	several := func(visit func(path string, info os.FileInfo)) fs.WalkDirFunc {
		return func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil && Names(info) > 1 {
					visit(path, info)
				}
			}
			return nil
		}
	}
	collect := func(root, reason string, denied func(path string) bool) {
		seen := 0
		visit := several(func(path string, info os.FileInfo) {
			if denied(path) {
				linked = append(linked, twin{info, reason})
			}
		})
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if seen++; seen > most {
				return filepath.SkipAll
			}
			return visit(path, d, err)
		})
	}
	for _, path := range s.denied {
		collect(path, s.closed[path], func(string) bool { return true })
	}
	for _, b := range outside {
		p := pattern.Of(b)
		collect(filepath.FromSlash(b.Dir), s.reason(b), func(path string) bool { return p.Covers(filepath.ToSlash(path)) })
	}
	for _, dir := range dirs {
		if len(linked) == 0 || dir == "" {
			continue
		}
		err := filepath.WalkDir(dir, several(func(path string, info os.FileInfo) {
			for _, l := range linked {
				if os.SameFile(l.info, info) {
					s.close(path, l.reason)
				}
			}
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

// twin is a file with several names that a rule closes.
type twin struct {
	info   os.FileInfo
	reason string
}

// reason returns why what a pattern matches is closed.
func (s *survey) reason(b pattern.Branch) string {
	if slices.Contains(s.denies, b) {
		return deniedByRule
	}
	return askedByRule
}

// close closes a path. A rule that denies it is the better reason.
func (s *survey) close(path, reason string) {
	if s.closed[path] != deniedByRule {
		s.closed[path] = reason
	}
}

// deny closes what a pattern of a rule matches, and holds the directories by whose names it does: all above it except
// the ones that ** matches.
func (s *survey) deny(b pattern.Branch, path string) {
	dir := filepath.Dir(path)
	linked := resolve(dir) != dir
	path = filepath.Join(resolve(dir), filepath.Base(path)) // nothing is mounted by way of a link
	for _, place := range []string{path, resolve(path)} {   // where a link leads is closed, too
		s.close(place, s.reason(b))
		s.denied = append(s.denied, place)
	}
	parts := strings.Split(strings.TrimSuffix(strings.Trim(b.String(), "/"), "/**"), "/")
	names := strings.Split(strings.Trim(path, "/"), "/")
	first, last := len(names), 0 // of the names, as many from the front, and from the back
	if i := slices.Index(parts, "**"); i >= 0 && !linked && !slices.Contains(parts[i+1:], "**") {
		first, last = i, len(parts)-1-i
	}
	for i := 1; i < len(names); i++ {
		if i <= first || i > len(names)-last {
			s.held["/"+strings.Join(names[:i], "/")] = true
		}
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

// hide closes a path that an ignore file hides, and holds the directories by whose names it may do so.
func (s *survey) hide(path, why, workspace string) {
	for _, place := range []string{path, resolve(path)} {
		s.close(place, ignoreReason(why))
		s.denied = append(s.denied, place)
	}
	for dir := filepath.Dir(path); dir != workspace && contains(workspace, dir); dir = filepath.Dir(dir) {
		s.held[dir] = true
	}
}

// denied closes a path that a rule denies, or an ignore file hides, and reports whether there is one.
func (w *walk) denied(path string, dir bool) bool {
	found := false
	if w.hides != nil {
		if why := w.hides(path, dir); why != "" {
			w.s.hide(path, why, w.l.workspace)
			found = true
		}
	}
	for _, b := range w.globs {
		if pattern.Of(b).Match(filepath.ToSlash(path)) {
			w.s.deny(b, path)
			found = true
		}
	}
	return found
}

// examine finds in a directory what runs later, and sockets, which are closed. In what no child writes only the links count.
func (w *walk) examine(f *frame) {
	for _, e := range f.list.entries {
		if len(w.globs) == 0 && w.hides == nil {
			break
		}
		if path := join(f.path, e.name); e.kind != fs.ModeDir {
			info, err := os.Stat(path)
			w.denied(path, e.kind == fs.ModeSymlink && err == nil && info.IsDir())
		}
	}
	if !w.guard {
		return
	}
	marks := f.list.marks
	if f.dotted {
		marks = f.list.entries
	}
	for _, e := range marks {
		if i := strings.LastIndex(e.name, Withheld); i > 0 && !w.after() && !strings.Contains(f.path, Withheld) && !slices.ContainsFunc(f.list.entries, func(other entry) bool { return other.name == e.name[:i] }) {
			w.s.moved = append(w.s.moved, moved{join(f.path, e.name[:i]), join(f.path, e.name)})
		}
		if e.kind == fs.ModeSocket && !w.after() {
			w.cover(w.s.closed, f, join(f.path, e.name), "a program outside of the sandbox listens there")
		}
		if !f.kept {
			w.judge(f, e)
		} else if f.place && e.kind == fs.ModeSymlink {
			w.entry(f, e.name)
		}
	}
	if f.kept {
		return
	}
	if f.list.repo || f.isGit() {
		w.git(f)
	}
	if w.l.home != "" && f.path == w.l.home {
		for _, e := range f.list.entries {
			if strings.HasPrefix(e.name, ".") {
				w.protect(f, e.name, settingsReason)
			}
		}
	}
	for _, dir := range w.scripts {
		if filepath.Dir(dir) == f.path {
			w.protect(f, filepath.Base(dir), "scripts of the user are in it")
		}
	}
	for _, file := range w.files {
		if filepath.Dir(file) == f.path {
			w.protect(f, filepath.Base(file), ownReason)
		}
	}
}

// isGit reports whether a directory has the name of git's.
func (f *frame) isGit() bool { return f.parent != nil && strings.EqualFold(f.name, ".git") }

// judge protects a name if it runs later. At level [Network] package managers may do their work, and in what they install only what
// git runs counts.
func (w *walk) judge(f *frame, e entry) {
	allowed := func(p place) bool {
		return w.l.level == Network && slices.Contains(installed, p.path) || f.installed && !strings.HasPrefix(p.path, ".git/")
	}
	for _, p := range laterByName()[strings.ToLower(e.name)] {
		dirs := strings.Split(p.path, "/")
		dirs = dirs[:len(dirs)-1]
		if allowed(p) || !f.endsWith(dirs) {
			continue
		}
		w.protect(f, e.name, p.reason)
		for range dirs {
			w.hold(f)
			f = f.parent
		}
		return
	}
	switch lower := strings.ToLower(e.name); {
	case slices.Contains(w.ignoreFiles, lower):
		w.protect(f, e.name, "it says what models may see")
		return
	case f.list.repo && !f.isGit() && !w.after() && slices.Contains([]string{"head", "objects", "refs"}, lower): // it stays a repository
		if s, err := statAt(f.fd, e.name); err == nil {
			w.hold(&frame{path: join(f.path, e.name), id: s.id})
		}
		if lower == "head" {
			w.protect(f, e.name, "git takes the directory for a repository by it")
		}
		return
	case lower == ".git" && e.kind != fs.ModeDir:
		w.protect(f, e.name, "git finds its settings by it")
		return
	case f.list.repo && slices.Contains(repositorySettings, lower), lower == "attributes" && f.parent != nil && f.parent.list.repo && strings.EqualFold(f.name, "info"):
		w.protect(f, e.name, "git runs what it names")
		return
	}
	w.judgeNew(f, e)
	if e.kind != fs.ModeSymlink {
		return
	}
	for _, p := range laterPlaces {
		first, rest, _ := strings.Cut(p.path, "/")
		if rest == "" || !strings.EqualFold(first, e.name) || allowed(p) {
			continue
		}
		target, err := filepath.EvalSymlinks(filepath.Join(f.path, e.name, rest))
		switch inside := err == nil && target != w.l.workspace && contains(w.l.workspace, target); {
		case w.after() && inside && !w.knows(f, e.name):
			f.places = append(f.places, found{e.name, p.reason, false})
			return
		case inside:
			w.lead(target, p.reason)
		}
		w.s.places.add(f.id, e.name)
	}
}

// judgeNew records a name that may run later if it is new, see [MayRunLater]. Level [Network] is for programs that make what they want.
func (w *walk) judgeNew(f *frame, e entry) {
	name, lower := e.name, strings.ToLower(e.name)
	if e.kind == fs.ModeDir && f.parent == nil && slices.ContainsFunc(harmlessPlaces, func(p string) bool { return strings.HasPrefix(p, lower+"/") }) {
		return // what is in it counts
	}
	if contains(w.l.home, f.path) || f.harmless || !f.dotted && (!strings.HasPrefix(lower, ".") || isRepositoryDir(lower) || isHarmless(lower)) || w.isHarmlessPlace(join(f.path, name)) {
		return
	}
	s, err := statAt(f.fd, name)
	if err != nil {
		return // it is gone
	}
	w.s.places.add(f.id, name)
	switch {
	case !w.after() || w.l.level != Write:
	case !w.known.has(f.id, name, s.id):
		f.places = append(f.places, found{name, dotReason, false})
	case !s.isDir() && s.changed > w.began:
		w.changed = append(w.changed, w.named(join(f.path, name)))
	}
}

// isHarmlessPlace reports whether a path is one of harmlessPlaces, or in one.
func (w *walk) isHarmlessPlace(path string) bool {
	below := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(path, w.l.workspace), "/"))
	return slices.ContainsFunc(harmlessPlaces, func(p string) bool { return strings.HasPrefix(below+"/", p+"/") })
}

// endsWith reports whether the last directories of a path have these names.
func (f *frame) endsWith(names []string) bool {
	for _, name := range slices.Backward(names) {
		if f.parent == nil || !strings.EqualFold(f.name, name) {
			return false
		}
		f = f.parent
	}
	return true
}

// hold has a directory keep its name.
func (w *walk) hold(f *frame) {
	if len(f.path) <= maxPath {
		w.s.held[f.path] = true
		w.s.ids[f.path] = f.id
	}
}

// knows reports whether a name in a directory, or the file that has it, was there before the child.
func (w *walk) knows(f *frame, name string) bool {
	s, err := statAt(f.fd, name)
	return err != nil || w.known.has(f.id, name, s.id)
}

// protect protects a name in a directory, and where it leads if it is a link.
func (w *walk) protect(f *frame, name, reason string) {
	if slices.ContainsFunc(f.places, func(p found) bool { return p.name == name }) {
		return
	}
	s, err := statAt(f.fd, name)
	if err != nil {
		return // it is gone
	}
	path := join(f.path, name)
	known := w.after() && w.known.has(f.id, name, s.id)
	f.places = append(f.places, found{name, reason, known})
	if known || !w.after() {
		w.s.places.addProtected(f.id, name, s.id)
	}
	if !w.after() {
		w.cover(w.s.protected, f, path, reason)
		w.s.files[path], w.s.ids[path] = s.id, s.id
	} else if !known {
		return
	}
	if s.mode&unix.S_IFMT == unix.S_IFLNK {
		w.follow(path, reason)
	}
}

// follow protects where a link leads in the workspace.
func (w *walk) follow(link, reason string) {
	target, err := filepath.EvalSymlinks(link)
	if err == nil && target != w.l.workspace && contains(w.l.workspace, target) {
		w.lead(target, reason)
	}
}

// lead protects a path in the workspace to which something leads that runs later and that no child made.
func (w *walk) lead(target, reason string) {
	if w.after() {
		w.leads = append(w.leads, found{target, reason, false})
		return
	}
	id, ok := identify(target)
	dir, dirOK := identify(filepath.Dir(target))
	if ok && dirOK && len(target) <= maxPath {
		w.s.protected[target] = reason
		w.s.files[target], w.s.ids[target] = id, id
		w.s.places.addProtected(dir, filepath.Base(target), id)
	}
}

// settingsReason is why names with a dot in the home directory are protected.
const settingsReason = "programs read their settings there"

// startsLater reports whether a name in the home directory is that of something that runs later.
func startsLater(name string) bool {
	_, later := RunsLater(name)
	return later || startNames()[name]
}

// makeOwn makes the directories of this program that are in the workspace, so that the child finds them closed and does not
// make them. One that cannot be made cannot be made by the child either.
func (b *Box) makeOwn() {
	workspace := b.s.workspace()
	for _, own := range b.s.o.Own {
		closed := slices.ContainsFunc(b.s.o.Own, func(dir string) bool { return dir != own && contains(dir, own) && !contains(resolve(dir), workspace) })
		if own != "" && !closed && contains(workspace, resolve(own)) {
			_ = os.MkdirAll(own, 0o700)
		}
	}
}

// baseline is what ran later in a workspace before any of the children that are at work. The zero value has nothing.
type baseline struct {
	at    map[fileID]map[string]bool // names, by the directory that they are in
	files map[fileID]bool            // what has these names and no child could change
	shut  map[fileID]bool            // directories that were closed and not examined
}

func newBaseline() baseline {
	return baseline{make(map[fileID]map[string]bool), make(map[fileID]bool), make(map[fileID]bool)}
}

// add adds a name. The file that has it counts by itself only if it is protected.
func (b baseline) add(dir fileID, name string) {
	if b.at[dir] == nil {
		b.at[dir] = make(map[string]bool)
	}
	b.at[dir][name] = true
}

func (b baseline) addProtected(dir fileID, name string, file fileID) {
	b.add(dir, name)
	b.files[file] = true
}

// has reports whether a directory had a name, or a protected file had another one, as in a directory that got another name since. A
// child could not change it, unless another program replaced it.
func (b baseline) has(dir fileID, name string, file fileID) bool {
	return b.at[dir][name] || b.files[file]
}

// replacedPlaces returns the places that have their names and are other files than they were, as a box holds files, so that the child
// could reach what another program puts in their place; and those with several names that changed by another one.
func (s *survey) replacedPlaces(display func(path string) string) []Refusal {
	var all []Refusal
	for path, was := range s.files {
		now, err := statAt(unix.AT_FDCWD, path)
		r := Refusal{Access: Noticed, What: "ran while " + display(path) + " was replaced", Reason: "it runs later, and another program did that and the command could write it from then on, or its directory was moved: look at it"}
		switch {
		case err == nil && now.id == was && now.links > 1 && !now.isDir() && now.changed > s.began:
			r.What, r.Reason = "ran while "+display(path)+" changed", "it runs later, and another program did that, or it has another name (a hard link) by which the command wrote it: look at it"
		case err != nil || now.id == was:
			continue
		}
		if slices.Contains(s.denied, path) {
			r.Reason = s.closed[path] + ", and the command could read it from then on"
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y Refusal) int { return strings.Compare(x.What, y.What) })
	return all
}

// withhold gives what children made where it runs later other names, by descriptors, in every directory of the workspace. What a
// child at level [Full] may have made stays, and so does, in the home directory, what is not known to run later,
// since another program may have made it. It notices what else they changed that may run later.
func (b *Box) withhold(before shared) (all []Refusal, left baseline) {
	stays := ""
	if before.Level == Full {
		stays = fmt.Sprintf("a command at level %s ran at the same time and may have made it", Full)
	}
	all, w := b.examineSince(before, stays)
	if len(w.changed) > 0 {
		b.notice("changed "+some(w.changed, ", "), "other programs may run it: look at it")
	}
	return b.noticeDeleted(w.s.moved, all), w.s.places
}

// noticeLeft adds a notice about what came to be, or changed, since children began that were killed with this program, or came to
// be beside programs that run until they are stopped. It keeps its name, since the user or another program may have made it.
func (b *Box) noticeLeft(was shared) {
	if was.Level == Full {
		was.Level = Write
	}
	all, w := b.examineSince(was, "another program may have made it")
	what, since := "new or changed since %s, when a command began that was killed with this program", "what that command left to run later"
	names := w.changed
	if was.Served {
		what, since = "new since %s, while a server or a job at level write ran", "what that made to run later"
		names = nil
	}
	for _, r := range all {
		names = append(names, r.What)
	}
	slices.Sort(names)
	if len(names) > 0 {
		b.notice(fmt.Sprintf("found %s, "+what, some(names, ", "), time.Unix(0, was.Began).Format(time.DateTime)), "it may be "+since+": look at it")
	}
}

// examineSince examines the workspace for what came to be, or changed, since before, and withholds it unless stays says why not.
func (b *Box) examineSince(before shared, stays string) (all []Refusal, w *walk) {
	l := b.held
	l.level = before.Level
	s := newSurvey()
	w = b.walk(&l, &s)
	w.guard, w.known, w.began, w.stays = true, before.known, before.Began, stays
	maps.Copy(s.places.shut, before.known.shut)
	w.gives = func(r Refusal) { all = append(all, r) }
	if err := w.root(l.workspace); err != nil {
		all = append(all, Refusal{Access: Writing, Reason: "what runs later could not be looked for everywhere afterwards: " + err.Error()})
	}
	b.s.listings.set(w.seen)
	slices.Sort(w.changed)
	slices.SortFunc(all, func(x, y Refusal) int { return strings.Compare(x.What, y.What) })
	return all, w
}
