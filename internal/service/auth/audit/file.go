package audit

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"

	"loki/internal/base/file/atomicfile"
)

// File returns a sink that appends to the file at path, which is readable by its owner only. Before the file gets longer
// than most bytes, it becomes path.1, the one before it path.2 and so on; keep is how many of these stay. The file is
// opened anew for each batch of lines, so it may be renamed or removed at any time.
func File(path string, most int64, keep int) Sink { return &file{path, most, keep} }

type file struct {
	path string
	most int64
	keep int
}

// Write implements [Sink].
func (f *file) Write(p []byte) (n int, err error) {
	for n < len(p) {
		part, err := f.fittingLines(p[n:])
		if err == nil {
			err = atomicfile.Append(f.path, part)
		}
		if err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// Close implements [Sink].
func (f *file) Close() error { return nil }

// fittingLines returns the first lines, as many as fit into the file, at least one. If not even one does, a new file begins.
func (f *file) fittingLines(lines []byte) ([]byte, error) {
	var size int64
	if info, err := os.Stat(f.path); err == nil {
		size = info.Size()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	first := bytes.IndexByte(lines, '\n') + 1
	if size > 0 && size+int64(first) > f.most {
		if err := f.rotate(); err != nil {
			return nil, err
		}
		size = 0
	}
	if size+int64(len(lines)) <= f.most {
		return lines, nil
	}
	room := max(first, int(f.most-size))
	return lines[:bytes.LastIndexByte(lines[:min(room, len(lines))], '\n')+1], nil
}

// rotate makes room for a new file.
func (f *file) rotate() error {
	full := func(n int) string { return f.path + "." + strconv.Itoa(n) }
	for n := f.keep + 1; os.Remove(full(n)) == nil; n++ { // since fewer are kept than before
	}
	if f.keep == 0 {
		return os.Remove(f.path)
	}
	for n := f.keep - 1; n > 0; n-- {
		if err := os.Rename(full(n), full(n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(f.path, full(1))
}

// Stderr returns a sink that writes to a stream that stays open, such as standard error.
func Stderr(w *os.File) Sink { return stream{w} }

type stream struct{ *os.File }

// Close leaves the stream open.
func (stream) Close() error { return nil }
