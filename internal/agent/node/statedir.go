package node

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"loki/internal/base/process/tempdir"
)

// stateDir is a directory for the states that are too large for an environment. It is made
// for the first of them, readable by its owner only, because a state may hold secrets. The zero stateDir is ready to use.
type stateDir struct {
	mu   sync.Mutex
	path string // empty before the first state
}

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
	var err error
	d.path, err = tempdir.Make("", "state")
	return d.path, err
}

// replace returns another directory in place of one that is gone.
func (d *stateDir) replace(gone string) (string, error) {
	d.mu.Lock()
	if d.path == gone {
		d.path = ""
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
	err := os.RemoveAll(d.path)
	d.path = ""
	return err
}
