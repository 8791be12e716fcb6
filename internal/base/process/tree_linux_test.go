package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"loki/internal/base/ptytest"
)

// helperVariable makes the test binary play the program that a test is about.
const helperVariable = "PROCESS_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperVariable) {
	case "":
		ptytest.ObeySignals()
		os.Exit(m.Run())
	case "guarded":
		helperRun(false)
	case "unguarded":
		helperRun(true)
	case "limited":
		helperLimited()
	case "terminal":
		helperTerminal()
	case "init":
		helperInit()
	case "files":
		helperFiles()
	case "untraced":
		helperUntraced()
	}
}

// helperRun runs the script in the first argument and passes its output on.
func helperRun(unguarded bool) {
	t := standardTiming()
	t.unguarded = unguarded
	cmd := bash(os.Args[1])
	cmd.OnStdout = func(line string) { fmt.Println(line) }
	_, err := run(context.Background(), cmd, t)
	fmt.Println("unexpected end:", err)
}

// helperTerminal tells what a program with and without Terminal makes of /dev/tty.
func helperTerminal() {
	cmd := bash(`if read -r line </dev/tty; then echo "read $line"; else echo none; fi`)
	cmd.Timeout, cmd.HasTimeout = prompt, true
	for _, cmd.Terminal = range []bool{true, false} {
		res, err := Run(context.Background(), cmd)
		fmt.Printf("%s %v\n", strings.TrimSpace(string(res.Stdout)), err)
	}
}

// helperInit adopts orphans as the init of a container does, runs scripts that leave
// some, and tells how many children it has in the end.
func helperInit() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Println(err)
		return
	}
	for _, script := range []string{
		`sleep 60 >/dev/null 2>&1 &`,
		`sleep 60 &`,
		`set -m; (sleep 60; :) >/dev/null 2>&1 &`,
		`setsid sleep 60 &`,
		`setsid sleep 60 >/dev/null 2>&1 & sleep 60`,
		`sleep 60 & sleep 60`,
	} {
		cmd := bash(script)
		cmd.Timeout, cmd.HasTimeout = 300*time.Millisecond, true
		_, _ = Run(context.Background(), cmd)
	}
	left := slices.DeleteFunc(descendants(processes(), os.Getpid()), isGuard)
	fmt.Println(len(left))
}

// helperFiles runs programs with fewer and fewer files to open, and then with enough;
// it tells which errors came and how many files stayed open.
func helperFiles() {
	open := func() int {
		entries, _ := os.ReadDir("/proc/self/fd")
		return len(entries)
	}
	var old unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &old)
	cmd := Command{Path: "/bin/sh", Args: []string{"-c", ":"}, Stdin: strings.NewReader("x")}
	_, err := Run(context.Background(), cmd) // opens what the runtime keeps
	before, failures := open(), 0
	for limit := uint64(before) + 9; err == nil && limit >= uint64(before); limit-- {
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: old.Max})
		if _, err := Run(context.Background(), cmd); err != nil {
			failures++
			if _, ok := errors.AsType[*StartError](err); !ok || !errors.Is(err, syscall.EMFILE) {
				fmt.Printf("limit %d: %v (%T)\n", limit, err, err)
			}
		}
	}
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
	_, err = Run(context.Background(), cmd)
	fmt.Println(failures > 3, open()-before, err)
}

// helperUntraced runs the script in the first argument where no process can be traced, as in some containers and under a debugger.
func helperUntraced() {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_PTRACE},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fmt.Println(err)
		return
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); errno != 0 {
		fmt.Println(errno)
		return
	}
	res, err := Run(context.Background(), bash(os.Args[1]))
	fmt.Printf("%s%v\n", res.Stdout, err)
}

