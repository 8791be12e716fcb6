package shim

import (
	"syscall"
	"unsafe"
)

// init makes the process a shim if it was started as one; see the package.
func init() {
	if v, _ := syscall.Getenv(Variable); v != "1" {
		return
	}
	run()
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, exitStatus, 0, 0)
}

// exitStatus is that of a shim that did not execute its command.
const exitStatus = 126

// run reads the plan and carries it out. It returns only if the command could not be executed.
func run() {
	words, errno := readPlan()
	if errno != 0 {
		unread(errno)
		return
	}
	if len(words) == 0 { // the parent is gone, or does not want the command anymore
		return
	}
	p, ok := decode(words)
	if !ok {
		unread(syscall.EINVAL)
		return
	}
	p.execute()
}

// unread reports that there is no plan.
func unread(errno syscall.Errno) {
	const label = "read the plan"
	p := Plan{data: []byte(label)}
	p.report(&step{label: [2]uint32{0, uint32(len(label))}}, errno)
}

// readPlan reads the plan from its descriptor. It returns nil if that ends before.
func readPlan() ([]uint64, syscall.Errno) {
	var head [headWords]uint64
	if n, errno := readFull(unsafe.Pointer(&head), unsafe.Sizeof(head)); n == 0 || errno != 0 {
		return nil, errno
	}
	length := head[1]
	if head[0] != magic || length > maxPlan || length < 8*headWords {
		return nil, syscall.EINVAL
	}
	words := make([]uint64, (length+7)/8)
	copy(words, head[:])
	if length > 8*headWords {
		rest := uintptr(length - 8*headWords)
		if n, errno := readFull(unsafe.Pointer(&words[headWords]), rest); errno != 0 || n != rest {
			return nil, errno
		}
	}
	return words, 0
}

// readFull reads size bytes; fewer only at the end.
func readFull(p unsafe.Pointer, size uintptr) (n uintptr, errno syscall.Errno) {
	for n < size {
		got, _, errno := syscall.RawSyscall(syscall.SYS_READ, PlanFD, uintptr(unsafe.Add(p, n)), size-n)
		switch {
		case errno == syscall.EINTR:
		case errno != 0:
			return n, errno
		case got == 0:
			return n, 0
		default:
			n += got
		}
	}
	return n, 0
}

// execute makes the calls. It returns when one of them failed. A process that forked has no runtime anymore: the functions
// from here on neither grow their stack nor allocate.
//
//go:norace
//go:nosplit
func (p *Plan) execute() {
	var results [Results + 1]uint64
	var ids [1 + 2*4]byte
	for i := 0; i < len(p.steps); i++ {
		s := &p.steps[i]
		switch {
		case s.store:
			v := uint64(p.value(s, 0, &results))
			for k := range uint64(s.size) {
				p.data[s.number+k] = byte(v >> (8 * k))
			}
			continue
		case s.compare:
			var v uint64
			for k := range uint64(s.size) {
				v |= uint64(p.data[s.number+k]) << (8 * k)
			}
			if v != uint64(p.value(s, 0, &results)) {
				p.report(s, syscall.ESTALE)
				return
			}
			continue
		case s.fork:
			write(forks)
			first, errno := fork(0)
			if first == 0 && errno == 0 {
				reap()
			}
			command := uintptr(0)
			if errno == 0 {
				command, errno = fork(syscall.CLONE_VFORK)
			}
			if errno != 0 {
				p.report(s, errno)
				return
			}
			if command == 0 {
				continue
			}
			ids[0] = processes
			for k := range 4 {
				ids[1+k], ids[5+k] = byte(first>>(8*k)), byte(command>>(8*k))
			}
			_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, ReportFD, uintptr(unsafe.Pointer(&ids[0])), uintptr(len(ids)))
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		case i == len(p.steps)-1:
			write(executing)
		}
		r, errno := p.call(s, &results)
		switch {
		case errno == 0 || s.tolerates(errno):
			results[s.result] = uint64(r) // that of index 0 is not read
		case s.skip > 0:
			i += int(s.skip) - 1
		default:
			p.report(s, errno)
			return
		}
	}
}

// value returns an argument of a step.
//
//go:norace
//go:nosplit
func (p *Plan) value(s *step, i int, results *[Results + 1]uint64) uintptr {
	switch v := s.args[i]; s.kinds[i] {
	case address:
		return uintptr(unsafe.Pointer(&p.data[v]))
	case result:
		return uintptr(results[v])
	default:
		return uintptr(v)
	}
}

//go:norace
//go:nosplit
func (p *Plan) call(s *step, results *[Results + 1]uint64) (uintptr, syscall.Errno) {
	var args [6]uintptr
	for i := range args {
		args[i] = p.value(s, i, results)
	}
	for {
		r, _, errno := syscall.RawSyscall6(uintptr(s.number), args[0], args[1], args[2], args[3], args[4], args[5])
		if errno != syscall.EINTR {
			return r, errno
		}
	}
}

//go:norace
//go:nosplit
func (s *step) tolerates(errno syscall.Errno) bool {
	for _, t := range s.tolerated {
		if t != 0 && syscall.Errno(t) == errno {
			return true
		}
	}
	return false
}

// fork makes a process that the parent of this one gets as a child. It returns 0 in that process.
//
//go:norace
//go:nosplit
func fork(flags uintptr) (uintptr, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, flags|syscall.CLONE_PARENT|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	return pid, errno
}

// reap is all that the first process of a namespace does. It ends with the thread that started the shim, and holds nothing open.
//
//go:norace
//go:nosplit
func reap() {
	const child = uint64(1) << (syscall.SIGCHLD - 1)
	all, ended := ^uint64(0), child
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, 0, uintptr(unsafe.Pointer(&all)), 0, 8, 0, 0)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	_, _, _ = syscall.RawSyscall(closeRange, 0, 1<<32-1, 0)
	for {
		for {
			pid, _, errno := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), 0, syscall.WNOHANG, 0, 0, 0)
			if pid == 0 || errno != 0 {
				break
			}
		}
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&ended)), 0, 0, 8, 0, 0)
	}
}

// closeRange is the number of the system call close_range, which syscall does not have. It is the same on all systems.
const closeRange = 436

// report reports that a step failed.
//
//go:norace
//go:nosplit
func (p *Plan) report(s *step, errno syscall.Errno) {
	head := [5]byte{failed, byte(errno), byte(errno >> 8), byte(errno >> 16), byte(errno >> 24)}
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, ReportFD, uintptr(unsafe.Pointer(&head[0])), uintptr(len(head)))
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, ReportFD, uintptr(unsafe.Pointer(&p.data[s.label[0]])), uintptr(s.label[1]))
}

// write writes a byte of the report.
//
//go:norace
//go:nosplit
func write(b byte) {
	text := [1]byte{b}
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, ReportFD, uintptr(unsafe.Pointer(&text[0])), 1)
}
