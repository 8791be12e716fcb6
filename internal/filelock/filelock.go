// Package filelock locks open files against other processes, and against other open
// files of the same one.
//
// The locks are advisory: whoever does not ask for them is not held up. They end with
// the process at the latest. On a file system without locks there is none, and nobody
// waits.
package filelock

import (
	"context"
	"fmt"
	"os"
	"time"
)

// How long to wait between two attempts, growing from the first to the second.
const (
	shortest = 100 * time.Microsecond
	longest  = 2 * time.Millisecond
)

// Lock waits until it has the exclusive lock of f. Closing f releases it. The file must
// be open for writing. The error is the context's, or that of the system.
//
// The systems' own waiting cannot be cancelled, so this tries again and again.
func Lock(ctx context.Context, f *os.File) error {
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

// Open opens the file at path for appending, making it if need be, and locks it.
func Open(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := Lock(ctx, f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
