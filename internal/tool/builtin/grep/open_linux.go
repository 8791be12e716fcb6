package grep

import (
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// noOpenat2 says that the system has no openat2, or forbids it.
var noOpenat2 atomic.Bool

// open opens a file below the root, which is a real path: a symbolic link was put there meanwhile, and is not followed. A named pipe
// that took the place of a file does not block.
func open(path string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK
	if !noOpenat2.Load() {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err != unix.ENOSYS && err != unix.EPERM {
			return fd, err
		}
		noOpenat2.Store(true)
	}
	return syscall.Open(path, flags|syscall.O_NOFOLLOW, 0)
}
