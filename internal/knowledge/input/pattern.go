package input

import (
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text/pattern"
)

// Pattern is a path, or the files that a pattern of package pattern matches below a directory.
type Pattern struct {
	Base  string           // the path, or the directory
	files *pattern.Pattern // relative to Base; nil for the path with all below it
}

// ParsePattern reads the path of a source. What exists as it is written is a path.
func ParsePattern(source string) (Pattern, error) {
	if _, err := os.Lstat(source); err == nil || !pattern.Special(source) {
		return Pattern{Base: source}, nil
	}
	dir, rest := pattern.Split(pattern.Literal("", source))
	if dir == "" {
		dir = "."
	}
	p := Pattern{Base: filepath.Clean(filepath.FromSlash(dir))}
	if rest == "" { // what it escapes
		return p, nil
	}
	var err error
	if p.files, err = pattern.CompileBoth(rest); err != nil {
		return p, fault.Wrap(fault.Usage, err, "%s is neither a path nor a pattern", source)
	}
	return p, nil
}

// Plain reports whether p is a path, and all files below it if it is a directory.
func (p Pattern) Plain() bool { return p.files == nil }

// rel returns a path below Base relative to it, with slashes.
func (p Pattern) rel(path string) string {
	rel, err := filepath.Rel(p.Base, path)
	if err != nil || rel == "." {
		return ""
	}
	return filepath.ToSlash(rel)
}

// Matches reports whether a file belongs to p, by its path relative to Base, with slashes.
func (p Pattern) Matches(rel string) bool { return p.files == nil || p.files.Match(rel) }

// Reaches reports whether files below a directory may belong to p, by its path relative to Base, with slashes.
func (p Pattern) Reaches(rel string) bool { return p.files == nil || p.files.Reaches(rel) }

// names reports whether p has the name of a hidden directory in it.
func (p Pattern) names(hidden string) bool {
	if p.files == nil {
		return false
	}
	for _, b := range p.files.Branches() {
		for part := range strings.SplitSeq(b.String(), "/") {
			if one, err := pattern.Compile(part); strings.HasPrefix(part, ".") && err == nil && one.Match(hidden) {
				return true
			}
		}
	}
	return false
}
