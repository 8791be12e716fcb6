package workspace

import (
	"os"
	"path/filepath"
	"strings"
)

// Root returns the root of the workspace of a directory: the nearest directory upward that has .git, short of the home directory
// and what is above it, else the directory itself. Dir is absolute; the result has no links. An empty home is none.
func Root(dir, home string) string {
	dir = ResolvePath(dir)
	if home != "" {
		home = ResolvePath(home)
	}
	for at := dir; at != home; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return dir
}

// ResolvePath returns a path without links, or as it is if it cannot be resolved.
func ResolvePath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// below returns path as seen from dir, with slashes; ok is false if it is not dir or in it.
func below(dir, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// chain returns the directories from root down to dir, both included.
func chain(root, dir string) []string {
	rel, ok := below(root, dir)
	dirs := []string{root}
	if !ok || rel == "." {
		return dirs
	}
	at := root
	for part := range strings.SplitSeq(rel, "/") {
		at = filepath.Join(at, part)
		dirs = append(dirs, at)
	}
	return dirs
}
