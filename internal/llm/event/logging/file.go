package logging

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"loki/internal/base/file/atomicfile"
)

// File is the log file, opened by the first line. Its methods may be called from several goroutines.
type File struct {
	path     string
	fallback io.Writer
	filter   atomic.Pointer[Filter] // what is kept

	mu     sync.Mutex
	out    io.Writer // nil before the first line and after Close
	closer io.Closer // nil if out is the fallback
	closed bool
}

// SetLevel replaces the level and the filter, see [Options]. The error says that the filter cannot be read; then it is as if
// there were none.
func (f *File) SetLevel(level, filter string) error {
	least := ParseLevel(level)
	parsed, err := ParseFilter(filter, least)
	if err != nil || least == LevelOff {
		parsed = Filter{rest: least}
	}
	f.filter.Store(&parsed)
	return err
}

// write appends one line in a single call, so that lines of several processes do not
// mix. A file that cannot be opened is replaced by the fallback, for good.
func (f *File) write(line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	if f.out == nil {
		opened, err := atomicfile.OpenAppend(f.path)
		if err != nil {
			f.out = f.fallback
			fmt.Fprintf(f.fallback, "logging here: %v\n", err)
		} else {
			f.out, f.closer = opened, opened
		}
	}
	_, err := f.out.Write(line)
	return err
}

// Close closes the file. Records after it are dropped.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed, f.out = true, nil
	if f.closer == nil {
		return nil
	}
	err := f.closer.Close()
	f.closer = nil
	return err
}
