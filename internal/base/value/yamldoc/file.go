package yamldoc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

var (
	errNotRegular = errors.New("not a regular file")
	errTooLarge   = fmt.Errorf("larger than %d MiB", MaxSize>>20)
)

// ReadFile reads a file for [Parse]. A device, a pipe and another thing that is not a regular file,
// which may have no end or none to wait for, is refused before it is opened, and so is what is larger
// than [MaxSize]. The error is that of [os.ReadFile] or a [*fs.PathError] like it.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil || info.IsDir():
		return os.ReadFile(path) // fails in the usual words
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	case info.Size() > MaxSize:
		return nil, &fs.PathError{Op: "read", Path: path, Err: errTooLarge}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxSize+1)) // it may have grown, and files of some systems have no size
	if err == nil && len(text) > MaxSize {
		err = &fs.PathError{Op: "read", Path: path, Err: errTooLarge}
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}
