package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// The byte that is locked lies far behind the end of any file: locks on Windows keep
// others from reading what is locked.
const lockedByteHigh = 0x40000000

// try takes the lock if it is free.
func try(f *os.File) (locked bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{OffsetHigh: lockedByteHigh})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	case errors.Is(err, windows.ERROR_NOT_SUPPORTED), errors.Is(err, windows.ERROR_INVALID_FUNCTION):
		return true, nil // the file system has no locks
	}
	return false, err
}
