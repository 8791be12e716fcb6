package fsys

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// Modes of new files and directories, before the umask.
const (
	fileMode = 0o666
	dirMode  = 0o777
)

// Change says what a change did.
type Change struct {
	Path    Path
	Old     []byte // the former contents; nil if the file is new or was not read
	Created bool   // the file is new
	Written int    // bytes of the new contents
	Note    string // what became of the style of the old contents, see [Style.Keep]
}

// Write replaces the contents of a file with data. It creates the file, and the
// directories above it, if they do not exist. An existing file keeps its mode; of a
// symbolic link the target is changed. The style of an existing text is kept.
func (r Root) Write(ctx context.Context, path, text string) (Change, error) {
	return r.change(ctx, path, func(c *Change, info fs.FileInfo) ([]byte, error) {
		if info != nil {
			text, c.Note = c.Path.Style().Keep(text)
		}
		return []byte(text), nil
	})
}

// Style returns the style of the text at p, the zero value if there is none.
func (p Path) Style() Style {
	const enough = 64 << 10 // bytes that show it
	f, err := OpenReal(p.Real)
	if err != nil {
		return Style{}
	}
	defer f.Close()
	begin, err := io.ReadAll(io.LimitReader(f, enough))
	if err != nil || !IsText(begin) && !StyleOf(begin).Wide {
		return Style{}
	}
	return StyleOf(begin)
}

// Edit replaces the contents of an existing file of at most limit bytes with the result
// of edit. An error of edit leaves the file as it is. It is also an error if another
// program changes the file meanwhile. With create, a file that does not exist has no contents.
func (r Root) Edit(ctx context.Context, path string, limit int64, create bool, edit func(old []byte) ([]byte, error)) (Change, error) {
	return r.change(ctx, path, func(c *Change, info fs.FileInfo) ([]byte, error) {
		if info == nil && create {
			return edit(nil)
		}
		if info == nil {
			return nil, c.Path.notFound(path)
		}
		var err error
		if c.Old, _, err = Text(c.Path, limit); err != nil {
			return nil, err
		}
		if text, ok := r.EditorText(ctx, c.Path, limit); ok {
			c.Old = []byte(text)
		}
		return edit(c.Old)
	})
}

// change runs the steps that are common to all changes of a file.
func (r Root) change(ctx context.Context, path string, edit func(c *Change, info fs.FileInfo) ([]byte, error)) (Change, error) {
	p, err := r.Writable(path)
	c := Change{Path: p}
	if err != nil {
		return c, err
	}
	unlock, err := r.Locks.Lock(ctx, p.Real)
	if err != nil {
		return c, err
	}
	defer unlock()
	at, err := r.open(p.Real)
	if err != nil {
		return c, Describe(path, err)
	}
	defer at.Close()
	info, err := at.root.Lstat(at.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.Created, info = true, nil
	case err != nil:
		return c, Describe(path, err)
	default:
		if err := regular(path, info); err != nil {
			return c, err
		}
	}
	data, err := edit(&c, info)
	if err != nil {
		return c, err
	}
	c.Written = len(data)
	if c.Old != nil && bytes.Equal(c.Old, data) {
		return c, nil
	}
	if r.Files != nil && utf8.Valid(data) {
		if ok, err := r.Files.WriteText(ctx, p.Real, string(data)); ok || err != nil {
			return c, err
		}
	}
	if err := at.replace(info, data); err != nil {
		return c, Describe(path, err)
	}
	return c, nil
}

// location is a file below an open directory.
type location struct {
	root *os.Root
	name string // relative to root
	real string // absolute, without symbolic links
}

// open opens the root's directory or, for a real path outside of it, the top of the
// file system.
func (r Root) open(real string) (location, error) {
	dir, err := r.dir()
	if err != nil {
		return location{}, err
	}
	if dir, err = realPath(dir, true); err != nil {
		return location{}, err
	}
	if !Below(real, dir) {
		dir = filepath.VolumeName(real) + string(filepath.Separator)
	}
	name, err := filepath.Rel(dir, real)
	if err != nil {
		return location{}, err
	}
	root, err := os.OpenRoot(dir)
	return location{root, name, real}, err
}

func (l location) Close() error { return l.root.Close() }

// parent opens the directory of the file, and fails if a symbolic link leads there by now.
func (l location) parent() (*os.Root, error) {
	there, err := OpenReal(filepath.Dir(l.real))
	if err != nil {
		return nil, err
	}
	defer there.Close()
	root, err := l.root.OpenRoot(filepath.Dir(l.name))
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil {
		var info fs.FileInfo
		if info, err = there.Stat(); err == nil && !os.SameFile(info, opened) {
			err = errLink
		}
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// replace writes a new file and puts it in the place of the old one. info describes the
// old file; nil means that there was none.
func (l location) replace(info fs.FileInfo, data []byte) (err error) {
	if info == nil {
		if err := l.root.MkdirAll(filepath.Dir(l.name), dirMode); err != nil {
			return err
		}
	}
	dir, err := l.parent()
	if err != nil {
		return err
	}
	defer dir.Close()
	name, temp := filepath.Base(l.name), ".loki-"+rand.Text()+".tmp"
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.Remove(temp))
		}
	}()
	if err := l.fill(f, info, data); err != nil {
		return err
	}
	now, statErr := dir.Lstat(name)
	switch {
	case info == nil && statErr == nil:
		return errors.New("another program created the file meanwhile; nothing was written")
	case info != nil && (statErr != nil || !os.SameFile(info, now) || !info.ModTime().Equal(now.ModTime()) || info.Size() != now.Size()):
		return errors.New("another program changed the file meanwhile; nothing was written. Read it again")
	}
	return dir.Rename(temp, name)
}

// fill writes the new file and closes it.
func (l location) fill(f *os.File, old fs.FileInfo, data []byte) error {
	_, err := f.Write(data)
	if err == nil && old != nil {
		keepOwner(f, old)
		err = f.Chmod(old.Mode().Perm() | old.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Mkdir creates a directory and those above it; created is false if it exists already.
func (r Root) Mkdir(ctx context.Context, path string) (p Path, created bool, err error) {
	if p, err = r.Writable(path); err != nil {
		return p, false, err
	}
	if err := ctx.Err(); err != nil {
		return p, false, err
	}
	at, err := r.open(p.Real)
	if err != nil {
		return p, false, Describe(path, err)
	}
	defer at.Close()
	if info, err := at.root.Stat(at.name); err == nil {
		if !info.IsDir() {
			return p, false, fmt.Errorf("%s is a file", path)
		}
		return p, false, nil
	}
	if err := at.root.MkdirAll(at.name, dirMode); err != nil {
		return p, false, Describe(path, err)
	}
	made, err := OpenReal(p.Real)
	if err != nil {
		return p, false, Describe(path, err)
	}
	return p, true, made.Close()
}
