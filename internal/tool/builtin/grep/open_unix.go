//go:build unix

package grep

import (
	"io"
	"os"
	"syscall"
)

// descriptor is an open file that the runtime does not watch. Opening small files takes
// half of the time of a search, and [os.Open] asks the system whether each can be
// polled, which no regular file can.
type descriptor int

func openFile(path string) (descriptor, error) {
	for {
		fd, err := open(path)
		switch err {
		case nil:
			return descriptor(fd), nil
		case syscall.EINTR:
		default:
			return 0, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// Read implements [io.Reader].
func (d descriptor) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(d), p)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Close implements [io.Closer].
func (d descriptor) Close() error { return syscall.Close(int(d)) }
