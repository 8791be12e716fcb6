package ask

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropInput drops what was typed and not read yet.
func dropInput(in *os.File) {
	const read = 1 // FREAD
	_ = unix.IoctlSetPointerInt(int(in.Fd()), unix.TIOCFLUSH, read)
}
