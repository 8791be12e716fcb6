//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// deniedCalls fail with EPERM at every level below [Full]: they look into other processes, lead out of the namespaces,
// change the machine, or open parts of the kernel that no command of a user needs.
var deniedCalls = []uint32{
	// other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	// namespaces and mounts
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	// keys, files by handle, watching
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE,
	// machinery of the kernel
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_SYSLOG,
	// the machine
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_NFSSERVCTL,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_ADJTIMEX,
}

// absentCalls fail with ENOSYS, so that programs use what they used before these came: clone3 has its flags in memory, where a
// filter does not see them, and so has openat2 its mode.
var absentCalls = []uint32{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_OPENAT2}

// modeCall is a call that gives a file its mode.
type modeCall struct {
	number uint32
	mode   uint32 // which argument has it
	opens  bool   // the one before has flags, which say whether the mode counts
}

// modeCalls fail with EPERM if they would give any user who starts a file the rights of its owner or group. That would outlive
// the box.
var modeCalls = []modeCall{
	{unix.SYS_FCHMOD, 1, false}, {unix.SYS_FCHMODAT, 2, false}, {unix.SYS_FCHMODAT2, 2, false}, {unix.SYS_MKNODAT, 2, false}, {unix.SYS_OPENAT, 3, true},
}

// attributeCalls change modes, owners, times and attributes of files, which Landlock does not hold. They fail with
// EPERM where no mount holds them either.
var attributeCalls = []uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
}

// sharedCalls make and use what processes share by a key, and reach those of others where there is no namespace for them.
var sharedCalls = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// lastCall is the last call that this program knows. Later ones fail with ENOSYS.
const lastCall = unix.SYS_RSEQ_SLICE_YIELD

// fileFlags are the commands of ioctl that change attributes of files: FS_IOC_SETFLAGS of both sizes and FS_IOC_FSSETXATTR.
var fileFlags = []uint32{0x40086602, 0x40046602, 0x401c5820}

// Offsets in what a filter sees of a call.
const (
	seesNumber = 0
	seesArch   = 4
	seesArgs   = 16 // eight bytes each; both architectures have the lower half first
)

// What a filter does with a call.
const (
	allow = unix.SECCOMP_RET_ALLOW
	kill  = unix.SECCOMP_RET_KILL_PROCESS
)

func fail(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// filter is a program of instructions for seccomp. The number of the call is loaded between its methods.
type filter []unix.SockFilter

func (f *filter) add(code uint16, k uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no})
}

func (f *filter) load(offset uint32) { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
func (f *filter) end(action uint32)  { f.add(unix.BPF_RET|unix.BPF_K, action, 0, 0) }

// calls ends calls with these numbers.
func (f *filter) calls(action uint32, numbers ...uint32) {
	for _, n := range numbers {
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, n, 0, 1)
		f.end(action)
	}
}

// when adds a part that only calls with this number reach, and that ends them or not.
func (f *filter) when(number uint32, part func(*filter)) {
	var inner filter
	part(&inner)
	inner.load(seesNumber)
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, number, 0, uint8(len(inner)))
	*f = append(*f, inner...)
}

// argument loads the lower half of an argument, from 0 on.
func (f *filter) argument(i uint32) { f.load(seesArgs + 8*i) }

// is ends the call if what is loaded is one of values.
func (f *filter) is(action uint32, values ...uint32) {
	for _, v := range values {
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, v, 0, 1)
		f.end(action)
	}
}

// has ends the call if what is loaded has one of the bits.
func (f *filter) has(action uint32, bits uint32) {
	f.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, bits, 0, 1)
	f.end(action)
}

