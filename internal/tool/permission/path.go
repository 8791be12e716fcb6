package permission

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/text/pattern"
	"loki/internal/tool/builtin/fsys"
)

// workspace is the directory tree in which a model may look around.
type workspace struct {
	root      string   // absolute, symbolic links resolved
	home      string   // absolute, or empty
	realHome  string   // home with links resolved, or empty
	protected []string // absolute, links resolved
	made      string   // absolute, links resolved, or empty
}

func newWorkspace(root, home, made string, protected []string) (workspace, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return workspace{}, err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	} else if !errors.Is(err, fs.ErrNotExist) { // a directory that was removed has no files to protect
		return workspace{}, err
	}
	w := workspace{root: abs, home: home}
	if made != "" {
		w.made = resolve(made)
	}
	if home != "" {
		w.realHome = resolve(home)
	}
	for _, p := range protected {
		if p, err := filepath.Abs(p); err == nil {
			w.protected = append(w.protected, resolve(p))
		}
	}
	return w, nil
}

// located is where a path leads.
type located struct {
	shown   string   // as it was written
	all     []string // every place it may lead to, as the directory may not be known: absolute, symbolic links resolved
	passed  []string // absolute names by which it leads there
	inside  bool     // all are in the workspace
	guarded string   // why one is not written unasked: it decides what programs do later
	closed  string   // why one is not read unasked: it has credentials, or is ours
}

