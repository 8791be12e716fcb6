//go:build unix

package atomicfile

import (
	"os"
	"strconv"
	"syscall"
)

// Owner returns the owner and the group of the file at path as chown takes them, "" if there is none.
func Owner(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.Itoa(int(s.Uid)) + ":" + strconv.Itoa(int(s.Gid))
}

// keepOwner gives f the owner and the group of the file at path, if there is one, or at least its group.
func keepOwner(f *os.File, path string) {
	if owner := Owner(path); owner == "" || owner == Owner(f.Name()) {
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	s := info.Sys().(*syscall.Stat_t)
	if f.Chown(int(s.Uid), int(s.Gid)) != nil {
		_ = f.Chown(-1, int(s.Gid)) // see the package comment
	}
}
