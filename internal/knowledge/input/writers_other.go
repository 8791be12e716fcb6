//go:build !linux

package input

import "os"

// HasWriter reports whether f is a pipe, into which a program in front of a pipeline may write.
func HasWriter(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}
