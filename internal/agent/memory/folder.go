package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"loki/internal/base/file/atomicfile"
)

// Folder has the files of facts in a directory of the file system. It reads a file again only after it has changed.
type Folder struct {
	Dir string

	mu    sync.Mutex
	known map[string]known // by path, guarded by mu
}

// factExt is the end of the names of files of facts.
const factExt = ".md"

// known is a file that was read.
type known struct {
	info fs.FileInfo
	fact Fact
	err  error
}

var _ Files = (*Folder)(nil)

func (d *Folder) join(path string) string { return filepath.Join(d.Dir, filepath.FromSlash(path)) }

// Lock implements [Files].
func (d *Folder) Lock(ctx context.Context) (unlock func(), err error) {
	return atomicfile.Lock(ctx, d.join(".lock"))
}

// Dirs implements [Files].
func (d *Folder) Dirs(_ context.Context, dir string) (names []string, err error) {
	entries, err := os.ReadDir(d.join(dir))
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return names, err
}

// Facts implements [Files].
func (d *Folder) Facts(_ context.Context, dir string, wrong func(error)) (facts []Fact, err error) {
	entries, err := os.ReadDir(d.join(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || filepath.Ext(e.Name()) != factExt {
			continue
		}
		if !e.Type().IsRegular() { // nothing outside is read, and no reader waits for a writer
			wrong(fmt.Errorf("%s is not a regular file", d.join(dir+"/"+e.Name())))
			continue
		}
		f, err := d.read(dir + "/" + e.Name())
		if errors.Is(err, fs.ErrNotExist) { // it was removed meanwhile
			continue
		}
		if err != nil {
			wrong(err)
			continue
		}
		facts = append(facts, f)
	}
	return facts, err
}

// read returns the fact in a file.
func (d *Folder) read(path string) (Fact, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, ok := d.known[path]
	if ok {
		info, err := os.Lstat(d.join(path))
		if err != nil {
			return Fact{}, err
		}
		if os.SameFile(k.info, info) && k.info.Size() == info.Size() && k.info.ModTime().Equal(info.ModTime()) {
			return k.fact, k.err
		}
	}
	f, err := os.Open(d.join(path))
	if err != nil {
		return Fact{}, err
	}
	defer f.Close()
	if k.info, err = f.Stat(); err != nil {
		return Fact{}, err
	}
	data := make([]byte, min(k.info.Size(), maxFile)+1)
	n, err := io.ReadFull(f, data)
	switch {
	case err == nil:
		k.fact, k.err = Fact{}, fmt.Errorf("%s has more than %d bytes", d.join(path), maxFile)
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return Fact{}, err
	default:
		k.fact, k.err = Decode(d.join(path), data[:n])
		k.fact.Path = path
	}
	if d.known == nil {
		d.known = make(map[string]known)
	}
	d.known[path] = k
	return k.fact, k.err
}

// Write implements [Files].
func (d *Folder) Write(_ context.Context, path string, data []byte) error {
	atomicfile.Sweep(filepath.Dir(d.join(path)), factExt) // of other facts, too: the names of new ones never come again
	return atomicfile.Write(d.join(path), data, atomicfile.Options{Mode: atomicfile.Private})
}

// Move implements [Files].
func (d *Folder) Move(_ context.Context, from, to string) error {
	return os.Rename(d.join(from), d.join(to))
}

// Remove implements [Files].
func (d *Folder) Remove(_ context.Context, path string) error {
	if err := os.Remove(d.join(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// NewStore returns a store of the facts in a directory of the file system.
func NewStore(dir string) *Store { return &Store{Files: &Folder{Dir: dir}, Dir: dir} }
