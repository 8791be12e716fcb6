package sandbox

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// RunsLater reports whether what is written to a place is executed later by programs that are not confined, and why. The
// path has slashes and may be relative: a name on the list counts in every directory, in any letters' case, with all that is
// below it.
func RunsLater(name string) (reason string, ok bool) {
	name = "/" + strings.ToLower(strings.Trim(path.Clean("/"+name), "/")) + "/"
	i := slices.IndexFunc(laterPlaces, func(p place) bool { return strings.Contains(name, "/"+strings.ToLower(p.path)+"/") })
	if i < 0 {
		return "", false
	}
	return laterPlaces[i].reason, true
}

// MakesRepository reports whether a file below root, both absolute, is one of those by which git takes a directory for a
// repository, of which it runs what the settings name: HEAD, commondir, and what is below a directory that has one of them.
func MakesRepository(root, file string) bool {
	if !contains(root, file) || file == root {
		return false
	}
	for _, name := range []string{"HEAD", "commondir"} {
		if strings.EqualFold(filepath.Base(file), name) {
			return true
		}
		for dir := filepath.Dir(file); contains(root, dir); dir = filepath.Dir(dir) {
			if exists(filepath.Join(dir, name)) {
				return true
			}
			if dir == root {
				break
			}
		}
	}
	return false
}

// ClosedBelow reports whether a directory, by its absolute path, has what [Closed] reports somewhere below it.
func ClosedBelow(home, dir string) bool {
	dir = strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator)
	return slices.ContainsFunc(closedPlaces, func(p place) bool {
		place := p.path
		if below, ok := strings.CutPrefix(place, "~/"); ok {
			if home == "" {
				return false
			}
			place = filepath.Join(home, below)
		}
		return strings.HasPrefix(place, dir)
	})
}

// Closed reports whether an absolute path leads to what no child below [Full] reads, such as credentials, and why. home is
// the user's home directory, empty if it is not known.
func Closed(home, path string) (reason string, ok bool) {
	for _, p := range closedPlaces {
		place := p.path
		if below, ok := strings.CutPrefix(place, "~/"); ok {
			if home == "" {
				continue
			}
			place = filepath.Join(home, below)
		}
		if path == place || strings.HasPrefix(path, place+string(filepath.Separator)) {
			return p.reason, true
		}
	}
	return "", false
}