// locate finds out where path leads from one of the directories.
func (w workspace) locate(path string, from []string) located {
	l := located{shown: path, inside: true}
	switch own := path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`); {
	case own && w.home != "":
		path = filepath.Join(w.home, path[1:])
	case strings.HasPrefix(path, "~") || windowsPath(path): // of another user, or not known
		return located{shown: path}
	}
	for _, dir := range from {
		abs := path
		if !filepath.IsAbs(path) {
			abs = dir + string(filepath.Separator) + path // not cleaned: links come before ..
		}
		real, passed := follow(abs)
		clean, reals := filepath.Clean(abs), []string{real}
		l.passed = append(append(l.passed, passed...), clean)
		if strings.Contains(path, "..") { // some programs go up from the name of a link, and not from where it leads
			reals = slices.Compact(append(reals, resolve(clean)))
		}
		for _, real := range reals {
			l.all = append(l.all, real)
			l.inside = l.inside && within(w.root, real)
			l.guarded, l.closed = cmp.Or(l.guarded, w.guards(real)), cmp.Or(l.closed, w.closes(real))
		}
	}
	return l
}

// windowsPath reports whether a path has a form that means something else than its text
// says where it is not recognized: a drive, a share, a device, an alternate stream.
func windowsPath(path string) bool {
	if filepath.Separator == '\\' {
		rest := strings.TrimPrefix(path, filepath.VolumeName(path))
		return strings.HasPrefix(path, `\\`) || strings.HasPrefix(path, "//") || strings.Contains(rest, ":") ||
			filepath.VolumeName(path) != "" && !filepath.IsAbs(path) || filepath.VolumeName(path) == "" && strings.HasPrefix(strings.ReplaceAll(path, "/", `\`), `\`)
	}
	return len(path) > 1 && path[1] == ':' && (len(path) == 2 || path[2] == '\\' || path[2] == '/') || strings.HasPrefix(path, `\\`)
}

// guards returns why a place is not written unasked, empty if it may be.
func (w workspace) guards(real string) string {
	below := filepath.ToSlash(strings.TrimPrefix(real, w.root))
	for part := range strings.SplitSeq(below, "/") {
		switch part = strings.ToLower(strings.TrimRight(part, ". ")); {
		case part == "@" || strings.HasPrefix(part, "-"):
			return "a wildcard would make an option of it"
		case part == ".git" || part == ".hg" || part == ".svn" || part == ".gitattributes":
			return "it decides what programs do later"
		}
	}
	later, runs := sandbox.RunsLater(below)
	dotted, may := sandbox.MayRunLater(below)
	switch {
	case runs:
		return later
	case may && !exists(real):
		return dotted
	case sandbox.MakesRepository(w.root, real):
		return "git takes its directory for a repository, and runs what that names"
	case w.home != "" && !w.isMade(real) && strings.HasPrefix(real, w.home+string(filepath.Separator)+"."):
		return "it has settings of the user"
	case w.root == filepath.Dir(w.root) && strings.Contains(real, "/."):
		return "it has settings"
	}
	return w.closes(real)
}

// closes returns why a place is not read unasked, empty if it may be.
func (w workspace) closes(real string) string {
	reason, ok := sandbox.ClosedReason(w.realHome, real)
	switch {
	case slices.ContainsFunc(w.protected, func(p string) bool { return within(p, real) && !(w.isMade(real) && within(p, w.made)) }):
		return "it belongs to this program"
	case ok:
		return reason
	// The workspace has the home directory in it, or is that.
	case w.realHome != "" && within(w.root, w.realHome) && strings.HasPrefix(real, strings.TrimSuffix(w.realHome, string(filepath.Separator))+string(filepath.Separator)+"."):
		return "the user keeps settings and credentials there"
	}
	return ""
}

// isMade reports whether a place is in the directory that this program made for the work.
func (w workspace) isMade(real string) bool { return w.made != "" && within(w.made, real) }

// closesBelow reports whether something below a directory is not read unasked.
func (w workspace) closesBelow(dir string) bool {
	return w.realHome != "" && within(w.root, w.realHome) && within(dir, w.realHome) || sandbox.ClosedBelow(w.realHome, dir) ||
		slices.ContainsFunc(w.protected, func(p string) bool { return within(dir, p) })
}

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// resolve returns where a path leads.
func resolve(path string) string {
	real, _ := follow(path)
	return real
}

// follow is [fsys.Follow]: a loop leads nowhere, outside of any workspace.
func follow(path string) (real string, passed []string) {
	real, passed, _ = fsys.Follow(path, true)
	return real, passed
}

// matches reports whether a rule's path patterns match where paths lead: everywhere for a rule that allows, anywhere for another,
// which also holds for the names by which a path leads there. Guarded places are not reached by wildcards.
func (w workspace) matches(r *Rule, found ...located) (specificity int, ok bool) {
	for _, l := range found {
		if r.Action != Allow {
			for _, place := range slices.Concat(l.all, l.passed) {
				if n, matched := matchOne(r, place); matched {
					return n, true
				}
			}
			if slices.ContainsFunc(l.all, r.twin) {
				return 0, true
			}
			continue
		}
		for _, real := range l.all {
			n, matched := matchOne(r, real)
			if !matched || l.guarded+l.closed != "" && !w.names(r, real) {
				return 0, false
			}
			specificity = max(specificity, n)
		}
		if len(l.all) == 0 {
			return 0, false
		}
	}
	return specificity, r.Action == Allow && len(found) > 0
}

// matchOne compares a place with the patterns of a rule that [workspace.bind] has returned.
func matchOne(r *Rule, place string) (specificity int, ok bool) {
	if r.hides != nil {
		_, ok = r.hides(place)
		return 0, ok
	}
	name := filepath.ToSlash(place)
	for i, p := range r.places {
		if p.Match(name) || r.Action != Allow && p.Covers(name) {
			specificity, ok = max(specificity, literals(r.Paths[i])), true
		}
	}
	return specificity, ok
}

// bind returns a rule with its patterns of paths compiled, as the files are now. A rule that allows means what exists as it
// is written, and otherwise a pattern. Another rule means both, also below the links that its patterns begin with, and all that is in
// a directory that it matches.
func (w workspace) bind(r *Rule) *Rule {
	if len(r.Paths) == 0 {
		return r
	}
	bound := *r
	bound.places = make([]*pattern.Pattern, len(r.Paths))
	for i, text := range r.Paths {
		bound.places[i] = w.compile(text, r.Action != Allow)
	}
	if r.Action != Allow {
		bound.twins = sync.OnceValue(bound.findTwins)
	}
	return &bound
}

// twin reports whether a place is another name, a hard link, of a file that the rule matches.
func (r *Rule) twin(place string) bool {
	info, err := os.Lstat(place)
	return err == nil && sandbox.Names(info) > 1 && slices.ContainsFunc(r.twins(), func(twin os.FileInfo) bool { return os.SameFile(twin, info) })
}

// findTwins returns the files with several names that the rule matches.
func (r *Rule) findTwins() (twins []os.FileInfo) {
	const most = 20_000 // entries that are looked at
	seen := 0
	dirs := []string{r.below}
	for _, p := range r.places {
		for _, b := range p.Branches() {
			dirs = append(dirs, filepath.FromSlash(b.Dir))
		}
	}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if seen++; seen > most {
				return filepath.SkipAll
			}
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			if info, err := d.Info(); err == nil && sandbox.Names(info) > 1 {
				if _, ok := matchOne(r, path); ok {
					twins = append(twins, info)
				}
			}
			return nil
		})
	}
	return twins
}

// compile returns a pattern for absolute paths. What cannot be read, since it is not from a file, is a name.
func (w workspace) compile(text string, strict bool) *pattern.Pattern {
	bases, rest := w.bases(text, strict)
	var branches []pattern.Branch
	for _, base := range bases {
		p, err := pattern.CompileBoth(rest)
		if !strict {
			p, err = pattern.Compile(pattern.Literal(base, rest))
		}
		if err != nil {
			p = pattern.Exactly(rest)
		}
		for _, b := range p.Branches() {
			b = b.At(filepath.ToSlash(base))
			branches = append(branches, b)
			if real := filepath.ToSlash(resolve(filepath.FromSlash(b.Dir))); strict && real != b.Dir {
				branches = append(branches, b.In(real))
			}
		}
	}
	return pattern.Of(branches...)
}

// bases returns the directories that a pattern of a rule is relative to, and the rest of it.
func (w workspace) bases(text string, strict bool) (bases []string, rest string) {
	text = filepath.ToSlash(text)
	volume := filepath.VolumeName(text)
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		if w.home != "" {
			bases = append(bases, w.home)
		}
		if strict { // a directory may have this name
			bases = append(bases, filepath.Join(w.root, "~"))
		}
		return bases, text[1:]
	case strings.HasPrefix(text[len(volume):], "/"):
		return []string{volume + "/"}, text[len(volume):]
	}
	return []string{w.root}, text
}

// names reports whether one of the patterns that match spells the guarded part out.
func (w workspace) names(r *Rule, real string) bool {
	for _, p := range r.places {
		for _, b := range p.Branches() {
			spelled := b.Dir
			if wild := strings.IndexAny(b.Glob, "*?["); wild >= 0 {
				spelled = strings.TrimSuffix(b.Dir+"/"+b.Glob[:wild], "/")
			}
			if pattern.Of(b).Match(filepath.ToSlash(real)) && (b.Glob == "" || w.guards(filepath.FromSlash(spelled)) != "") {
				return true
			}
		}
	}
	return false
}
