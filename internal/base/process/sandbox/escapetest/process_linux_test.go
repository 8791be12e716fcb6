//go:build amd64 || arm64

package escapetest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processAttempts reach into other processes.
var processAttempts = map[string]attempt{
	"proc_environ": {gain: "a secret", try: func(c *child) { c.read(c.proc("environ")) }},
	"proc_cmdline": {gain: "a secret", try: func(c *child) { c.read(c.proc("cmdline")) }},
	"proc_all": {gain: "a secret", try: func(c *child) {
		c.sh(`cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/*/task/*/environ 2>/dev/null | tr '\0' '\n' | grep SECRET-` + c.Nonce + `; ps eww -e 2>/dev/null | grep -o SECRET-` + c.Nonce + `.*; pgrep -af SECRET-`)
	}},
	"proc_list": {gain: "which processes there are", try: func(c *child) {
		c.can(c.proc("stat"), c.proc("status"), c.proc("comm"), c.proc("wchan"), c.proc("task"), fmt.Sprint("/proc/", c.Parent, "/stat"))
	}},
	"proc_mem": {gain: "a secret", try: func(c *child) {
		f, err := os.OpenFile(c.proc("mem"), os.O_RDWR, 0)
		if err != nil {
			c.note(err)
			return
		}
		b := make([]byte, 60)
		_, err = f.ReadAt(b, int64(c.Memory))
		fmt.Printf("%s %v\n", b, err)
		_, err = f.WriteAt([]byte("X"), int64(c.Memory))
		c.err(err)
	}},
	"proc_maps": {gain: "addresses of another process", try: func(c *child) {
		c.can(c.proc("maps"), c.proc("smaps"), c.proc("auxv"), c.proc("pagemap"), c.proc("stack"), c.proc("syscall"))
	}},
	"proc_fd": {gain: "a secret", try: func(c *child) {
		c.sh("for f in " + c.proc("fd") + "/*; do case $(readlink $f) in *victim*) cat $f; dd if=$f bs=1 count=100 iflag=skip_bytes skip=0;; esac; done 2>/dev/null")
	}},
	"proc_root": {gain: "a secret", try: func(c *child) { c.read(c.proc("root") + c.home(".netrc")) }},
	"proc_cwd": {gain: "where another process is", try: func(c *child) {
		for _, name := range []string{"cwd", "exe", "root"} {
			if to, err := os.Readlink(c.proc(name)); err == nil {
				c.gained("%s", to)
			} else {
				c.note(err)
			}
		}
	}},
	"proc_root_of_init": {gain: "the system", control: "for root only", try: func(c *child) { c.read("/proc/1/root" + c.home(".netrc")); c.can("/proc/1/environ") }},
	"proc_written": {gain: "which process dies first", try: func(c *child) {
		c.system(c.proc("oom_score_adj"), c.proc("comm"), c.proc("clear_refs"), c.proc("coredump_filter"), c.proc("timerslack_ns"))
	}},
	"proc_parent": {gain: "a secret of this program", try: func(c *child) {
		p := fmt.Sprint("/proc/", os.Getppid())
		c.can(p+"/environ", p+"/cmdline", p+"/maps", fmt.Sprint("/proc/", c.Parent, "/environ"), fmt.Sprint("/proc/", c.Parent, "/mem"))
	}},
	"proc_namespaces": {gain: "a handle of a namespace", try: func(c *child) { c.can(c.proc("ns/net"), c.proc("ns/mnt"), c.proc("ns/user")) }},
	"ptrace_attach": {gain: "another process", try: func(c *child) {
		if err := unix.PtraceAttach(c.Victim); err != nil {
			c.note(err)
			return
		}
		c.gained("the victim is traced")
		_ = unix.PtraceDetach(c.Victim)
	}},
	"ptrace_seize":   {gain: "another process", try: func(c *child) { c.call("seized", unix.SYS_PTRACE, 0x4206, uintptr(c.Victim), 0, 0) }},
	"ptrace_traceme": {gain: "a process that is traced by this program", alone: true, control: "the parent does not expect it", try: func(c *child) { c.call("is traced", unix.SYS_PTRACE, 0, 0, 0, 0) }},
	"process_vm_readv": {gain: "a secret", try: func(c *child) {
		b := make([]byte, 60)
		_, err := unix.ProcessVMReadv(c.Victim, []unix.Iovec{{Base: &b[0], Len: 60}}, []unix.RemoteIovec{{Base: uintptr(c.Memory), Len: 60}}, 0)
		fmt.Printf("%s %v\n", b, err)
	}},
	"process_vm_writev": {gain: "memory of another process", try: func(c *child) {
		b := []byte("S")
		n, err := unix.ProcessVMWritev(c.Victim, []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: uintptr(c.Memory), Len: 1}}, 0)
		c.err(err)
		if n > 0 {
			c.gained("memory was written")
		}
	}},
	"pidfd_getfd": {gain: "a file of another process", try: func(c *child) {
		fd, err := unix.PidfdOpen(c.Victim, 0)
		c.err(err)
		for i := range 10 {
			if got, err := unix.PidfdGetfd(fd, i, 0); err == nil {
				c.gained("descriptor %d of the victim as %d", i, got)
			}
		}
	}},
	"kcmp": {gain: "what processes share", try: func(c *child) {
		if r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(c.Victim), uintptr(c.Victim), 2, 0, 0, 0); errno == 0 {
			c.gained("kcmp %d", r)
		}
	}},
	"robust_list": {gain: "addresses of another process", try: func(c *child) {
		var head, size uintptr
		c.call("list of locks", unix.SYS_GET_ROBUST_LIST, uintptr(c.Victim), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&size)))
	}},
	"move_pages": {gain: "where memory of another process is", control: "not in every kernel", try: func(c *child) {
		page, status := uintptr(c.Memory)&^0xfff, int32(0)
		c.call("pages of the victim", unix.SYS_MOVE_PAGES, uintptr(c.Victim), 1, uintptr(unsafe.Pointer(&page)), 0, uintptr(unsafe.Pointer(&status)), 0)
	}},
	"process_madvise": {gain: "memory of another process", control: "for root only", try: func(c *child) {
		fd, err := unix.PidfdOpen(c.Victim, 0)
		c.err(err)
		iov := [2]uintptr{uintptr(c.Memory) &^ 0xfff, 4096} // an iovec of an address that is not of this process
		c.call("advice about memory of the victim", unix.SYS_PROCESS_MADVISE, uintptr(fd), uintptr(unsafe.Pointer(&iov)), 1, unix.MADV_COLD, 0)
	}},
	"signal_victim":    {gain: "another process", try: func(c *child) { c.err(unix.Kill(c.Victim, unix.SIGUSR1)) }},
	"signal_terminate": {gain: "another process", try: func(c *child) { c.err(unix.Kill(c.Victim, unix.SIGKILL)) }},
	"signal_parent": {gain: "this program", control: "it would end the test", try: func(c *child) {
		for _, pid := range []int{c.Parent, os.Getppid(), 1} {
			if err := unix.Kill(pid, 0); err == nil && pid > 0 && pid != os.Getpid() && !c.ownParent(pid) {
				c.gained("signals to %d", pid)
			}
		}
	}},
	"signal_all": {gain: "all processes", alone: true, control: "it would end the test", try: func(c *child) {
		signalIgnore()
		if os.Geteuid() != 0 {
			c.err(unix.Kill(-1, unix.SIGUSR2))
		}
	}},
	"signal_thread": {gain: "another process", try: func(c *child) { c.err(unix.Tgkill(c.Victim, c.Victim, unix.SIGUSR1)) }},
	"signal_tkill": {gain: "another process", try: func(c *child) {
		_, _, errno := unix.Syscall(unix.SYS_TKILL, uintptr(c.Victim), uintptr(unix.SIGUSR1), 0)
		c.note(errno)
	}},
	"signal_queue": {gain: "another process", try: func(c *child) {
		info := [128]byte{0: byte(unix.SIGUSR1), 8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff} // SI_QUEUE
		_, _, errno := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(c.Victim), uintptr(unix.SIGUSR1), uintptr(unsafe.Pointer(&info)))
		c.note(errno)
	}},
	"signal_pidfd": {gain: "another process", try: func(c *child) {
		fd, err := unix.PidfdOpen(c.Victim, 0)
		c.err(err)
		c.err(unix.PidfdSendSignal(fd, unix.SIGUSR1, nil, 0))
	}},
	"signal_by_input": {gain: "another process", try: func(c *child) {
		var p [2]int
		c.err(unix.Pipe2(p[:], 0))
		_, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, c.Victim)
		c.err(err)
		_, err = unix.FcntlInt(uintptr(p[0]), unix.F_SETFL, unix.O_ASYNC)
		c.err(err)
		_, err = unix.Write(p[1], []byte("x"))
		c.err(err)
		time.Sleep(20 * time.Millisecond)
	}},
	"signal_by_lease": {gain: "another process", control: "not on every file system", try: func(c *child) {
		c.write(c.temp("x"))
		fd, err := unix.Open(c.temp("x"), unix.O_RDONLY, 0)
		c.err(err)
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETOWN, c.Victim)
		c.err(err)
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		c.err(err)
		go c.open(c.temp("x"), unix.O_WRONLY|unix.O_NONBLOCK, "x")
		time.Sleep(20 * time.Millisecond)
	}},
	"limits_of_others": {gain: "another process", try: func(c *child) {
		c.err(unix.Prlimit(c.Victim, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil))
		c.limits()
	}},
	"priority_of_others": {gain: "another process", try: func(c *child) {
		if err := unix.Setpriority(unix.PRIO_PROCESS, c.Victim, 19); err == nil {
			c.gained("priority of the victim")
		}
		if err := unix.Setpriority(unix.PRIO_USER, 12345, 19); err == nil {
			c.gained("priority of a user")
		}
	}},
	"affinity_of_others": {gain: "another process", try: func(c *child) {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			c.note(err)
		}
		if err := unix.SchedSetaffinity(c.Victim, &set); err == nil {
			c.gained("processors of the victim")
		}
	}},
	"scheduler_of_others": {gain: "another process", try: func(c *child) {
		var param int32
		c.call("scheduling of the victim", unix.SYS_SCHED_SETSCHEDULER, uintptr(c.Victim), 3, uintptr(unsafe.Pointer(&param)))
		c.call("scheduling of the victim", unix.SYS_SCHED_SETPARAM, uintptr(c.Victim), uintptr(unsafe.Pointer(&param)))
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: 3}
		c.call("scheduling of the victim", unix.SYS_SCHED_SETATTR, uintptr(c.Victim), uintptr(unsafe.Pointer(&attr)), 0)
	}},
	"io_priority_of_others": {gain: "another process", try: func(c *child) {
		c.call("input and output of the victim", unix.SYS_IOPRIO_SET, 1, uintptr(c.Victim), 3<<13)
	}},
	"shared_memory": {gain: "a secret", try: func(c *child) {
		data, err := unix.SysvShmAttach(c.Shm, 0, unix.SHM_RDONLY)
		c.err(err)
		if err == nil {
			fmt.Printf("%s\n", data[:80])
		}
	}},
	"shared_memory_listed": {gain: "memory of others", try: func(c *child) {
		var ds [256]byte
		for i := range 64 {
			if id, _, errno := unix.Syscall(unix.SYS_SHMCTL, uintptr(i), 15, uintptr(unsafe.Pointer(&ds))); errno == 0 {
				c.gained("segment %d", id)
			}
		}
		c.can("/proc/sysvipc/shm")
	}},
	"posix_queue": {gain: "a queue of messages for others", control: "it would stay", try: func(c *child) {
		r, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, c.pointer("loki-escaped-"+c.Nonce), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
		fmt.Println("queue", r, errno) // that of an own namespace is not in /dev/mqueue
	}},
	"daemon": {gain: "a process that goes on", alone: true, try: func(c *child) {
		c.sh(`setsid bash -c '(sleep 7; echo x) & disown; exec -a loki-daemon-` + c.Nonce + ` sleep 60' >/dev/null 2>&1 </dev/null & sleep 0.1`)
	}},
	"fork_bomb": {gain: "the machine", alone: true, control: "it would be one", try: func(c *child) {
		c.sh(`f() { sleep 50 & [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & }; }; exec -a loki-daemon-` + c.Nonce + ` bash -c 'for i in $(seq 60); do (exec -a loki-daemon-` + c.Nonce + ` sleep 60) & done; wait' >/dev/null 2>&1 & sleep 0.2`)
	}},
	"core_dump": {gain: "memory in a file", alone: true, control: "it would be the system's", try: func(c *child) {
		var l unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_CORE, &l)
		if l.Max != 0 {
			c.gained("core dumps of %d bytes", l.Max)
		}
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}); err == nil {
			c.gained("core dumps")
		}
	}},
	"descriptors": {gain: "files of this program", control: "this program closes its files itself", try: func(c *child) {
		for fd := 3; fd < 1024; fd++ {
			var st unix.Stat_t
			if unix.Fstat(fd, &st) == nil {
				if to, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); err == nil && (strings.Contains(to, "eventpoll") || strings.Contains(to, "eventfd")) {
					continue
				}
				if st.Mode&unix.S_IFMT == 0 {
					continue // an object of the runtime
				}
				if fd > 8 || st.Mode&unix.S_IFMT != unix.S_IFREG { // those of the runtime of Go are anonymous, or limits of cgroups
					c.gained("descriptor %d, %o", fd, st.Mode)
				}
			}
		}
	}},
	"setuid_program": {gain: "rights of root", control: "it needs a password", try: func(c *child) {
		for _, program := range []string{"/usr/bin/su", "/usr/bin/sudo", "/usr/bin/newgrp", "/usr/bin/pkexec", "/usr/bin/mount", "/usr/bin/passwd", "/usr/bin/crontab", "/usr/bin/at"} {
			var v uint64
			if unix.Access(program, unix.X_OK) != nil {
				continue
			}
			_ = v
		}
		if r, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && r != 1 {
			c.gained("new privileges")
		}
	}},
	"capabilities": {gain: "rights over the machine", control: "for root only", try: func(c *child) {
		for _, n := range []int{unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_BOOT, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_PTRACE, unix.CAP_SYS_TIME, unix.CAP_BPF, unix.CAP_MKNOD, unix.CAP_SYSLOG, unix.CAP_LINUX_IMMUTABLE} {
			if v, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(n), 0, 0, 0); os.Geteuid() == 0 && err == nil && v == 1 && c.effective(n) {
				c.gained("capability %d", n)
			}
		}
	}},
	"preload": {gain: "code in programs with rights", control: "it would be the system's", try: func(c *child) {
		c.system("/etc/ld.so.preload", "/etc/ld.so.cache", "/etc/environment", "/etc/passwd", "/etc/hosts", "/usr/bin/env")
	}},
	"memfd": {gain: "what the box stops, by a program without a file", alone: true, try: func(c *child) {
		fd, err := unix.MemfdCreate("x", 0)
		c.err(err)
		data, err := os.ReadFile("/bin/cat")
		c.err(err)
		_, err = unix.Write(fd, data)
		c.err(err)
		cmd := exec.Command(fmt.Sprint("/proc/self/fd/", fd), c.home(".netrc"))
		out, err := cmd.CombinedOutput()
		fmt.Println(string(out), err)
		if os.Getenv("LOKI_ESCAPE_CHILD") == "" {
			argv := [3]uintptr{c.pointer("cat"), c.pointer(c.home(".netrc")), 0}
			envp := [1]uintptr{}
			_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), c.pointer(""), uintptr(unsafe.Pointer(&argv)), uintptr(unsafe.Pointer(&envp)), unix.AT_EMPTY_PATH, 0)
			c.note(errno)
		}
	}},
	"linker": {gain: "a program that may not be executed", try: func(c *child) {
		c.sh("for l in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do [ -e $l ] && $l /bin/cat " + c.home(".netrc") + "; done")
	}},
	"this_program_again": {gain: "a shim without limits", try: func(c *child) {
		cmd := exec.Command(os.Args[0], "secret_plain")
		cmd.Env = append(os.Environ(), "LOKI_SANDBOX_SHIM=0")
		out, err := cmd.CombinedOutput()
		fmt.Println(string(out), err)
	}},
	"secret_plain": {gain: "a secret", try: func(c *child) { c.read(c.home(".netrc")) }},
	"terminal_input": {gain: "commands typed into the user's terminal", alone: true, control: "there may be no terminal", try: func(c *child) {
		for fd := range 3 {
			b := byte('x')
			c.call("typed", unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
		}
		if fd, err := unix.Open("/dev/tty", unix.O_RDWR, 0); err == nil {
			c.gained("terminal %d", fd)
		}
	}},
	"terminal_paste": {gain: "commands pasted into a console", control: "there may be no console", try: func(c *child) {
		for fd := range 3 {
			b := byte(3)
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCLINUX, uintptr(unsafe.Pointer(&b)))
			if errno != unix.EPERM && errno != unix.ENOTTY && errno != unix.EACCES {
				c.gained("console: %v", errno)
			}
		}
	}},
	"terminal_new": {gain: "input of a terminal", control: "it is an own terminal", try: func(c *child) {
		fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			c.note(err)
			return
		}
		b := byte('x')
		c.call("typed", unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
	}},
	"terminals_of_others": {gain: "the user's terminals", control: "for root only", try: func(c *child) {
		c.sh("for t in /dev/pts/[0-9]* /dev/tty[0-9]*; do { echo x >$t; } 2>/dev/null && echo GAINED $t; done")
	}},
	"crontab": {gain: "a job", control: "it would be the system's", try: func(c *child) {
		c.sh("command -v crontab && echo '* * * * * true' | crontab - && echo GAINED a job && crontab -r")
	}},
	"at": {gain: "a job", control: "it would be the system's", try: func(c *child) {
		c.sh("command -v at && echo true | at now && echo GAINED a job; command -v batch && echo true | batch && echo GAINED a job")
	}},
	"systemd_run": {gain: "a service", control: "it would be the system's", try: func(c *child) {
		c.sh("command -v systemd-run && { systemd-run --user true || systemd-run true || systemd-run --scope true; } && echo GAINED a service")
	}},
	"other_user": {gain: "another user", control: "it needs a password", try: func(c *child) {
		c.sh("for p in 'sudo -n' 'su nobody -s /bin/sh -c' doas pkexec; do command -v ${p%% *} >/dev/null && $p true </dev/null 2>/dev/null && [ $(id -u) != 0 ] && echo GAINED $p; done")
	}},
}

