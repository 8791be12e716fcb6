package completion

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Files returns the files and directories whose paths begin with prefix, or only the
// directories. A leading tilde means the home directory and stays. Names that begin with a dot are
// listed only if prefix has the dot.
func Files(prefix string, onlyDirs bool) []Candidate {
	dir, base := "", prefix
	for i := len(prefix) - 1; i >= 0; i-- {
		if os.IsPathSeparator(prefix[i]) {
			dir, base = prefix[:i+1], prefix[i+1:]
			break
		}
	}
	entries, err := os.ReadDir(directory(dir))
	if err != nil {
		return nil
	}
	var found []Candidate
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || name[0] == '.' && !strings.HasPrefix(base, ".") {
			continue
		}
		isDir := isDirectory(directory(dir), e)
		if onlyDirs && !isDir {
			continue
		}
		if isDir {
			name += "/"
		}
		found = append(found, Candidate{Value: dir + name, File: true})
	}
	return found
}

// directory returns the directory that dir, as it was typed, means.
func directory(dir string) string {
	if dir == "" {
		return "."
	}
	if dir[0] == '~' && len(dir) > 1 && os.IsPathSeparator(dir[1]) {
		if home, err := os.UserHomeDir(); err == nil {
			return home + dir[1:]
		}
	}
	return dir
}

// isDirectory follows links.
func isDirectory(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	return err == nil && info.IsDir()
}
