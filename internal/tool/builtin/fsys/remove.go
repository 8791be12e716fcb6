package fsys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"loki/internal/base/text"
)

// maxCounted bounds how many files below a directory are counted.
const maxCounted = 10_000

// Entry describes a path: a file, a symbolic link, or a directory and the number of
// entries below it.
type Entry struct {
	Path        Path
	Mode        fs.FileMode // type bits
	Size        int64       // bytes of a file
	Files, Dirs int         // below a directory, without itself
	Many        bool        // there are more entries below it than were counted
}

// String describes an entry for people.
func (e Entry) String() string {
	switch {
	case e.Mode&fs.ModeSymlink != 0:
		return "symbolic link " + e.Path.Shown
	case e.Mode.IsDir() && e.Files+e.Dirs == 0:
		return "empty directory " + e.Path.Shown
	case e.Mode.IsDir():
		more := ""
		if e.Many {
			more = "at least "
		}
		return fmt.Sprintf("directory %s with %s%s and %s", e.Path.Shown, more, text.Count(e.Files, "file"), text.Count(e.Dirs, "directory"))
	}
	return fmt.Sprintf("file %s of %s", e.Path.Shown, text.Count(int(e.Size), "byte"))
}

// Removable describes the entry to be removed. The root, the home directory and the
// directories above them are an error.
func (r Root) Removable(ctx context.Context, path string) (Entry, error) {
	p, err := r.ResolveEntry(path)
	e := Entry{Path: p}
	if err != nil {
		return e, err
	}
	if err := r.writable(p); err != nil {
		return e, err
	}
	info, err := os.Lstat(p.Real)
	if err != nil {
		return e, Describe(path, err)
	}
	e.Mode, e.Size = info.Mode(), info.Size()
	if !info.IsDir() {
		return e, nil
	}
	keeps := []string{r.Dir}
	if r.Home != "" {
		keeps = append(keeps, r.Home)
	}
	for _, keep := range keeps {
		real, err := filepath.Abs(keep)
		if err == nil {
			real, err = realPath(real, true)
		}
		if err != nil || Below(real, p.Real) {
			return e, fmt.Errorf("%s is not removed: the working directory or the home directory is in it", path)
		}
	}
	return e, e.count(ctx)
}

// count counts the entries below a directory.
func (e *Entry) count(ctx context.Context) error {
	err := filepath.WalkDir(e.Path.Real, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case path == e.Path.Real || d == nil:
			return nil
		case e.Files+e.Dirs >= maxCounted:
			e.Many = true
			return filepath.SkipAll
		case d.IsDir():
			e.Dirs++
		default:
			e.Files++
		}
		if err != nil && d.IsDir() {
			return filepath.SkipDir
		}
		return nil
	})
	return err
}

// Remove removes a file, a symbolic link (not its target), or a directory with everything
// in it, and returns what it removed. If it fails for a directory, a part of it may be
// gone.
func (r Root) Remove(ctx context.Context, path string) (Entry, error) {
	e, err := r.Removable(ctx, path)
	if err != nil {
		return e, err
	}
	unlock, err := r.Locks.Lock(ctx, e.Path.Real)
	if err != nil {
		return e, err
	}
	defer unlock()
	at, err := r.open(e.Path.Real)
	if err != nil {
		return e, Describe(path, err)
	}
	defer at.Close()
	dir, err := at.parent()
	if err != nil {
		return e, Describe(path, err)
	}
	defer dir.Close()
	name := filepath.Base(at.name)
	if !e.Mode.IsDir() {
		if err := dir.Remove(name); err != nil {
			return e, Describe(path, err)
		}
		return e, nil
	}
	if err := dir.RemoveAll(name); err != nil {
		err = Describe(path, err)
		if _, gone := dir.Lstat(name); !errors.Is(gone, fs.ErrNotExist) {
			return e, fmt.Errorf("%w. A part of the directory may be gone", err)
		}
		return e, err
	}
	return e, nil
}
