//go:build linux || darwin

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"loki/internal/base/file/atomicfile"
)

// temp is a temporary directory of one child. It is locked while this process lives, so that a later one recognizes
// and removes what this one left behind when it was killed.
type temp struct {
	path string
	lock *os.File // the directory itself
}

// newTemp makes a temporary directory. All are in one directory of the user, whose name is short, as paths of sockets are.
func newTemp() (*temp, error) {
	root, err := tempRoot()
	if err != nil {
		return nil, err
	}
	sweepOnce(root)
	for range 10 { // another process may take it for one that was left behind, before it is locked
		path, err := os.MkdirTemp(root, "")
		if err != nil {
			return nil, err
		}
		lock, err := lockDirectory(path)
		switch {
		case err == nil && exists(path):
			return &temp{path: path, lock: lock}, nil
		case err == nil:
			lock.Close()
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK):
			return nil, errors.Join(err, os.Remove(path))
		}
	}
	return nil, fmt.Errorf("%s: directories in it vanish", root)
}

// tempRoot returns the directory for temporary directories. It belongs to the user and is closed to others. Another user may have made one
// with the usual name, so that of this user has another one.
func tempRoot() (string, error) {
	base, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return "", err
	}
	usual := filepath.Join(base, tempPrefix+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(usual, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	others := atomicfile.Glob(base, filepath.Base(usual)+"-*")
	for _, root := range append([]string{usual}, others...) {
		if isPrivate(root) {
			return root, nil
		}
	}
	return os.MkdirTemp(base, filepath.Base(usual)+"-")
}

// isPrivate reports whether a path is a directory of this user that is closed to others.
func isPrivate(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}

// swept is done when this process has removed what others left behind.
var swept sync.Once

func sweepOnce(root string) { swept.Do(func() { sweep(root) }) }

// sweep removes the directories that are not locked: their process is gone.
func sweep(root string) {
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		if lock, err := lockDirectory(path); err == nil {
			removeAll(path)
			lock.Close()
		}
	}
}

// lockDirectory locks a directory, or fails if it is locked.
func lockDirectory(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (t *temp) remove() {
	removeAll(t.path)
	t.lock.Close()
}

// removeAll removes a tree, also one with directories that cannot be written.
func removeAll(path string) {
	if os.RemoveAll(path) == nil {
		return
	}
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(path) // the next process tries again
}
