package fsys

import (
	"errors"
	"os"
)

// errLink is the error of a real path in whose way a link is by now.
var errLink = errors.New("another program put a link in its way; make the call again")

// openChecked opens a path and checks afterwards that no link led to another file. One that is put there and taken away again in between
// is not noticed.
func openChecked(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: path, Err: errors.New("is not a file")} // it might block
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	real, err := realPath(path, true)
	if err == nil && real != path {
		err = errLink
	}
	var opened, there os.FileInfo
	if err == nil {
		opened, err = f.Stat()
	}
	if err == nil {
		there, err = os.Lstat(path)
	}
	if err == nil && !os.SameFile(opened, there) {
		err = errLink
	}
	if err != nil {
		f.Close()
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}
