//go:build !windows

package ask

import "os"

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

func enableANSI(*os.File) {}
