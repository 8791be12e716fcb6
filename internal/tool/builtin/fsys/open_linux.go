package fsys

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// OpenReal opens a real path for reading, and fails if a symbolic link was put there meanwhile. A named pipe does not block.
func OpenReal(path string) (*os.File, error) {
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK, Resolve: unix.RESOLVE_NO_SYMLINKS})
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // an old kernel, or a container that forbids it
			return openChecked(path)
		case errors.Is(err, unix.ELOOP):
			return nil, &os.PathError{Op: "open", Path: path, Err: errLink}
		default:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}
