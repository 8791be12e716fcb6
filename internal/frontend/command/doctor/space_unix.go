//go:build !windows

package doctor

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes the user can still write on the file system of a directory.
func freeSpace(dir string) (int64, bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}

// writable returns why the user cannot write in a directory.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