// newFilter returns the filter of a child. With a network of its own it has all sockets that this holds, and else only pairs of
// AF_UNIX.
func newFilter(namespaces, network bool) filter {
	var f filter
	f.load(seesArch)
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, auditArch, 1, 0)
	f.end(kill)
	f.load(seesNumber)
	f.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, foreignCalls, 0, 1)
	f.end(kill)
	f.add(unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K, lastCall, 0, 1)
	f.end(fail(unix.ENOSYS))
	f.calls(fail(unix.EPERM), deniedCalls...)
	f.calls(fail(unix.EPERM), ownDenied...)
	f.calls(fail(unix.ENOSYS), absentCalls...)
	if !namespaces {
		f.calls(fail(unix.EPERM), attributeCalls...)
		f.calls(fail(unix.EPERM), ownAttributes...)
		f.calls(fail(unix.EPERM), sharedCalls...)
	}
	f.when(unix.SYS_CLONE, func(f *filter) {
		f.argument(0)
		f.has(fail(unix.EPERM), unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_NEWNET|unix.CLONE_NEWPID|unix.CLONE_NEWIPC|
			unix.CLONE_NEWUTS|unix.CLONE_NEWCGROUP)
	})
	for _, c := range slices.Concat(modeCalls, ownModes) {
		f.when(c.number, func(f *filter) {
			if c.opens {
				const skip = 3 // argument and has
				f.argument(c.mode - 1)
				f.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, 0, skip)
			}
			f.argument(c.mode)
			f.has(fail(unix.EPERM), unix.S_ISUID|unix.S_ISGID)
		})
	}
	f.when(unix.SYS_IOCTL, func(f *filter) {
		f.argument(1)
		f.is(fail(unix.EPERM), unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCCONS)
		if !namespaces {
			f.is(fail(unix.EPERM), fileFlags...)
		}
	})
	f.when(unix.SYS_PERSONALITY, func(f *filter) {
		f.argument(0)
		f.is(allow, 0, 0xffffffff)
		f.end(fail(unix.EPERM))
	})
	f.others()
	f.sockets(network)
	f.end(allow)
	return f
}

// others keeps the child from limits, priorities and processors of other processes.
func (f *filter) others() {
	f.when(unix.SYS_PRLIMIT64, func(f *filter) {
		f.argument(0)
		f.is(allow, 0)
		for _, half := range []uint32{0, 4} { // of the address of new limits
			f.load(seesArgs + 2*8 + half)
			f.has(fail(unix.EPERM), 0xffffffff)
		}
	})
	for call, i := range map[uint32]uint32{
		unix.SYS_SCHED_SETAFFINITY: 0, unix.SYS_SCHED_SETSCHEDULER: 0, unix.SYS_SCHED_SETPARAM: 0, unix.SYS_SCHED_SETATTR: 0, unix.SYS_IOPRIO_SET: 1,
	} {
		f.when(call, func(f *filter) {
			f.argument(i)
			f.is(allow, 0)
			f.end(fail(unix.EPERM))
		})
	}
	f.calls(fail(0), unix.SYS_SETSID) // seems to succeed: what leaves the session is not found when the tree is killed
	f.when(unix.SYS_SETPRIORITY, func(f *filter) {
		f.argument(0)
		f.has(fail(unix.EPERM), 0xffffffff) // anything but PRIO_PROCESS
		f.argument(1)
		f.is(allow, 0)
		f.end(fail(unix.EPERM))
	})
}

// sockets lets the child have pairs of AF_UNIX, and with a network of its own all sockets that this holds.
func (f *filter) sockets(network bool) {
	f.when(unix.SYS_SOCKET, func(f *filter) {
		f.argument(0)
		if network {
			f.is(allow, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6)
			f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.AF_NETLINK, 1, 0)
			f.end(fail(unix.EACCES))
			f.argument(2)
			f.is(allow, unix.NETLINK_ROUTE)
		}
		f.end(fail(unix.EACCES))
	})
	f.when(unix.SYS_SOCKETPAIR, func(f *filter) {
		f.argument(0)
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.AF_UNIX, 1, 0)
		f.end(fail(unix.EACCES))
		f.argument(1)
		f.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf, 0, 0) // without SOCK_CLOEXEC and SOCK_NONBLOCK
		f.is(allow, unix.SOCK_STREAM, unix.SOCK_SEQPACKET)     // one of packets could be connected again, to a server
		if network {
			f.is(allow, unix.SOCK_DGRAM)
		}
		f.end(fail(unix.EACCES))
	})
}

// bytes returns the program as the kernel takes it.
func (f filter) bytes() []byte {
	b := make([]byte, 0, 8*len(f))
	for _, i := range f {
		b = binary.NativeEndian.AppendUint16(b, i.Code)
		b = append(b, i.Jt, i.Jf)
		b = binary.NativeEndian.AppendUint32(b, i.K)
	}
	return b
}
