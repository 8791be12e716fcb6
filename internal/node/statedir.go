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

	"loki/internal/atomicfile"
)

// stateDir is a directory for the states that are too large for an environment. It is made
// for the first of them, readable by its owner only, because a state may hold secrets.
//
// A process that is killed leaves its directory behind. The next one that makes its own, or
// ends a run, removes it: it has the id of the process in its name, and a file that the process
// keeps locked. The zero stateDir is ready to use.
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
	if errors.Is(err, fs.ErrNotExist) {    // a cleaner of temporary files was faster
		if dir, err = d.replace(dir); err == nil {
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

// open returns the directory, and makes it if there is none.
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
	lock, err := atomicfile.OpenLocked(context.Background(), filepath.Join(path, stateDirLock))
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(path))
	}
	d.path, d.lock = path, lock
	return path, nil
}

// replace returns another directory in place of one that is gone.
func (d *stateDir) replace(gone string) (string, error) {
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

// removeDeadStates removes the user's own directories below dir whose processes are gone.
// Processes of other containers, which are not visible here, hold their locks.
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
		if free, err := atomicfile.TryLock(lock); err == nil && free {
			_ = os.RemoveAll(path)
		}
		_ = lock.Close()
	}
}

// processLives reports whether a process with this id exists or may exist.
func processLives(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	err = p.Signal(syscall.Signal(0))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}
