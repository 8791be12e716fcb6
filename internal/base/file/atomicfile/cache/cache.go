// Package cache keeps results in files for a time.
//
// An entry is one file that is never incomplete, so that processes may share a cache. A cache
// may be deleted at any time: a missing, expired or damaged entry is a miss.
package cache

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"loki/internal/base/file/atomicfile"
)

// Files is a cache in the directory Dir, which is made when it is needed. Its methods
// may be called from several goroutines and processes.
type Files struct {
	Dir string
	Now func() time.Time // nil means time.Now
}

func (f Files) now() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}

func (f Files) path(key string) string { return filepath.Join(f.Dir, key) }

// Get returns the entry called key, if there is one that has not expired. A key is
// made of letters and digits.
func (f Files) Get(key string) (data []byte, ok bool) {
	text, err := os.ReadFile(f.path(key))
	if err != nil {
		return nil, false
	}
	expires, data, ok := bytes.Cut(text, []byte("\n"))
	unix, err := strconv.ParseInt(string(expires), 10, 64)
	if !ok || err != nil {
		return nil, false
	}
	if !f.now().Before(time.Unix(unix, 0)) {
		_ = os.Remove(f.path(key)) // so that the directory does not grow for ever
		return nil, false
	}
	return data, true
}

// Put keeps data under key until ttl is over. An entry that cannot be written is
// dropped without an error.
func (f Files) Put(key string, data []byte, ttl time.Duration) {
	text := strconv.AppendInt(nil, f.now().Add(ttl).Unix(), 10)
	text = append(append(text, '\n'), data...)
	_ = atomicfile.Write(f.path(key), text, atomicfile.Options{Mode: atomicfile.Private, NoSync: true})
}
