package line

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios = unix.TIOCGETA
	ioctlSetTermios = unix.TIOCSETA
	ioctlPending    = 0x4004667f // FIONREAD
	disabledKey     = 0xff
)
