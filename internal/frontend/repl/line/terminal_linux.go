package line

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios = unix.TCGETS
	ioctlSetTermios = unix.TCSETS
	ioctlPending    = unix.TIOCINQ
	disabledKey     = 0
)
