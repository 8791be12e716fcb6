package webhook

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"loki/internal/base/file/atomicfile"
)

// restedDir is the directory, below the desk's, of the files of runs of which there is nothing to send any
// more, unless they resume.
const restedDir = "sent"

// files are the book of a desk that has the runs for itself: a file for each.
type files struct {
	dir string
	mu  sync.Mutex // held while a file is read and written
}

// list returns the ids of the runs that have a file in a directory, "" or restedDir.
func (b *files) list(dir string) ([]string, error) {
	names := atomicfile.Glob(filepath.Join(b.dir, dir), "*.json")
	for i, name := range names {
		names[i] = strings.TrimSuffix(filepath.Base(name), ".json")
	}
	return names, nil
}

// path returns the path of the file of a run.
func (b *files) path(dir, run string) string { return filepath.Join(b.dir, dir, run+".json") }

// waits reports whether there may be something to send of a run.
func (b *files) waits(run string) bool {
	_, err := os.Stat(b.path("", run))
	return err == nil
}

func (b *files) read(run string) (file, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open(run)
}

func (b *files) open(run string) (f file, err error) {
	data, err := os.ReadFile(b.path("", run))
	if errors.Is(err, fs.ErrNotExist) {
		data, err = os.ReadFile(b.path(restedDir, run))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	return f, err
}

func (b *files) change(run string, change func(*file)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, err := b.open(run)
	if err != nil {
		return err
	}
	if change(&f); len(f.Hooks) == 0 {
		return nil
	}
	data, err := json.Marshal(f)
	if err == nil {
		err = atomicfile.Write(b.path("", run), data, atomicfile.Options{Mode: atomicfile.Private})
	}
	if err == nil {
		_ = os.Remove(b.path(restedDir, run)) // the other one counts
	}
	return err
}

// rest puts the file of a run aside of which all is sent. If that fails, the next process does it.
func (b *files) rest(run string) {
	if err := os.MkdirAll(filepath.Join(b.dir, restedDir), 0o700); err == nil {
		_ = os.Rename(b.path("", run), b.path(restedDir, run))
	}
}

// remove removes the file of a run whose record is gone. If it stays, the next process removes it.
func (b *files) remove(run string) {
	_ = os.Remove(b.path("", run))
	_ = os.Remove(b.path(restedDir, run))
}