func (c *child) ownParent(pid int) bool { // a pid of an own namespace
	return os.Getpid() < 10 && pid == 1
}

func (c *child) limits() {
	var l unix.Rlimit
	if err := unix.Prlimit(c.Victim, unix.RLIMIT_NOFILE, nil, &l); err == nil && l.Max == 3 {
		c.gained("limits of the victim")
	}
}

func (c *child) effective(n int) bool {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if unix.Capget(&h, &d[0]) != nil {
		return true
	}
	return d[n/32].Effective&(1<<(n%32)) != 0
}

func signalIgnore() {
	// The attempt itself must live: SIGUSR2 would end it.
	var set unix.Sigset_t
	set.Val[0] = 1 << (uint(unix.SIGUSR2) - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}

// namespaceAttempts make or enter namespaces and mounts.
var namespaceAttempts = map[string]attempt{
	"namespace_user":    {gain: "rights in the kernel", try: func(c *child) { c.namespace(unix.CLONE_NEWUSER) }},
	"namespace_mount":   {gain: "other mounts", control: "for root only", try: func(c *child) { c.namespace(unix.CLONE_NEWNS) }},
	"namespace_network": {gain: "rights over a network", control: "for root only", try: func(c *child) { c.namespace(unix.CLONE_NEWNET) }},
	"namespace_pid":     {gain: "another /proc", control: "for root only", try: func(c *child) { c.namespace(unix.CLONE_NEWPID) }},
	"namespace_ipc":     {gain: "rights in the kernel", control: "for root only", try: func(c *child) { c.namespace(unix.CLONE_NEWIPC) }},
	"namespace_cgroup":  {gain: "rights in the kernel", control: "for root only", try: func(c *child) { c.namespace(unix.CLONE_NEWCGROUP) }},
	"namespace_both": {gain: "a mount of the user's files", try: func(c *child) {
		cmd := exec.Command("/bin/sh", "-c", "mount -t tmpfs none /mnt && echo GAINED a mount")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
		out, err := cmd.CombinedOutput()
		fmt.Println(string(out), err)
	}},
	"unshare": {gain: "rights in the kernel", try: func(c *child) {
		c.sh("unshare -Ur true && echo GAINED a namespace; unshare -Urm true && echo GAINED a namespace; unshare -Urn true && echo GAINED a namespace")
	}},
	"unshare_time": {gain: "rights in the kernel", try: func(c *child) { c.sh("unshare -UT true && echo GAINED a namespace") }},
	"clone3": {gain: "rights in the kernel", alone: true, control: "the child would go on as a copy", try: func(c *child) {
		args := [11]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
		r, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
		if errno == 0 && r == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		if errno == 0 {
			c.gained("a namespace")
		}
	}},
	"enter_namespace": {gain: "the network of this program", control: "for root only", try: func(c *child) {
		fd, err := unix.PidfdOpen(c.Victim, 0)
		c.err(err)
		for _, flag := range []int{unix.CLONE_NEWNET, unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWIPC} {
			_, _, errno := unix.Syscall(unix.SYS_SETNS, uintptr(fd), uintptr(flag), 0)
			if errno == 0 {
				c.gained("namespace %x", flag)
			}
		}
		for _, name := range []string{"net", "mnt", "user"} {
			if fd, err := unix.Open("/proc/1/ns/"+name, unix.O_RDONLY, 0); err == nil {
				c.gained("%s", name)
				_ = unix.Close(fd)
			}
		}
	}},
	"mount_tmpfs": {gain: "files in place of others", control: "for root only", try: func(c *child) { c.mount("none", c.Workspace+"/a", "tmpfs", 0) }},
	"mount_bind":  {gain: "a secret", control: "for root only", try: func(c *child) { c.mount(c.home(".ssh"), c.temp(""), "", unix.MS_BIND); c.read(c.temp("id_ed25519")) }},
	"mount_proc":  {gain: "other processes", control: "for root only", try: func(c *child) { c.mount("proc", c.temp(""), "proc", 0) }},
	"remount": {gain: "writing where it is closed", control: "for root only", try: func(c *child) {
		c.mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND)
		c.mount("", c.inside(".git"), "", unix.MS_REMOUNT|unix.MS_BIND)
	}},
	"unmount": {gain: "what lies below", control: "for root only", try: func(c *child) {
		for _, path := range []string{c.Home, "/tmp", c.inside(".git"), c.inside(".env"), "/proc"} {
			if err := unix.Unmount(path, unix.MNT_DETACH); err == nil {
				c.gained("%s", path)
			} else {
				c.note(err)
			}
		}
	}},
	"mount_by_descriptors": {gain: "a mount", control: "for root only", try: func(c *child) {
		c.call("fsopen", unix.SYS_FSOPEN, c.pointer("tmpfs"), 0)
		c.call("open_tree", unix.SYS_OPEN_TREE, ^uintptr(99), c.pointer("/"), 1)
		c.call("fspick", unix.SYS_FSPICK, ^uintptr(99), c.pointer("/"), 0)
		attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
		c.call("mount_setattr", unix.SYS_MOUNT_SETATTR, ^uintptr(99), c.pointer("/"), 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		c.call("move_mount", unix.SYS_MOVE_MOUNT, ^uintptr(99), c.pointer("/proc"), ^uintptr(99), c.pointer("/mnt"), 0)
	}},
	"chroot": {gain: "another root", control: "for root only", try: func(c *child) { c.call("chroot", unix.SYS_CHROOT, c.pointer(c.Workspace)) }},
	"pivot_root": {gain: "another root", control: "for root only", try: func(c *child) {
		_, _, errno := unix.Syscall(unix.SYS_PIVOT_ROOT, c.pointer("/"), c.pointer("/"), 0)
		if errno != unix.EPERM && errno != unix.ENOSYS {
			c.gained("pivot_root: %v", errno)
		}
	}},
}

// namespace starts a program in a new namespace.
func (c *child) namespace(flag uintptr) {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flag}
	if err := cmd.Run(); err != nil {
		c.note(err)
		return
	}
	c.gained("a namespace")
}

func (c *child) mount(source, target, kind string, flags uintptr) {
	if err := unix.Mount(source, target, kind, flags, ""); err != nil {
		c.note(err)
		return
	}
	c.gained("%s at %s", source, target)
}
