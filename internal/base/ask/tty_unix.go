//go:build !windows

package ask

import (
	"os"

	"golang.org/x/sys/unix"
)

// ansiWithoutTerm is true if a terminal without the variable TERM understands escape
// sequences.
const ansiWithoutTerm = false

func openTTY() (in, out *os.File, err error) {
	in, err = os.OpenFile("/dev/tty", os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	out, err = os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		_ = in.Close()
		return nil, nil, err
	}
	return in, out, nil
}

// waiting reports whether something was typed that can be read now.
func waiting(tty *os.File) bool {
	fd := int(tty.Fd())
	if fd >= unix.FD_SETSIZE {
		return false
	}
	var files unix.FdSet
	files.Set(fd)
	n, err := unix.Select(fd+1, &files, nil, nil, &unix.Timeval{})
	return n > 0 && err == nil
}

func enableANSI(*os.File) {}
