package sandbox

import "golang.org/x/sys/unix"

// auditArch is how filters see this architecture.
const auditArch = unix.AUDIT_ARCH_AARCH64

// Calls that only some architectures have, see the lists for all.
var (
	ownDenied     []uint32
	ownAttributes []uint32
	ownModes      []modeCall
)

// foreignCalls is the first number of calls of the other ABI of the architecture: there is none.
const foreignCalls = 1 << 31
