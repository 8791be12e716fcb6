package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Glob returns the paths below a directory that match a pattern, which has slashes, as [fs.Glob] has it. Unlike in
// [filepath.Glob], the characters of the directory's own path mean themselves. A directory that cannot be read has none.
func Glob(dir, pattern string) []string {
	names, _ := fs.Glob(os.DirFS(dir), pattern) // patterns are constants without mistakes
	for i, name := range names {
		names[i] = filepath.Join(dir, filepath.FromSlash(name))
	}
	return names
}
