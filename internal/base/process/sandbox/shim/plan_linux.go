package shim

import (
	"syscall"
	"unsafe"
)

// Variable is the variable of the environment that makes a program with this package a shim, if it is 1.
const Variable = "LOKI_SANDBOX_SHIM"

// Descriptors of the shim. Those from FirstFD on are for the plan.
const (
	PlanFD   = 3
	ReportFD = 4
	FirstFD  = 5
)

// Environ returns the environment of a shim.
func Environ() []string { return []string{Variable + "=1"} }

// Arg is an argument of a system call: a number, the address of data, or the result of an earlier call.
type Arg struct {
	kind  uint8
	value uint64
}

const (
	number  uint8 = iota
	address       // value is an offset in the data
	result        // value is a register
	kinds
)

// Number returns an argument that is n.
func Number(n uint64) Arg { return Arg{number, n} }

// Result is where the result of a call is kept for later ones: 1 to [Results]. 0 is nowhere.
type Result uint8

// Results is how many results a plan can keep.
const Results = 16

// Arg returns the result as an argument of a later call.
func (r Result) Arg() Arg { return Arg{result, uint64(r)} }

// Call is a system call of a plan.
type Call struct {
	Label  string // what it does, for the message that it failed: "restrict files"
	Number uintptr
	Args   []Arg // at most six
	Result Result
	// Tolerated are errors that count as success; at most four.
	Tolerated []syscall.Errno
	// Skip is how many of the next steps are left out if the call fails, which is no failure of the plan then.
	Skip int
}

// Plan is a list of system calls. The zero Plan is empty.
type Plan struct {
	steps []step
	data  []byte
}

// step is a step of a plan as it is written: a call, the storing of an argument in the data, or a comparison with it.
type step struct {
	store     bool
	fork      bool
	compare   bool
	result    Result
	size      uint8  // of what is stored: 4 or 8 bytes
	skip      uint16 // one more than Call.Skip; 0 is none
	number    uint64 // of the call, or where to store or compare
	label     [2]uint32
	tolerated [4]uint16
	kinds     [6]uint8
	args      [6]uint64
}

// Add adds a call.
func (p *Plan) Add(c Call) {
	if p.steps == nil { // room for most plans, as growing them would be the most expensive part of making one
		p.steps = make([]step, 0, 600)
		p.data = append(make([]byte, 0, 24<<10), p.data...)
	}
	s := step{result: c.Result, number: uint64(c.Number)}
	if c.Skip > 0 {
		s.skip = uint16(c.Skip) + 1
	}
	s.label = [2]uint32{uint32(len(p.data)), uint32(len(c.Label))}
	p.data = append(p.data, c.Label...)
	for i, errno := range c.Tolerated {
		s.tolerated[i] = uint16(errno)
	}
	for i, a := range c.Args {
		s.kinds[i], s.args[i] = a.kind, a.value
	}
	p.steps = append(p.steps, s)
}

// Fork has the rest of the plan carried out by a new process, which the parent of the shim gets as a child: the second one of the process
// namespace that the shim made before. The first one, also a child of that parent, only reaps; with it all others end. The shim
// ends when the command is executed.
func (p *Plan) Fork(label string) {
	p.Add(Call{Label: label})
	p.steps[len(p.steps)-1].fork = true
}

// Store has value, of size bytes (4 or 8), written to the data at an offset from at, which [Plan.Bytes] returned.
func (p *Plan) Store(at Arg, offset, size int, value Arg) {
	s := step{store: true, size: uint8(size), number: at.value + uint64(offset)}
	s.kinds[0], s.args[0] = value.kind, value.value
	p.steps = append(p.steps, s)
}

// Compare has the plan fail with ESTALE if the 8 bytes of the data at an offset from at, which [Plan.Bytes] returned, are not want.
func (p *Plan) Compare(label string, at Arg, offset int, want uint64) {
	p.Add(Call{Label: label, Args: []Arg{Number(want)}})
	s := &p.steps[len(p.steps)-1]
	s.compare, s.size, s.number = true, 8, at.value+uint64(offset)
}

// Bytes adds data, aligned to eight bytes, and returns its address.
func (p *Plan) Bytes(b []byte) Arg {
	for len(p.data)%8 != 0 {
		p.data = append(p.data, 0)
	}
	p.data = append(p.data, b...)
	return Arg{address, uint64(len(p.data) - len(b))}
}

// Text adds a text that ends with a zero, and returns its address.
func (p *Plan) Text(s string) Arg {
	p.data = append(append(p.data, s...), 0)
	return Arg{address, uint64(len(p.data) - len(s) - 1)}
}

// Texts adds a list of texts as execve takes it, and returns its address.
func (p *Plan) Texts(list []string) Arg {
	pointers := p.Bytes(make([]byte, 8*(len(list)+1)))
	for i, s := range list {
		p.Store(pointers, 8*i, 8, p.Text(s))
	}
	return pointers
}

