//go:build linux || darwin

package process

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// deathLimit is how long a killed process is waited for. Only one in an uninterruptible
// system call takes longer.
const deathLimit = time.Second

// family is the hold on a leader and its descendants. The leader's id means the leader, its group
// and its session until it is reaped.
type family struct {
	terminal bool
	pid      int
	first    int    // the first process of the namespace of the tree; 0 without one
	strays   []proc // descendants that kill found outside the group
}

// proc is one process as the system's table showed it.
type proc struct {
	pid, parent int
	start       int64 // when it started, in a unit of the system; distinguishes processes with the same id
	zombie      bool
}

func (f *family) adopt(p *os.Process) error {
	f.pid = p.Pid
	return nil
}

// enter makes a process of a namespace the leader. first is the one with which all that are in it end.
func (f *family) enter(first, command int) *os.Process {
	f.first, f.pid = first, command
	p, _ := os.FindProcess(command) // it is a child that has not been reaped
	return p
}

// endNamespace returns when no process of the namespace is left. The leader must be reaped before.
func (f *family) endNamespace() {
	_ = unix.Kill(f.first, unix.SIGKILL) // it may have been already
	retryInterrupted(func() error {
		_, err := unix.Wait4(f.first, nil, 0, nil)
		return err
	})
}

// kill kills the leader, its group, and those descendants that have left the group.
// The latter are looked up first: with its parent a process loses its descent.
func (f *family) kill() {
	if f.first != 0 {
		_ = unix.Kill(f.first, unix.SIGKILL)
		return
	}
	for _, d := range descendants(processes(), f.pid) {
		if pgid, err := unix.Getpgid(d.pid); f.terminal || err == nil && pgid != f.pid {
			f.strays = append(f.strays, d)
		}
	}
	f.killGroup()
	killAll(f.strays)
}

// terminate sends SIGTERM to the leader, its group, and its descendants outside the group.
func (f *family) terminate() {
	all := processes()
	outside := descendants(all, f.pid)
	if f.first != 0 { // what lost its parent belongs to the first process now
		outside = append(outside, descendants(all, f.first)...)
	}
	_ = unix.Kill(-f.pid, unix.SIGTERM) // fails only if all are dead
	for _, p := range outside {
		if group, err := unix.Getpgid(p.pid); err == nil && group != f.pid {
			_ = unix.Kill(p.pid, unix.SIGTERM)
		}
	}
}

// hangUp sends SIGHUP to a program of this process's session and to all that descend from it, and continues
// stopped ones. A program that leads a process group gets the signals with its group: what it starts
// at this moment is in none of the lists, but in the group. kill kills the survivors, except the program itself.
func hangUp(p *os.Process) (kill func(), err error) {
	victims := descendants(processes(), p.Pid)
	if pgid, groupErr := unix.Getpgid(p.Pid); groupErr == nil && pgid == p.Pid {
		err = unix.Kill(-p.Pid, unix.SIGHUP)
		for _, m := range processes() {
			if pgid, err := unix.Getpgid(m.pid); err == nil && pgid == p.Pid && m.pid != p.Pid && !slices.Contains(victims, m) {
				victims = append(victims, m)
			}
		}
	} else {
		err = p.Signal(unix.SIGHUP)
	}
	for _, v := range victims {
		_ = unix.Kill(v.pid, unix.SIGHUP) // fails only if it is dead
		_ = unix.Kill(v.pid, unix.SIGCONT)
	}
	_ = p.Signal(unix.SIGCONT)
	return func() { killAll(victims) }, err
}

// killAll kills processes of a tree and returns when they are dead, or after deathLimit.
// Orphans come to the init of a container; if that is this process, it must reap them.
func killAll(victims []proc) {
	waits := make([]func(time.Time), 0, len(victims))
	for _, v := range victims {
		if wait, ok := v.signal(); ok {
			waits = append(waits, wait)
		}
	}
	deadline := time.Now().Add(deathLimit)
	for _, wait := range waits {
		wait(deadline)
	}
	for _, v := range victims {
		reap(v.pid)
	}
}

func (f *family) killGroup() {
	target := -f.pid
	if f.terminal {
		target = f.pid // the group is our own
	}
	_ = unix.Kill(target, unix.SIGKILL) // fails only if all are dead
}

// sweep kills what is left of the session and waits until it is dead. Call it when the
// leader has ended.
func (f *family) sweep() {
	if f.first != 0 {
		f.kill()
		return
	}
	if !f.terminal { // else group and session are our own
		f.killGroup()
		f.killSession()
	}
	for _, s := range f.strays {
		reap(s.pid) // kill could not, if it was faster than the parent's death
	}
}

func (f *family) killSession() {
	for range 10 { // a member may have forked behind the list's back
		var alive []proc
		for _, m := range session(f.pid) {
			switch {
			case m.pid == f.pid:
			case m.zombie:
				reap(m.pid)
			default:
				alive = append(alive, m)
			}
		}
		if len(alive) == 0 {
			return
		}
		killAll(alive)
	}
}

// reap releases a dead process if it is a child of this one.
func reap(pid int) {
	retryInterrupted(func() error {
		_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return err
	})
}

// retryInterrupted makes a system call until no signal interrupts it.
func retryInterrupted(call func() error) {
	for errors.Is(call(), unix.EINTR) {
	}
}

// descendants returns the processes among all that descend from root.
func descendants(all []proc, root int) []proc {
	children := make(map[int][]proc, len(all))
	for _, p := range all {
		if p.pid != root {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	found := children[root]
	delete(children, root)
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
		delete(children, found[i].pid)
	}
	return found
}

// guard has the tree killed as soon as this process is gone, until the returned function
// is called. Call it before the leader is reaped.
func (f *family) guard() (stop func()) {
	if f.terminal {
		return func() {} // no group exists
	}
	return theGuard.add(f.pid)
}

// signalName names the signal that ended a process, or is empty.
func signalName(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ""
	}
	if name := unix.SignalName(status.Signal()); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(status.Signal()))
}
