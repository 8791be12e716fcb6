//go:build unix

package sandbox

import (
	"io/fs"
	"syscall"
)

// Names returns how many names, hard links, a file has. It is 1 where that is not known, and for directories.
func Names(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() {
		return int(stat.Nlink)
	}
	return 1
}