// TestUntraced starts a leader that cannot be stopped before its first instruction.
func TestUntraced(t *testing.T) {
	t.Parallel()
	if out, err := helper(t, "untraced", "echo begun").Output(); err != nil || string(out) != "begun\n<nil>\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func helper(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), helperVariable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// stopLimit is the time limit of helperLimited.
const stopLimit = 3 * time.Second

// helperLimited runs the script in the first argument with a time limit, and prints how it ended.
func helperLimited() {
	cmd := bash(os.Args[1])
	cmd.Timeout, cmd.HasTimeout = stopLimit, true
	cmd.OnStdout = func(line string) { fmt.Println(line) }
	_, err := Run(context.Background(), cmd)
	fmt.Println("ended:", err)
}

// TestStoppedItself stops a process for longer than the time limit of what it runs. A program that ends meanwhile has ended in
// time, and one that does not has the rest of its time after that.
func TestStoppedItself(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, script, want string }{
		{"ends_meanwhile", `echo begun; read -r _ <"$0"; echo >"$0.end"`, "ended: <nil>"},
		{"does_not_end", `echo begun; read -r _ <"$0"; echo >"$0.end"; sleep 60`, "ended: bash timed out after 3s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := errors.Join(unix.Mkfifo(pipe, 0o600), unix.Mkfifo(pipe+".end", 0o600)); err != nil {
				t.Fatal(err)
			}
			cmd := helper(t, "limited", strings.ReplaceAll(tt.script, "$0", pipe))
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stdout)
			if !lines.Scan() || lines.Text() != "begun" {
				t.Fatalf("read %q, %v", lines.Text(), lines.Err())
			}
			if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(pipe, []byte("\n"), 0); err != nil { // the script is past this, and soon past its end
				t.Fatal(err)
			}
			if _, err := os.ReadFile(pipe + ".end"); err != nil {
				t.Fatal(err)
			}
			<-time.After(2 * stopLimit)
			if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if !lines.Scan() || lines.Text() != tt.want {
				t.Errorf("%q, want %q", lines.Text(), tt.want)
			}
			_ = cmd.Wait()
		})
	}
}

// TestKilledItself kills a process in the middle of Run and sees what becomes of what
// it has started.
func TestKilledItself(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, role, script string }{
		{"guard_kills_group", "guarded", `sleep 60 & echo ready; sleep 60; :`},
		{"guard_kills_jobs", "guarded", `set -m; sleep 60 & sleep 60 & echo ready; wait`},
		{"parent_death_signal_kills_leader", "unguarded", `echo ready; exec sleep 60`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := helper(t, tt.role, tt.script)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
				t.Fatalf("read %q, %v", line, err)
			}
			tree := descendants(processes(), cmd.Process.Pid)
			for wait := time.Now().Add(prompt); tt.role == "guarded" && !slices.ContainsFunc(tree, isGuard); {
				if time.Now().After(wait) {
					t.Fatal("no guard came")
				}
				tree = descendants(processes(), cmd.Process.Pid)
			}
			var ends []unix.PollFd
			for _, p := range tree {
				fd, err := unix.PidfdOpen(p.pid, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Close(fd)
				ends = append(ends, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			for i := range ends {
				for {
					n, err := unix.Poll(ends[i:i+1], int(prompt.Milliseconds()))
					if errors.Is(err, unix.EINTR) {
						continue
					}
					if n != 1 {
						t.Errorf("process %d lives on", tree[i].pid)
						_ = unix.Kill(tree[i].pid, unix.SIGKILL)
					}
					break
				}
			}
		})
	}
}

// TestGuardIsStartedAgain: where the guard was killed, the next leader has another one,
// which knows those of before.
func TestGuardIsStartedAgain(t *testing.T) {
	t.Parallel()
	g := guard{leaders: make(map[int]struct{})}
	first := exec.Command("sleep", "60")
	first.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	remove := g.add(first.Process.Pid)
	old := g.cmd
	if err := old.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = old.Process.Wait()
	const absent = 1 << 22
	g.add(absent)()
	if g.cmd == nil || g.cmd == old {
		t.Fatal("no other guard came")
	}
	_ = g.pipe.Close() // as if this process had ended
	_ = g.cmd.Wait()
	if err := first.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the first leader: %v", err)
	}
	g.cmd = nil
	remove()
}

