package filestore

import (
	"os"
	"runtime"
	"time"
)

// rename is os.Rename. On Windows a file that someone is reading cannot be replaced,
// so it is tried for a while.
func rename(from, to string) error {
	err := os.Rename(from, to)
	for wait := time.Millisecond; err != nil && runtime.GOOS == "windows" && wait < time.Second; wait *= 2 {
		time.Sleep(wait)
		err = os.Rename(from, to)
	}
	return err
}
