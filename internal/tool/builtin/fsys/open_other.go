//go:build !linux

package fsys

import "os"

// OpenReal opens a real path for reading, and fails if a symbolic link was put there meanwhile.
func OpenReal(path string) (*os.File, error) { return openChecked(path) }