func isGuard(p proc) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
	return err == nil && strings.Contains(string(line), "\x00loki-guard\x00")
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer slave.Close()
	if _, err := io.WriteString(master, "hello\nagain\n"); err != nil {
		t.Fatal(err)
	}
	cmd := helper(t, "terminal")
	cmd.Stdin = slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	out, err := cmd.Output()
	if want := "read hello <nil>\nnone <nil>\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}

func TestOutOfFiles(t *testing.T) {
	t.Parallel()
	if out, err := helper(t, "files").Output(); err != nil || string(out) != "true 0 <nil>\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestOrphansAreReaped(t *testing.T) {
	t.Parallel()
	needs(t, "setsid")
	if out, err := helper(t, "init").Output(); err != nil || string(out) != "0\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestTerminalTreeIsKilled(t *testing.T) {
	t.Parallel()
	cmd := bash(`sleep 60 & echo $!; bash -c 'echo $$; sleep 60'; :`)
	cmd.Terminal = true
	cmd.Timeout, cmd.HasTimeout = 300*time.Millisecond, true
	res, err := Run(t.Context(), cmd)
	if _, ok := errors.AsType[*TimeoutError](err); !ok {
		t.Errorf("error %v", err)
	}
	dead(t, res.Stdout)
}

func TestStragglerInOtherSession(t *testing.T) {
	t.Parallel()
	needs(t, "setsid")
	for _, terminal := range []bool{false, true} {
		cmd := bash(`setsid sleep 60 & echo $!`)
		cmd.Terminal = terminal
		res, err := Run(t.Context(), cmd)
		if err != nil || !res.Held || res.Duration > Grace+prompt {
			t.Errorf("got %+v, %v", res, err)
		}
		dead(t, res.Stdout)
	}
}

// usage counts what a run could leave behind.
type usage struct{ goroutines, files, children, threads int }

func measure(t *testing.T) usage {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	u := usage{goroutines: runtime.NumGoroutine(), files: len(files), threads: len(threads)}
	for _, p := range processes() {
		if p.parent == os.Getpid() {
			u.children++
		}
	}
	return u
}

