//go:build linux || darwin

package process

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// deathLimit is how long a killed process is waited for. Only one in an uninterruptible
// system call takes longer.
const deathLimit = time.Second

// tree is the hold on a leader and its descendants. The leader's id stands for the
// leader, its group and its session until it is reaped.
type tree struct {
	terminal bool
	pid      int
	exit     exitWatch
}

// proc is one process as the system's table showed it.
type proc struct {
	pid, parent int
	start       int64 // when it started, in a unit of the system; tells namesakes apart
	zombie      bool
}

func (t *tree) adopt(p *os.Process) error {
	t.pid = p.Pid
	return nil
}

// kill kills the leader, its group, and those descendants that have left the group.
// The latter are looked up first: with its parent a process loses its descent.
func (t *tree) kill() {
	var strays []proc
	for _, d := range descendants(processes(), t.pid) {
		if pgid, err := unix.Getpgid(d.pid); t.terminal || err == nil && pgid != t.pid {
			strays = append(strays, d)
		}
	}
	t.killGroup()
	killAll(strays)
}

// killAll kills processes of a tree and returns when they are dead, or after deathLimit.
// Orphans come to the init of a container, and so to this process if it is one: those
// among the dead are reaped.
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

func (t *tree) killGroup() {
	target := -t.pid
	if t.terminal {
		target = t.pid // the group is our own
	}
	_ = unix.Kill(target, unix.SIGKILL) // fails only if all are dead
}

// sweep kills what is left of the session and waits until it is dead.
func (t *tree) sweep() {
	if t.terminal {
		return // the session is our own
	}
	t.killGroup()
	for range 10 { // a member may have forked behind the list's back
		var alive []proc
		for _, m := range session(t.pid) {
			switch {
			case m.pid == t.pid:
			case !m.zombie:
				alive = append(alive, m)
			default:
				reap(m.pid)
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
	for {
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != unix.EINTR {
			return
		}
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

// guard starts a process that kills the group as soon as this process is gone, however
// it went, and returns what ends it. A system without /bin/sh has no guard.
func (t *tree) guard() (stop func()) {
	stop = func() {}
	if t.terminal {
		return stop // there is no group to kill
	}
	r, w, err := os.Pipe()
	if err != nil {
		return stop
	}
	defer r.Close()
	cmd := &exec.Cmd{
		Path: "/bin/sh",
		// read returns when the last copy of w is closed: nobody writes to it.
		Args:        []string{"sh", "-c", `read -r end; kill -9 -"$1"`, "loki-guard", strconv.Itoa(t.pid)},
		Dir:         "/",
		Env:         []string{},
		Stdin:       r,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if cmd.Start() != nil {
		w.Close()
		return stop
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		w.Close()
	}
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
