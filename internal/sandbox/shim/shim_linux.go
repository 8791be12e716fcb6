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
		report("read the plan", errno)
		return
	}
	if len(words) == 0 { // the parent is gone, or does not want the command anymore
		return
	}
	p, ok := decode(words)
	if !ok {
		report("read the plan", syscall.EINVAL)
		return
	}
	p.execute()
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

// execute makes the calls. It returns when one of them failed.
func (p *Plan) execute() {
	var results [Results + 1]uint64
	value := func(s *step, i int) uintptr {
		switch v := s.args[i]; s.kinds[i] {
		case address:
			return uintptr(unsafe.Pointer(&p.data[v]))
		case result:
			return uintptr(results[v])
		default:
			return uintptr(v)
		}
	}
	for i := 0; i < len(p.steps); i++ {
		s := &p.steps[i]
		if s.store {
			v := uint64(value(s, 0))
			for k := range uint64(s.size) {
				p.data[s.number+k] = byte(v >> (8 * k))
			}
			continue
		}
		if i == len(p.steps)-1 {
			write([]byte{executing})
		}
		r, errno := call(s, value)
		switch {
		case errno == 0 || s.tolerates(errno):
			results[s.result] = uint64(r) // that of index 0 is not read
		case s.skip > 0:
			i += int(s.skip) - 1
		default:
			report(string(p.data[s.label[0]:s.label[0]+s.label[1]]), errno)
			return
		}
	}
}

func call(s *step, value func(*step, int) uintptr) (uintptr, syscall.Errno) {
	for {
		r, _, errno := syscall.RawSyscall6(uintptr(s.number), value(s, 0), value(s, 1), value(s, 2), value(s, 3), value(s, 4), value(s, 5))
		if errno != syscall.EINTR {
			return r, errno
		}
	}
}

func (s *step) tolerates(errno syscall.Errno) bool {
	for _, t := range s.tolerated {
		if t != 0 && syscall.Errno(t) == errno {
			return true
		}
	}
	return false
}

// report reports that a step failed.
func report(label string, errno syscall.Errno) {
	b := []byte{failed, byte(errno), byte(errno >> 8), byte(errno >> 16), byte(errno >> 24)}
	write(append(b, label...))
}

func write(b []byte) {
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, ReportFD, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
}
