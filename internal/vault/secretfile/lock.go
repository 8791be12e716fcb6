package secretfile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Between two attempts to get a lock there is at first the least, then up to the most.
const (
	leastPause = 5 * time.Millisecond
	mostPause  = 100 * time.Millisecond
)

// Lock waits until no other process, and nobody else in this one, holds the lock on the
// file called path, which is made, with its directory, for that purpose and removed by
// unlock. The error is that of ctx if it ends first, or of the file system.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := attempt(path)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if f != nil {
			return func() { release(f, path) }, nil
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("waiting for another process to unlock %s: %w", path, ctx.Err())
		}
	}
}

// attempt returns the locked file, nil if somebody else has it.
func attempt(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if busy(err) {
			return nil, nil
		}
		return nil, err
	}
	locked, err := tryLock(f)
	if locked && stillThere(f, path) {
		return f, nil
	}
	_ = f.Close()
	return nil, err
}

// stillThere reports whether path is still the file f. The one who held the lock before
// may have removed it between opening and locking; what is locked then is a file that
// nobody else will ever find.
func stillThere(f *os.File, path string) bool {
	locked, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(locked, named)
}
