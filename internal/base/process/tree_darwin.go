package process

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const stateZombie = 5 // SZOMB in sys/proc.h

// tree is a family and the kernel queue that reports its leader's end. The queue is
// opened before the leader is started, when failing is still harmless.
type tree struct {
	family
	queue int
}

func newTree(terminal bool) (*tree, error) {
	queue, err := unix.Kqueue()
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(queue)
	if !terminal {
		if err := theGuard.ready(); err != nil {
			return nil, err
		}
	}
	return &tree{family{terminal: terminal}, queue}, nil
}

func (t *tree) close() { unix.Close(t.queue) }

func (t *tree) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: !t.terminal}
}

// start starts the leader.
func (t *tree) start(cmd *exec.Cmd, _ bool) error { return cmd.Start() }

// proceed has nothing to do: the leader has begun.
func (t *tree) proceed() {}

// wait returns when the leader has ended, and leaves it a zombie. (The system's waitid
// returns for a stopped process too.)
func (t *tree) wait() { awaitExit(t.queue, t.pid, nil) }

// awaitExit returns when a process has ended, or at the latest after limit, if given.
func awaitExit(queue, pid int, limit *unix.Timespec) {
	var change unix.Kevent_t
	unix.SetKevent(&change, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change.Fflags = unix.NOTE_EXIT
	events := make([]unix.Kevent_t, 1)
	retryInterrupted(func() error {
		// For a process that is a zombie already this fails with ESRCH.
		_, err := unix.Kevent(queue, []unix.Kevent_t{change}, events, limit)
		return err
	})
}

// processes returns the system's process table.
func processes() []proc {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	all := make([]proc, 0, len(table))
	for i := range table {
		all = append(all, fromKinfo(&table[i]))
	}
	return all
}

// session returns the members of a session.
func session(id int) []proc {
	var members []proc
	for _, p := range processes() {
		if sid, err := unix.Getsid(p.pid); err == nil && sid == id {
			members = append(members, p)
		}
	}
	return members
}

func fromKinfo(k *unix.KinfoProc) proc {
	start := k.Proc.P_starttime
	return proc{
		pid:    int(k.Proc.P_pid),
		parent: int(k.Eproc.Ppid),
		start:  start.Nano(),
		zombie: k.Proc.P_stat == stateZombie,
	}
}

// signal kills p, unless its id belongs to another process by now, and returns what
// waits for its death.
func (p proc) signal() (wait func(deadline time.Time), ok bool) {
	now, err := unix.SysctlKinfoProc("kern.proc.pid", p.pid)
	if err != nil || fromKinfo(now).start != p.start || unix.Kill(p.pid, unix.SIGKILL) != nil {
		return nil, false
	}
	return func(deadline time.Time) {
		queue, err := unix.Kqueue()
		if err != nil {
			return
		}
		defer unix.Close(queue)
		limit := unix.NsecToTimespec(max(time.Until(deadline), 0).Nanoseconds())
		awaitExit(queue, p.pid, &limit)
	}, true
}

// killHolders does nothing: the system has no cheap way to ask who holds a pipe.
func (t *tree) killHolders([]*os.File) {}
