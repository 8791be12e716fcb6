//go:build !windows

package secretfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// busy reports whether an attempt to open the file failed because of another process.
func busy(error) bool { return false }

// release removes the file while it is locked, so that it is nobody else's yet.
func release(f *os.File, path string) {
	_ = os.Remove(path)
	_ = f.Close()
}
