package secretfile

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"loki/internal/filelock"
)

// Lock waits until no other process, and nobody else in this one, holds the lock on the
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
		f, err := filelock.Open(ctx, path)
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
// nobody else will ever find.
func stillThere(f *os.File, path string) bool {
	locked, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(locked, named)
}

// release removes the file while it is locked, so that it is nobody else's yet. Windows
// does not remove open files.
func release(f *os.File, path string) {
	if runtime.GOOS != "windows" {
		_ = os.Remove(path)
	}
	_ = f.Close()
}
