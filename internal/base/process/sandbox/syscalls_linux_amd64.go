package sandbox

import "golang.org/x/sys/unix"

// auditArch is how filters see this architecture.
const auditArch = unix.AUDIT_ARCH_X86_64

// Calls that only some architectures have, see the lists for all.
var (
	ownDenied = []uint32{
		unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE,
		unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE, unix.SYS_MODIFY_LDT,
	}
	ownAttributes = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
	ownModes      = []modeCall{{unix.SYS_CHMOD, 1, false}, {unix.SYS_MKNOD, 1, false}, {unix.SYS_CREAT, 1, false}, {unix.SYS_OPEN, 2, true}}
)

// foreignCalls is the first number of calls of the other ABI of the architecture, which has numbers of its own.
const foreignCalls = 0x40000000
