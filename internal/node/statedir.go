package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"loki/internal/filelock"
)

// stateDir is a directory for the states that are too large for an environment. It is
// made when the first of them is, readable by its owner only, as state may hold secrets.
//
// A process that is killed leaves its directory behind. The next one that makes its own, or
// ends a run, removes it: it is named after the process, and holds a file that the process has locked
// as long as it lives. The zero stateDir is ready to use.
type stateDir struct {
	mu   sync.Mutex
	path string // empty before the first state
	lock *os.File
}

// How directories of states begin, and the file in them that is locked.
const (
	stateDirPrefix = "loki-state-"
	stateDirLock   = "lock"
)

// write puts a state into a new file.
func (d *stateDir) write(state []byte) (path string, err error) {
	dir, err := d.open()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "*.json") // readable by its owner only
	if errors.Is(err, fs.ErrNotExist) {    // something has tidied up while the run took long
		if dir, err = d.again(dir); err == nil {
			f, err = os.CreateTemp(dir, "*.json")
		}
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(state)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// open returns the directory, and makes it if need be.
func (d *stateDir) open() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.path != "" {
		return d.path, nil
	}
	removeDeadStates(os.TempDir())
	path, err := os.MkdirTemp("", fmt.Sprintf("%s%d-*", stateDirPrefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	lock, err := filelock.Open(context.Background(), filepath.Join(path, stateDirLock))
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(path))
	}
	d.path, d.lock = path, lock
	return path, nil
}

// again returns another directory in place of one that is gone.
func (d *stateDir) again(gone string) (string, error) {
	d.mu.Lock()
	if d.path == gone {
		_ = d.lock.Close()
		d.path, d.lock = "", nil
	}
	d.mu.Unlock()
	return d.open()
}

// close removes the directory with what is in it.
func (d *stateDir) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.path == "" {
		return nil
	}
	err := errors.Join(d.lock.Close(), os.RemoveAll(d.path))
	d.path, d.lock = "", nil
	return err
}

// removeDeadStates removes the directories below dir whose processes are gone, as far as
// they are the user's own. Processes of other containers, which cannot be seen, hold their
// locks.
func removeDeadStates(dir string) {
	found, _ := filepath.Glob(filepath.Join(dir, stateDirPrefix+"*"))
	for _, path := range found {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), stateDirPrefix), "-")
		if pid, err := strconv.Atoi(id); err != nil || processLives(pid) {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(path, stateDirLock), os.O_RDWR, 0)
		if err != nil {
			continue // another user's, or just being made in another container
		}
		if free, err := filelock.TryLock(lock); err == nil && free {
			_ = os.RemoveAll(path)
		}
		_ = lock.Close()
	}
}

// processLives reports whether there is a process with this id, or may be.
func processLives(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	err = p.Signal(syscall.Signal(0))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}
