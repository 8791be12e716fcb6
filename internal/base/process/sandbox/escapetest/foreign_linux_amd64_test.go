package escapetest

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// foreignAttempts make calls by the numbers of other architectures, which a filter may mistake for harmless ones.
var foreignAttempts = map[string]attempt{
	"calls_of_32_bits":  {gain: "calls that the filter mistakes", alone: true, try: func(c *child) { c.interrupt(20, 0, 0, "getpid") }},
	"socket_of_32_bits": {gain: "a socket", alone: true, try: func(c *child) { c.interrupt(359, unix.AF_INET, unix.SOCK_DGRAM, "a socket") }},
	"ptrace_of_32_bits": {gain: "another process", alone: true, control: "it would be traced", try: func(c *child) { c.interrupt(26, 16, uint32(c.Victim), "traced") }},
	"calls_of_x32": {gain: "calls that the filter mistakes", alone: true, control: "not in every kernel", try: func(c *child) {
		if r, _, errno := unix.Syscall(0x40000000|unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0); errno == 0 {
			c.gained("a socket %d", r)
		}
	}},
	"ports": {gain: "the machine", control: "for root only", try: func(c *child) {
		if os.Geteuid() == 0 {
			c.call("iopl", unix.SYS_IOPL, 3)
			c.call("ioperm", unix.SYS_IOPERM, 0x80, 1, 1)
		}
	}},
}

// interrupt makes a call of i386, which 64-bit programs can, too.
func (c *child) interrupt(number, first, second uint32, what string) {
	code, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_32BIT)
	if err != nil {
		c.note(err)
		return
	}
	at := uint32(uintptr(unsafe.Pointer(&code[0]))) + 2048
	program := []byte{0x53, 0xb8} // push rbx; mov eax, number
	program = append(program, word(number)...)
	program = append(append(program, 0xbb), word(first)...)                   // mov ebx
	program = append(append(program, 0xb9), word(second)...)                  // mov ecx
	program = append(program, 0xba, 0, 0, 0, 0, 0xbe, 0, 0, 0, 0, 0xcd, 0x80) // mov edx, esi; int 0x80
	program = append(append(program, 0x89, 0x04, 0x25), word(at)...)          // mov [at], eax
	program = append(program, 0x5b, 0xc3)                                     // pop rbx; ret
	copy(code, program)
	entry := &code[0]
	f := &entry
	(*(*func())(unsafe.Pointer(&f)))()
	if r := *(*int32)(unsafe.Pointer(&code[2048])); r >= 0 {
		c.gained("%s: %d", what, r)
	}
}

func word(n uint32) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} }
