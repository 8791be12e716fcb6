//go:build !windows

package ask

import "os"

// ansiWithoutTerm says whether a terminal without the variable TERM can be drawn on.
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

func enableANSI(*os.File) {}
