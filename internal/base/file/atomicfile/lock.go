package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// How long to wait between two attempts, growing from the first to the second.
const (
	shortest = 100 * time.Microsecond
	longest  = 2 * time.Millisecond
)

// LockFile waits until it has the exclusive lock of f. Closing f releases it. The file must
// be open for writing. The error is the context's, or that of the system.
//
// The systems' own waiting cannot be canceled, so this tries again and again.
func LockFile(ctx context.Context, f *os.File) error {
	var timer *time.Timer
	for wait := shortest; ; wait = min(2*wait, longest) {
		locked, err := try(f)
		if err != nil {
			return fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		if locked {
			return nil
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for another process to release %s: %w", f.Name(), context.Cause(ctx))
		}
	}
}

// TryLock takes the exclusive lock of f if it is free, and reports whether it did.
// Closing f releases it.
func TryLock(f *os.File) (bool, error) { return try(f) }

// OpenLocked opens the file at path for appending, makes it if it does not exist, and locks it.
func OpenLocked(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := LockFile(ctx, f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Lock waits until no other process, and no other goroutine of this one, holds the lock on the
// file called path. The file is made for that purpose, with its directory. Where the
// system allows it unlock removes the file, so that none is left beside what it guards.
// The error is that of ctx if it ends first, or of the file system.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	for {
		f, err := OpenLocked(ctx, path)
		if err != nil {
			return nil, err
		}
		if stillThere(f, path) {
			return func() { release(f, path) }, nil
		}
		_ = f.Close()
	}
}

// stillThere reports whether path is still the file f. The one who held the lock before
// may have removed it between opening and locking; what is locked then is a file that
// no other process will ever find.
func stillThere(f *os.File, path string) bool {
	locked, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(locked, named)
}

// release removes the file while it is locked, before another process can lock it. Windows
// does not remove open files.
func release(f *os.File, path string) {
	if runtime.GOOS != "windows" {
		_ = os.Remove(path)
	}
	_ = f.Close()
}

// HeldElseRemoved reports whether a process holds the lock of the file at path. It removes a file that is not locked: its process
// ended early. One that is not there is not held.
func HeldElseRemoved(path string) (held bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	free, err := TryLock(f)
	_ = f.Close() // only the lock mattered
	if free && err == nil {
		_ = os.Remove(path)
	}
	return !free, err
}
