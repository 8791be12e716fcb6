// Package identity tells processes of the program apart, and finds out whether one lives.
package identity

import (
	"cmp"
	"fmt"
	"os"
)

// Process is the identity of a process.
type Process struct {
	Host    string // its name, for people
	Boot    string // one start of the system, on which LiveClock is one clock for all; empty if unknown
	Machine string // where PID means this process: one start of a system and, in it, one space of process ids
	PID     int
	Born    string // when the process was started, in the system's own terms; empty if that is unknown
}

func (p Process) String() string { return fmt.Sprintf("process %d on %s", p.PID, p.Host) }

// Clock returns a name of the live clock of p's system: that of its start or, if that is
// unknown, of the machine. The clock of a machine that was started again shows less time than
// has passed since its last start, so a watch from then lasts too long and never too short.
func (p Process) Clock() string { return cmp.Or(p.Boot, p.Machine) }

// Self returns this process.
func Self() *Process {
	host, err := os.Hostname()
	if err != nil {
		host = "this computer"
	}
	boot, space := machine()
	p := &Process{Host: host, Boot: boot, Machine: host + "/" + boot + "/" + space, PID: os.Getpid()}
	p.Born, _ = Born(p.PID)
	return p
}

// Life is what is known of whether a process lives.
type Life int

// What is known.
const (
	Unknown Life = iota
	Living
	Dead
)

// Life returns what a process of a machine can see of p's.
func (p Process) Life(machine string) Life {
	if p.Machine != machine {
		return Unknown
	}
	born, alive := Born(p.PID)
	switch {
	case !alive:
		return Dead
	case born == "" || p.Born == "":
		return Unknown // it may be another process with the same id
	case born != p.Born:
		return Dead
	}
	return Living
}

// ThisBoot returns the id of this start of the system.
func ThisBoot() string {
	boot, _ := machine()
	return boot
}