func TestNothingIsLeftBehind(t *testing.T) { // not parallel: it counts
	kinds := []func(*Command){
		func(*Command) {},
		func(c *Command) { c.Args[1] = "exit 3" },
		func(c *Command) { c.Args[1] = "kill -9 $$" },
		func(c *Command) { c.Stdin = zeros{} },
		func(c *Command) { c.Path = "/no/such/program" },
		func(c *Command) { c.Args[1], c.MaxStdout = "cat /dev/zero", 10 },
		func(c *Command) { c.Args[1] = "sleep 60 >/dev/null 2>&1 & :" },
		func(c *Command) { c.Args[1], c.HasTimeout, c.Timeout = "sleep 60 & sleep 60", true, time.Millisecond },
		func(c *Command) { c.Args[1], c.Terminal = "echo x", true },
		func(c *Command) { c.Args[1] = "sleep 60 &" },
	}
	quick := standardTiming()
	quick.grace = time.Millisecond
	cycle := func(n int) {
		for i := range n {
			cmd := bash("echo x")
			kinds[i%len(kinds)](&cmd)
			_, _ = run(t.Context(), cmd, quick)
		}
	}
	cycle(len(kinds))
	before := measure(t)
	cycle(200)
	after := measure(t)
	// A goroutine that has said that it is done may still be on its last instruction.
	for wait := time.Now().Add(prompt); after.goroutines > before.goroutines && time.Now().Before(wait); {
		runtime.Gosched()
		after = measure(t)
	}
	t.Logf("before %+v, after %+v", before, after)
	if after.goroutines > before.goroutines || after.files > before.files || after.children > before.children {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if after.threads > before.threads+10 { // the runtime keeps idle threads for reuse
		t.Errorf("%d threads became %d", before.threads, after.threads)
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 8192"
	for _, tt := range []struct {
		name, text string
		want       proc
		ok         bool
	}{
		{"plain", "5 (bash) S" + rest, proc{pid: 5, parent: 7, start: 987654}, true},
		{"zombie", "5 (bash) Z" + rest, proc{pid: 5, parent: 7, start: 987654, zombie: true}, true},
		{"odd_name", "5 (a) R 1 (b) S" + rest, proc{pid: 5, parent: 7, start: 987654}, true},
		{"short", "5 (bash) S 7 42", proc{}, false},
		{"empty", "", proc{}, false},
		{"no_number", "5 (bash) S x" + strings.TrimPrefix(rest, " 7"), proc{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := parseStat(5, []byte(tt.text)); got != tt.want || ok != tt.ok {
				t.Errorf("got %+v, %v", got, ok)
			}
		})
	}
	self, ok := stat(os.Getpid())
	if !ok || self.parent != os.Getppid() || self.zombie {
		t.Errorf("this process: %+v, %v", self, ok)
	}
}

// TestSignalChecksIdentity makes sure that an id which has passed to another process
// does that process no harm.
func TestSignalChecksIdentity(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := bash(`echo ready; read -r; echo alive`)
	cmd.Stdin = r
	cmd.OnStdout = func(line string) {
		if line != "ready" {
			return
		}
		for _, p := range descendants(processes(), os.Getpid()) {
			p.start--
			if _, ok := p.signal(); ok {
				t.Errorf("process %d was killed in place of another", p.pid)
			}
		}
		w.Close()
	}
	if res, err := Run(t.Context(), cmd); err != nil || string(res.Stdout) != "ready\nalive\n" {
		t.Errorf("got %+v, %v", res, err)
	}
}

// TestHoldersWrite makes sure that who reads a pipe is not taken for one who holds it.
func TestHoldersWrite(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	info, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	pipe := map[string]bool{fmt.Sprintf("pipe:[%d]", info.Sys().(*syscall.Stat_t).Ino): true}
	for _, tt := range []struct {
		stdin *os.File
		extra *os.File
		want  bool
	}{{stdin: r}, {extra: w, want: true}} {
		cmd := exec.Command("sleep", "60")
		cmd.Stdin = tt.stdin
		if tt.extra != nil {
			cmd.ExtraFiles = []*os.File{tt.extra}
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if got := writesTo(cmd.Process.Pid, pipe); got != tt.want {
			t.Errorf("holds the write end: %v, want %v", got, tt.want)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func TestDescendants(t *testing.T) {
	t.Parallel()
	table := []proc{{pid: 1}, {pid: 2, parent: 1}, {pid: 3, parent: 2}, {pid: 4, parent: 1}, {pid: 5, parent: 3}, {pid: 6, parent: 6}, {pid: 7, parent: 8}, {pid: 8, parent: 7}}
	for root, want := range map[int]string{0: "[1 2 4 3 5]", 2: "[3 5]", 5: "[]", 6: "[]", 7: "[8]", 9: "[]"} {
		ids := []int{}
		for _, p := range descendants(table, root) {
			ids = append(ids, p.pid)
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("root %d: got %s, want %s", root, got, want)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	cmd := Command{Path: "/bin/true"}
	for b.Loop() {
		if _, err := Run(b.Context(), cmd); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExec is the standard library's way, for comparison.
func BenchmarkExec(b *testing.B) {
	for b.Loop() {
		if _, err := exec.Command("/bin/true").CombinedOutput(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSession(b *testing.B) {
	for b.Loop() {
		session(os.Getpid())
	}
}

func BenchmarkProcesses(b *testing.B) {
	for b.Loop() {
		processes()
	}
}

func BenchmarkGuard(b *testing.B) {
	f := &family{pid: 1 << 22} // nobody's
	for b.Loop() {
		f.guard()()
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("5 (a) R (b) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 8192"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, ok := parseStat(5, text); ok && p.pid != 5 || !ok && p != (proc{}) {
			t.Fatalf("got %+v, %v", p, ok)
		}
	})
}
