package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tree is a family; waiting for its leader needs no preparation.
type tree struct {
	family
	held bool // the leader is stopped until proceed
}

func newTree(terminal bool) (*tree, error) {
	if !terminal {
		if err := theGuard.ready(); err != nil {
			return nil, err
		}
	}
	return &tree{family: family{terminal: terminal}}, nil
}

func (t *tree) close() {}

func (t *tree) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: !t.terminal, Pdeathsig: syscall.SIGKILL}
}

// start starts the leader, with hold set stopped before its first instruction, so that it starts nothing before the guard
// knows it: the guard finds what descends from a leader only if it knows the leader. The thread that calls it traces the leader until
// it calls proceed. A program with privileges of its own would lose them if it was traced, and some systems do
// not let a process be traced; such a leader begins at once.
func (t *tree) start(cmd *exec.Cmd, hold bool) error {
	if !hold || t.terminal || privileged(cmd.Path) {
		return cmd.Start()
	}
	cmd.SysProcAttr.Ptrace = true
	err := cmd.Start()
	if t.held = err == nil; t.held || !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	cmd.SysProcAttr.Ptrace = false
	// A Cmd starts once, also if that failed.
	*cmd = exec.Cmd{Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env, Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr, ExtraFiles: cmd.ExtraFiles, SysProcAttr: cmd.SysProcAttr}
	return cmd.Start()
}

// proceed lets a leader begin. It is called by the thread that called start.
func (t *tree) proceed() {
	if !t.held {
		return
	}
	retryInterrupted(func() error {
		return unix.Waitid(unix.P_PID, t.pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
	})
	_ = unix.PtraceDetach(t.pid) // fails if it was killed
}

// privileged reports whether a program has privileges of its own, by its mode or as file capabilities.
func privileged(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return true // an error is that of the start
	}
	_, err = unix.Getxattr(path, "security.capability", nil)
	return err == nil
}

// wait returns when the leader has ended, and leaves it a zombie.
func (t *tree) wait() {
	retryInterrupted(func() error {
		return unix.Waitid(unix.P_PID, t.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	})
}

// processes returns the system's process table, or as much of it as can be read.
func processes() []proc {
	var all []proc
	for _, pid := range pids() {
		if p, ok := stat(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// session returns the members of a session. Asking for a session is some ten times
// cheaper than reading a process's entry.
func session(id int) []proc {
	var members []proc
	for _, pid := range pids() {
		if sid, err := unix.Getsid(pid); err != nil || sid != id {
			continue
		}
		if p, ok := stat(pid); ok {
			members = append(members, p)
		}
	}
	return members
}

func pids() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	ids := make([]int, 0, len(names))
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func stat(pid int) (proc, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	return parseStat(pid, text)
}

// parseStat reads a line of /proc/PID/stat, see proc_pid_stat(5). The second field is
// the program's name in parentheses and may itself hold spaces and parentheses.
func parseStat(pid int, text []byte) (proc, bool) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return proc{}, false
	}
	fields := bytes.Fields(text[end+1:]) // from field 3, the state, on
	if len(fields) < 20 {
		return proc{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return proc{}, false
	}
	start, err := strconv.ParseInt(string(fields[19]), 10, 64)
	if err != nil {
		return proc{}, false
	}
	state := fields[0][0]
	return proc{pid: pid, parent: parent, start: start, zombie: state == 'Z' || state == 'X'}, true
}

// signal kills p, unless its id belongs to another process by now, and returns what
// waits for its death; call that once. The pidfd makes the check, the signal and the
// wait mean the same process.
func (p proc) signal() (wait func(deadline time.Time), ok bool) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before Linux 5.3, or filtered
		return func(time.Time) {}, unix.Kill(p.pid, unix.SIGKILL) == nil
	}
	if err != nil {
		return nil, false
	}
	now, same := stat(p.pid)
	if !same || now.start != p.start || unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
		unix.Close(fd)
		return nil, false
	}
	return func(deadline time.Time) {
		defer unix.Close(fd)
		retryInterrupted(func() error {
			left := max(time.Until(deadline), 0)
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
			return err
		})
	}, true
}

// killHolders kills the processes that have the write end of one of pipes open, given
// our read ends. Only the tree can have one: it was handed to the leader only.
func (t *tree) killHolders(pipes []*os.File) {
	targets := make(map[string]bool, len(pipes))
	for _, f := range pipes {
		if info, err := f.Stat(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				targets["pipe:["+strconv.FormatUint(st.Ino, 10)+"]"] = true
			}
		}
	}
	var holders []proc
	for _, pid := range pids() {
		if pid == os.Getpid() || pid == t.pid || !writesTo(pid, targets) {
			continue
		}
		if p, ok := stat(pid); ok && !p.zombie {
			holders = append(holders, p)
		}
	}
	killAll(holders)
}

// writesTo reports whether a process has one of targets open for writing. Our other
// children hold read ends for an instant between their fork and their exec.
func writesTo(pid int, targets map[string]bool) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		name := dir + "/" + entry.Name()
		if target, err := os.Readlink(name); err != nil || !targets[target] {
			continue
		}
		// The link's permissions are the mode in which the file is open.
		if info, err := os.Lstat(name); err == nil && info.Mode()&fs.FileMode(0o200) != 0 {
			return true
		}
	}
	return false
}
