// Package fsys reads and changes files on behalf of a model.
//
// The root is the directory that relative paths start from. A path is inside if it is, as
// written, the root or below it. It escapes if it is inside but a symbolic link on the way
// leads out. The real path has no symbolic links; for a file that does not exist it is
// where the file would be created.
//
// Files are opened at their real path, and a link that is put there meanwhile is not followed. Changes are atomic: a new file
// is written beside the old one and takes its place. Changes of the same file in this process do not overlap.
package fsys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// maxLinks is how many symbolic links a path may have.
const maxLinks = 255

// Root is where paths start. It may be used from several goroutines.
type Root struct {
	Dir   string // empty means that of this process
	Home  string // what ~ means; empty if that is not known
	Locks *Locks // nil means that changes may overlap

	// Files has the files of an editor, which may differ from those on the disk; nil for none.
	Files Files

	// Judged reports whether a path may lead to a real one; nil means to any.
	Judged func(real string) bool
}

// Files are the files of an editor. Its methods may be called from several goroutines.
type Files interface {
	// ReadText returns the text of a file. Where that fails the file on the disk counts.
	ReadText(ctx context.Context, path string) (string, error)
	// WriteText writes the text of a file. Ok is false if the editor does not write files.
	WriteText(ctx context.Context, path, text string) (ok bool, err error)
}

// Path is a resolved path.
type Path struct {
	Shown   string // as it was written
	Abs     string // absolute and clean
	Real    string // absolute, without symbolic links
	Inside  bool   // is in the root as it is written, or really
	Escapes bool   // is inside as it is written, and really is not
}

// EscapeError reports that a path to be changed leads out of the root.
type EscapeError struct{ Path, Real, Root string }

func (e *EscapeError) Error() string {
	return fmt.Sprintf("%s leads through a symbolic link to %s, which is outside of %s. If you mean that file, use its real path", e.Path, e.Real, e.Root)
}

// Resolve returns where a path leads. The file need not exist.
func (r Root) Resolve(path string) (Path, error) {
	return r.resolve(path, true)
}

// ResolveEntry is like Resolve, but does not follow a symbolic link at the very end.
func (r Root) ResolveEntry(path string) (Path, error) {
	return r.resolve(path, false)
}

func (r Root) resolve(path string, follow bool) (Path, error) {
	p := Path{Shown: path}
	dir, err := r.dir()
	if err != nil {
		return p, err
	}
	if p.Abs, err = r.abs(dir, path); err != nil {
		return p, err
	}
	if p.Real, err = realPath(p.Abs, follow); err != nil {
		return p, err
	}
	if r.Judged != nil {
		if end, err := realPath(p.Real, true); err != nil || !r.Judged(end) {
			return p, fmt.Errorf("%s leads to another file than when the call was judged, as another program changes it; make the call again", path)
		}
	}
	realDir, err := realPath(dir, true)
	if err != nil {
		return p, err
	}
	written := Below(p.Abs, dir) || Below(p.Abs, realDir)
	really := Below(p.Real, realDir)
	p.Inside, p.Escapes = written || really, written && !really
	return p, nil
}

func (r Root) dir() (string, error) { return filepath.Abs(r.Dir) }

func (r Root) abs(dir, path string) (string, error) {
	switch {
	case strings.ContainsRune(path, 0):
		return "", errors.New("a path cannot hold a NUL character")
	case strings.TrimSpace(path) == "":
		return "", errors.New("the path is empty")
	}
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		if r.Home == "" {
			return "", fmt.Errorf("%s: the home directory is not known", path)
		}
		return filepath.Join(r.Home, rest), nil
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	return filepath.Join(dir, path), nil
}

// Below reports whether a clean absolute path is dir or below it.
func Below(path, dir string) bool {
	if runtime.GOOS == "windows" {
		path, dir = strings.ToLower(path), strings.ToLower(dir)
	}
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(dir[len(dir)-1]))
}

// realPath is [Follow] of a clean path.
func realPath(path string, follow bool) (string, error) {
	real, _, err := Follow(path, follow)
	return real, err
}

// Follow returns the absolute path with the symbolic links of its existing part resolved, and the absolute names by which it
// passes links. A name that does not exist stays as it is, and .. after it goes up from it. last says whether a link at the
// very end is resolved, too. After an error the path leads to the top of the file system.
func Follow(path string, last bool) (real string, passed []string, err error) {
	top := filepath.VolumeName(path) + string(filepath.Separator)
	real = top
	rest := splitPath(path[len(top)-1:])
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(real, name)
		info, err := os.Lstat(next)
		if name == "." || name == ".." || err != nil || info.Mode()&fs.ModeSymlink == 0 || !last && len(rest) == 0 {
			real = next // an unreadable path fails when it is used
			continue
		}
		target, err := os.Readlink(next)
		if links++; err == nil && links > maxLinks {
			err = fmt.Errorf("%s: too many symbolic links", path)
		}
		if err != nil {
			return top, passed, err
		}
		passed = append(passed, filepath.Join(append([]string{next}, rest...)...))
		if filepath.IsAbs(target) {
			real = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(real)-1:]
		}
		rest = append(splitPath(target), rest...)
	}
	return real, passed, nil
}

// splitPath returns the names in a path without a volume.
func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
}

// writable returns an error for a path that escapes.
func (r Root) writable(p Path) error {
	if p.Escapes {
		dir, err := r.dir()
		if err != nil {
			return err
		}
		return &EscapeError{Path: p.Shown, Real: p.Real, Root: dir}
	}
	return nil
}

// Writable resolves the path of a file to change, see [Root.Resolve]. The error for a
// path that escapes is an *EscapeError.
func (r Root) Writable(path string) (Path, error) {
	p, err := r.Resolve(path)
	if err != nil {
		return p, err
	}
	return p, r.writable(p)
}

// Note returns a note for a model that the path escapes; empty if it does not.
func (p Path) Note() string {
	if !p.Escapes {
		return ""
	}
	return fmt.Sprintf("%s leads through a symbolic link to %s", p.Shown, p.Real)
}
