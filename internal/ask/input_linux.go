package ask

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropInput drops what was typed and not read yet.
func dropInput(in *os.File) { _ = unix.IoctlSetInt(int(in.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