// The plan is written as 8-byte words in the order of the machine: magic, length in bytes, number of steps, bytes of
// data, then the steps of stepWords words each, and the data.
const (
	magic     = 0x316e616c70696b6f
	headWords = 4
	stepWords = 11
	maxPlan   = 64 << 20
)

// Encode returns the plan as the shim reads it.
func (p *Plan) Encode() []byte {
	words := make([]uint64, headWords, headWords+stepWords*len(p.steps)+(len(p.data)+7)/8)
	for _, s := range p.steps {
		kind := uint64(s.result)<<8 | uint64(s.size)<<16 | uint64(s.skip)<<32
		if s.store {
			kind |= 1
		}
		if s.fork {
			kind |= 2
		}
		if s.compare {
			kind |= 4
		}
		words = append(words, kind, s.number, uint64(s.label[0])<<32|uint64(s.label[1]), 0, 0)
		for i, errno := range s.tolerated {
			words[len(words)-2] |= uint64(errno) << (16 * i)
		}
		for i, k := range s.kinds {
			words[len(words)-1] |= uint64(k) << (8 * i)
		}
		words = append(words, s.args[:]...)
	}
	length := 8*len(words) + len(p.data)
	copy(words, []uint64{magic, uint64(length), uint64(len(p.steps)), uint64(len(p.data))})
	encoded := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*cap(words))
	copy(encoded[8*len(words):], p.data)
	return encoded[:length]
}

// decode reads what Encode wrote: words holds its beginning in full words, and the data behind them. It reports false for
// anything that would lead the shim out of its own memory.
func decode(words []uint64) (p Plan, ok bool) {
	if len(words) < headWords || words[0] != magic {
		return p, false
	}
	length, steps, size := words[1], words[2], words[3]
	if length > maxPlan || steps > maxPlan || size > maxPlan || length != 8*(headWords+stepWords*steps)+size || uint64(len(words)) != (length+7)/8 {
		return p, false
	}
	begin := headWords + stepWords*steps
	if size > 0 {
		p.data = unsafe.Slice((*byte)(unsafe.Pointer(&words[begin])), size)
	}
	p.steps = make([]step, steps)
	for i := range p.steps {
		w := words[headWords+stepWords*i:]
		s := &p.steps[i]
		s.fork, s.compare = w[0]&2 != 0, w[0]&4 != 0
		s.store, s.result, s.size, s.skip = w[0]&1 != 0, Result(w[0]>>8), uint8(w[0]>>16), uint16(w[0]>>32)
		s.number = w[1]
		s.label = [2]uint32{uint32(w[2] >> 32), uint32(w[2])}
		for k := range s.tolerated {
			s.tolerated[k] = uint16(w[3] >> (16 * k))
		}
		for k := range s.kinds {
			s.kinds[k], s.args[k] = uint8(w[4]>>(8*k)), w[5+k]
		}
		if !s.valid(size) {
			return Plan{}, false
		}
	}
	return p, true
}

// valid reports whether a step stays within so many bytes of data and the registers.
func (s *step) valid(size uint64) bool {
	if uint64(s.label[0])+uint64(s.label[1]) > size || s.result > Results {
		return false
	}
	if (s.store || s.compare) && (s.size != 4 && s.size != 8 || size < 8 || s.number > size-uint64(s.size)) {
		return false
	}
	for i, k := range s.kinds {
		switch {
		case k >= kinds, k == address && s.args[i] >= size, k == result && (s.args[i] == 0 || s.args[i] > Results):
			return false
		}
	}
	return true
}

// What the shim reports: nothing if it ended early, that it forks, executing before the last call, and failed with the error as four
// bytes and the label after it. A shim that forked adds the ids of the two processes, in four bytes each.
const (
	forks     = 'k'
	executing = 'x'
	failed    = 'f'
	processes = 'p'
)

// Report is what a shim reported until its report ended.
type Report struct {
	Executing bool          // all calls but the last one succeeded
	Label     string        // of the call that failed; empty if none did
	Errno     syscall.Errno // of that call
	// First and Command are the ids of the first process of the namespace and of the command, 0 if the shim did not fork.
	First, Command int
}

// ParseReport reads a report.
func ParseReport(b []byte) Report {
	var r Report
	number := func(b []byte) int {
		return int(int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24))
	}
	if len(b) > 0 && b[0] == forks {
		b = b[1:]
		if at := len(b) - 9; at >= 0 && b[at] == processes {
			r.First, r.Command = number(b[at+1:]), number(b[at+5:])
			b = b[:at]
		}
	}
	if len(b) > 0 && b[0] == executing {
		r.Executing, b = true, b[1:]
	}
	if len(b) > 5 && b[0] == failed {
		r.Errno = syscall.Errno(number(b[1:]))
		r.Label = string(b[5:])
	}
	return r
}
