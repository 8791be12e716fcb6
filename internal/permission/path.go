package permission

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"loki/internal/sandbox"
)

// workspace is the directory tree in which a model may look around.
type workspace struct {
	root      string   // absolute, symbolic links resolved
	home      string   // absolute, or empty
	realHome  string   // home with links resolved, or empty
	protected []string // absolute, links resolved
}

func newWorkspace(root, home string, protected []string) (workspace, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return workspace{}, err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return workspace{}, err
	}
	w := workspace{root: abs, home: home}
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
	real    string   // absolute, symbolic links resolved; empty if that is not known
	all     []string // every place it may lead to, as the directory may not be known
	inside  bool     // all are in the workspace
	guarded string   // why one is not written unasked: it decides what programs do later
	closed  string   // why one is not read unasked: it has credentials, or is ours
}

// locate finds out where path leads from one of the directories.
func (w workspace) locate(path string, from []string) located {
	l := located{shown: path, inside: true}
	switch {
	case path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`):
		if w.home == "" {
			return located{shown: path}
		}
		path = filepath.Join(w.home, path[1:])
	case strings.HasPrefix(path, "~"):
		return located{shown: path} // another user's
	case windowsPath(path):
		return located{shown: path}
	}
	for _, dir := range from {
		abs := path
		if !filepath.IsAbs(path) {
			abs = dir + string(filepath.Separator) + path // not cleaned: links come before ..
		}
		real := resolve(abs)
		l.real = real
		l.all = append(l.all, real)
		l.inside = l.inside && within(w.root, real)
		l.guarded, l.closed = cmp.Or(l.guarded, w.guards(real)), cmp.Or(l.closed, w.closes(real))
	}
	if len(l.all) > 1 {
		l.real = ""
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
	if reason, ok := sandbox.RunsLater(below); ok {
		return reason
	}
	if sandbox.MakesRepository(w.root, real) {
		return "git takes its directory for a repository, and runs what that names"
	}
	if rest, ok := strings.CutPrefix(real, w.home+string(filepath.Separator)); w.home != "" && ok && strings.HasPrefix(rest, ".") {
		return "it has settings of the user"
	}
	if w.root == filepath.Dir(w.root) && strings.Contains(real, "/.") {
		return "it has settings"
	}
	return w.closes(real)
}

// closes returns why a place is not read unasked, empty if it may be.
func (w workspace) closes(real string) string {
	if slices.ContainsFunc(w.protected, func(p string) bool { return within(p, real) }) {
		return "it belongs to this program"
	}
	if reason, ok := sandbox.Closed(w.realHome, real); ok {
		return reason
	}
	if w.realHome == "" || !within(w.root, w.realHome) {
		return ""
	}
	// The workspace has the home directory in it, or is that.
	if name, below := strings.CutPrefix(real, strings.TrimSuffix(w.realHome, string(filepath.Separator))+string(filepath.Separator)); below && strings.HasPrefix(name, ".") {
		return "the user keeps settings and credentials there"
	}
	return ""
}

// closesBelow reports whether something below a directory is not read unasked.
func (w workspace) closesBelow(dir string) bool {
	return w.realHome != "" && within(w.root, w.realHome) && within(dir, w.realHome) || sandbox.ClosedBelow(w.realHome, dir) ||
		slices.ContainsFunc(w.protected, func(p string) bool { return within(dir, p) })
}

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	if path == dir {
		return true
	}
	return strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// resolve returns the absolute path with all symbolic links of its existing part resolved.
// A name that does not exist stays as it is, and .. after it goes up from it.
func resolve(path string) string {
	const most = 255 // links to follow, as in Linux's limit of 40 with room to spare
	volume := filepath.VolumeName(path)
	sep := string(filepath.Separator)
	rest := strings.Split(filepath.ToSlash(path[len(volume):]), "/")
	real := volume + sep
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			real = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > most {
			return volume + sep // a loop leads nowhere: outside of any workspace
		}
		if filepath.IsAbs(target) {
			volume = filepath.VolumeName(target)
			real = volume + sep
			target = target[len(volume):]
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	return real
}

// matches reports whether a rule's path patterns match where paths lead: everywhere for a rule that allows, anywhere for another.
// Guarded places are not reached by wildcards.
func (w workspace) matches(r *Rule, found ...located) (specificity int, ok bool) {
	for _, l := range found {
		if len(l.all) == 0 && r.Action == Allow {
			return 0, false
		}
		for _, real := range l.all {
			n, matched := w.matchOne(r, real)
			if matched && r.Action != Allow {
				return n, true
			}
			if r.Action == Allow && (!matched || l.guarded+l.closed != "" && !w.names(r, real)) {
				return 0, false
			}
			specificity = max(specificity, n)
		}
	}
	return specificity, r.Action == Allow && len(found) > 0
}

func (w workspace) matchOne(r *Rule, real string) (specificity int, ok bool) {
	name := filepath.ToSlash(real)
	for _, p := range r.Paths {
		if doublestar.MatchUnvalidated(w.absolute(p), name) {
			specificity, ok = max(specificity, literals(p)), true
		}
	}
	return specificity, ok
}

// absolute makes a pattern of a rule one for absolute paths.
func (w workspace) absolute(pattern string) string {
	root, home := escapeGlob(filepath.ToSlash(w.root)), escapeGlob(filepath.ToSlash(w.home))
	switch {
	case pattern == "~":
		return home
	case strings.HasPrefix(pattern, "~/"):
		return home + pattern[1:]
	case strings.HasPrefix(pattern, "/"), len(pattern) > 2 && pattern[1] == ':' && pattern[2] == '/':
		return pattern
	case pattern == ".":
		return root
	}
	return strings.TrimSuffix(root, "/") + "/" + strings.TrimPrefix(pattern, "./")
}

// globCharacters are those that mean something in patterns of paths.
const globCharacters = `*?[]{}\`

func escapeGlob(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(globCharacters, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// names reports whether one of the patterns that match spells the guarded part out.
func (w workspace) names(r *Rule, real string) bool {
	for _, p := range r.Paths {
		abs := w.absolute(p)
		if !doublestar.MatchUnvalidated(abs, filepath.ToSlash(real)) {
			continue
		}
		wild := strings.IndexAny(abs, "*?[{")
		if wild < 0 || w.guards(filepath.FromSlash(strings.TrimSuffix(abs[:wild], "/"))) != "" {
			return true
		}
	}
	return false
}
