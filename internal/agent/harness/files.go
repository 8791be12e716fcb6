package harness

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is a file that a turn changed, for cassettes.
type File struct {
	Path    string      `json:"path"` // from the workspace, with slashes
	Data    []byte      `json:"data,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	Removed bool        `json:"removed,omitempty"`
	Large   bool        `json:"large,omitempty"` // it is larger than a cassette takes
}

// Limits of what is kept of files, in bytes, and how many files are looked at.
const (
	maxFile  = 1 << 20
	maxFiles = 16 << 20
	maxSeen  = 100_000
)

// snapshot has the digests of the files of a workspace, by their paths.
type snapshot map[string]string

// look returns the files in dir. What version control and package managers keep is left out.
func look(dir string) snapshot {
	s := make(snapshot)
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what cannot be read has not changed
		switch {
		case err != nil:
			return nil //nolint:nilerr // likewise
		case d.IsDir() && slices.Contains([]string{".git", ".hg", ".jj", "node_modules", ".venv"}, d.Name()):
			return filepath.SkipDir
		case len(s) >= maxSeen:
			return filepath.SkipAll
		case !d.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err == nil {
			s[filepath.ToSlash(rel)] = digest(path, d)
		}
		return nil
	})
	return s
}

// digest returns a text that changes with a file.
func digest(path string, d fs.DirEntry) string {
	info, err := d.Info()
	if err != nil {
		return ""
	}
	if info.Size() > maxFile {
		return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x %o", sha256.Sum256(data), info.Mode().Perm())
}

// changedFiles returns the files in dir that are not as they were, in the order of their paths.
func (s snapshot) changedFiles(dir string) []File {
	var files []File
	now, total := look(dir), 0
	for path, sum := range now {
		if s[path] == sum {
			continue
		}
		full := filepath.Join(dir, filepath.FromSlash(path))
		f := File{Path: path, Large: true}
		if info, err := os.Stat(full); err == nil && info.Size() <= maxFile && total+int(info.Size()) <= maxFiles {
			if data, err := os.ReadFile(full); err == nil {
				f.Data, f.Mode, f.Large = data, info.Mode().Perm(), false
				total += len(data)
			}
		}
		files = append(files, f)
	}
	for path := range s {
		if _, ok := now[path]; !ok {
			files = append(files, File{Path: path, Removed: true})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// restore makes the files in dir what a turn on record made them.
func restore(dir string, files []File) error {
	if len(files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range files {
		path := filepath.FromSlash(f.Path)
		switch {
		case f.Large || !filepath.IsLocal(path):
			continue
		case f.Removed:
			if err := root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(path, f.Data, f.Mode); err != nil {
			return err
		}
	}
	return nil
}
