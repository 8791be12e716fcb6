//go:build linux || darwin

package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// prompt is the longest that anything may take which is done "at once". It leaves room
// for a machine that is busy with other things.
const prompt = 3 * time.Second

// bash returns a command that runs a script in a small environment.
func bash(script string) Command {
	return Command{Path: "bash", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

// dead fails the test if one of the processes that output names, one id per line, is
// still there. A process that init has not reaped yet is dead.
func dead(t *testing.T, output []byte) {
	t.Helper()
	ids := strings.Fields(string(output))
	if len(ids) == 0 {
		t.Fatal("the script named no process")
	}
	for _, id := range ids {
		pid, err := strconv.Atoi(id)
		if err != nil {
			t.Fatalf("not a process id: %q", id)
		}
		for _, p := range processes() {
			if p.pid == pid && !p.zombie {
				t.Errorf("process %d outlived Run", pid)
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script           string
		stdout, stderr, signal string
		code                   int
		err                    string
	}{
		{name: "success", script: `echo '{"a":1}'`, stdout: "{\"a\":1}\n"},
		{name: "silent", script: `:`},
		{name: "stderr_without_failure", script: `echo warn >&2; echo ok`, stdout: "ok\n", stderr: "warn\n"},
		{name: "exit_status", script: `echo ' no such row ' >&2; exit 3`, stderr: " no such row \n", code: 3, err: "bash failed with exit status 3: no such row"},
		{name: "exit_status_alone", script: `exit 1`, code: 1, err: "bash failed with exit status 1"},
		{name: "half_written_then_success", script: `printf '{"a":'`, stdout: `{"a":`},
		{name: "half_written_then_failure", script: `printf '{"a":'; exit 4`, stdout: `{"a":`, code: 4, err: "bash failed with exit status 4"},
		{name: "half_written_then_death", script: `printf '{"a":'; kill -KILL $$`, stdout: `{"a":`, code: -1, signal: "SIGKILL", err: "bash was ended by SIGKILL"},
		{name: "signal", script: `echo oops >&2; kill -TERM $$`, stderr: "oops\n", code: -1, signal: "SIGTERM", err: "bash was ended by SIGTERM: oops"},
		{name: "no_terminal", script: `true </dev/tty || echo none`, stdout: "none\n", stderr: "bash: line 1: /dev/tty: No such device or address\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.name == "no_terminal" && runtime.GOOS != "linux" {
				t.Skip("the message is that of Linux")
			}
			res, err := Run(t.Context(), bash(tt.script))
			if string(res.Stdout) != tt.stdout || res.Stderr != tt.stderr || res.ExitCode != tt.code || res.Signal != tt.signal {
				t.Errorf("got %+v", res)
			}
			if got := errorText(err); got != tt.err {
				t.Errorf("error %q, want %q", got, tt.err)
			}
			exit, isExit := errors.AsType[*ExitError](err)
			if isExit != (tt.err != "") {
				t.Fatalf("error of type %T", err)
			}
			if isExit && (exit.Code != tt.code || exit.Signal != tt.signal || exit.Stderr != strings.TrimSpace(tt.stderr)) {
				t.Errorf("got %+v", exit)
			}
			if res.Duration <= 0 || res.Held || res.StdoutTruncated || res.StderrOmitted != 0 {
				t.Errorf("got %+v", res)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestStartError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := file("plain", "echo", 0o600)
	bare := file("bare", "echo", 0o700)
	orphan := file("orphan", "#!/no/such/interpreter\n", 0o700)
	for _, tt := range []struct {
		name string
		cmd  Command
		want string
	}{
		{"empty", Command{}, "program path is empty"},
		{"not_on_path", Command{Path: "no-such-program", Env: []string{"PATH=" + dir}}, "no-such-program not found on PATH"},
		{"not_on_own_path", Command{Path: "no-such-program"}, "no-such-program not found on PATH"},
		{"relative_path_entry", Command{Path: "bare", Dir: dir, Env: []string{"PATH=.:"}}, "bare not found on PATH"},
		{"no_file", Command{Path: dir + "/none"}, "start none: no such file: " + dir + "/none"},
		{"no_file_in_dir", Command{Path: "./none", Dir: dir}, "start none: no such file: " + dir + "/none"},
		{"directory", Command{Path: dir}, "start " + filepath.Base(dir) + ": " + dir + " is a directory"},
		{"not_executable", Command{Path: plain}, "start plain: no permission to execute " + plain},
		{"no_shebang", Command{Path: bare}, "start bare: " + bare + " has no #! line and is not a program for this system"},
		{"no_interpreter", Command{Path: orphan}, "start orphan: the interpreter in its #! line does not exist"},
		{"no_directory", Command{Path: "bash", Dir: dir + "/gone"}, `start bash: its working directory "` + dir + `/gone" does not exist`},
		{"directory_is_file", Command{Path: "bash", Dir: plain}, `start bash: its working directory "` + plain + `" is not a directory`},
		{"too_large", Command{Path: "bash", Env: []string{"A=" + strings.Repeat("x", 4<<20)}}, "start bash: arguments and environment are larger than the system allows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, err := Run(t.Context(), tt.cmd)
			if _, ok := errors.AsType[*StartError](err); !ok || err.Error() != tt.want {
				t.Errorf("error %v (%T), want %q", err, err, tt.want)
			}
			if res.ExitCode != -1 {
				t.Errorf("exit code %d, want -1", res.ExitCode)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, script string }{
		{"hang", `echo $$; sleep 60`},
		{"children", `sleep 60 & echo $!; bash -c 'echo $$; sleep 60'; :`},
		{"deaf", `trap '' TERM INT HUP QUIT; echo $$; while :; do sleep 60; done`},
		{"stopped", `echo $$; kill -STOP $$`},
		{"jobs_with_groups", `set -m; sleep 60 & echo $!; sleep 60`},
		{"other_session", `setsid sleep 60 >/dev/null 2>&1 & echo $!; sleep 60`},
		{"other_session_below", `setsid bash -c 'sleep 60 & echo $! $$; wait' & sleep 60`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(tt.script, "setsid") {
				needs(t, "setsid")
			}
			cmd := bash(tt.script)
			cmd.Timeout, cmd.HasTimeout = 300*time.Millisecond, true
			res, err := Run(t.Context(), cmd)
			timeout, ok := errors.AsType[*TimeoutError](err)
			if !ok || timeout.Limit != cmd.Timeout || err.Error() != "bash timed out after 300ms" {
				t.Errorf("error %v", err)
			}
			if res.Signal != "SIGKILL" || res.ExitCode != -1 {
				t.Errorf("got %+v", res)
			}
			if res.Duration < cmd.Timeout || res.Duration > cmd.Timeout+prompt {
				t.Errorf("took %v", res.Duration)
			}
			dead(t, res.Stdout)
		})
	}
}

func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip("no " + program)
	}
}

func TestTimeoutZeroStartsNothing(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	for _, limit := range []time.Duration{0, -time.Second} {
		cmd := bash("touch " + mark)
		cmd.Timeout, cmd.HasTimeout = limit, true
		res, err := Run(t.Context(), cmd)
		if _, ok := errors.AsType[*TimeoutError](err); !ok || err.Error() != "bash timed out after 0s" || res.ExitCode != -1 {
			t.Errorf("%v: got %+v, %v", limit, res, err)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the program was started")
	}
}

func TestTimeoutNotReached(t *testing.T) {
	t.Parallel()
	cmd := bash("echo done")
	cmd.Timeout, cmd.HasTimeout = time.Hour, true
	res, err := Run(t.Context(), cmd)
	if err != nil || string(res.Stdout) != "done\n" {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	reason := errors.New("user pressed Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	cmd := bash(`sleep 60 & echo $!; echo $$; echo ready >&2; sleep 60`)
	var canceled time.Time
	cmd.OnStderr = func(string) {
		canceled = time.Now()
		cancel(reason)
	}
	res, err := Run(ctx, cmd)
	latency := time.Since(canceled)
	t.Logf("cancelled, killed and reaped in %v", latency)
	if latency > prompt {
		t.Errorf("took %v to stop", latency)
	}
	if !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
		t.Errorf("error %v", err)
	}
	if res.Signal != "SIGKILL" {
		t.Errorf("got %+v", res)
	}
	dead(t, res.Stdout)
}

func TestCanceledBeforeStart(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res, err := Run(ctx, bash("touch "+mark))
	if !errors.Is(err, context.Canceled) || err.Error() != "bash stopped: context canceled" || res.ExitCode != -1 {
		t.Errorf("got %+v, %v", res, err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the program was started")
	}
}

func TestContextDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, bash("sleep 60"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if _, ok := errors.AsType[*TimeoutError](err); ok {
		t.Error("the caller's deadline was reported as the command's limit")
	}
}

func TestStragglers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		held         bool
		code         int
	}{
		{name: "holds_stdout", script: `sleep 60 2>/dev/null & echo $!`, held: true},
		{name: "holds_stderr", script: `sleep 60 >/dev/null & echo $!`, held: true},
		{name: "silent", script: `sleep 60 >/dev/null 2>&1 & echo $!`},
		{name: "keeps_exit_status", script: `sleep 60 & echo $!; exit 5`, held: true, code: 5},
		{name: "job_with_group", script: `set -m; sleep 60 >/dev/null 2>&1 & echo $!`},
		{name: "talkative", script: `while :; do echo $BASHPID; sleep 0.05; done & exit 0`, held: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, err := Run(t.Context(), bash(tt.script))
			if (err != nil) != (tt.code != 0) || res.ExitCode != tt.code || res.Held != tt.held {
				t.Errorf("got %+v, %v", res, err)
			}
			if res.Duration > Grace+prompt || tt.held && res.Duration < Grace {
				t.Errorf("took %v", res.Duration)
			}
			dead(t, res.Stdout)
		})
	}
}

func TestGraceLetsOutputEnd(t *testing.T) {
	t.Parallel()
	res, err := run(t.Context(), bash(`(sleep 0.05; echo late) & echo early`), timing{grace: time.Minute, drain: time.Second})
	if err != nil || string(res.Stdout) != "early\nlate\n" || res.Held {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestGraceIsCutShort(t *testing.T) {
	t.Parallel()
	long := standardTiming()
	long.grace = time.Minute
	t.Run("by_cancellation", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cmd := bash(`(sleep 0.1; echo late; sleep 60) & echo early`)
		cmd.OnStdout = func(line string) {
			if line == "late" {
				cancel()
			}
		}
		res, err := run(ctx, cmd, long)
		if err != nil || !res.Held || string(res.Stdout) != "early\nlate\n" {
			t.Errorf("got %+v, %v", res, err)
		}
	})
	t.Run("by_timeout", func(t *testing.T) {
		t.Parallel()
		cmd := bash(`sleep 60 & echo $!`)
		cmd.Timeout, cmd.HasTimeout = 500*time.Millisecond, true
		res, err := run(t.Context(), cmd, long)
		if err != nil || !res.Held {
			t.Errorf("got %+v, %v", res, err)
		}
		dead(t, res.Stdout)
	})
	t.Run("by_flood", func(t *testing.T) {
		t.Parallel()
		cmd := bash(`(sleep 0.1; exec cat /dev/zero) & echo early`)
		cmd.MaxStdout = 1 << 10
		res, err := run(t.Context(), cmd, long)
		if _, ok := errors.AsType[*OutputError](err); !ok || res.ExitCode != 0 || len(res.Stdout) != 1<<10 {
			t.Errorf("error %v", err)
		}
	})
}

// allocated returns how many bytes f allocates, in this goroutine or another.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestFlood(t *testing.T) { // not parallel: it measures memory
	const flood = 100 << 20
	t.Run("stdout", func(t *testing.T) {
		cmd := bash(`echo $$ >&2; head -c 104857600 /dev/zero; echo survived >&2`)
		cmd.MaxStdout = 1 << 20
		var res Result
		var err error
		memory := allocated(func() { res, err = Run(t.Context(), cmd) })
		t.Logf("%v, %d KiB allocated", res.Duration, memory>>10)
		output, ok := errors.AsType[*OutputError](err)
		if !ok || output.Limit != 1<<20 || err.Error() != "bash printed more than 1 MiB and was killed" {
			t.Errorf("error %v", err)
		}
		if len(res.Stdout) != 1<<20 || !res.StdoutTruncated {
			t.Errorf("%d bytes kept, truncated: %v", len(res.Stdout), res.StdoutTruncated)
		}
		if memory > 4<<20 { // the list of processes, where their number matters, included
			t.Errorf("%d bytes allocated for an output of 1 MiB", memory)
		}
		dead(t, []byte(res.Stderr)) // not "survived"
	})
	t.Run("stdout_default_limit", func(t *testing.T) {
		var res Result
		var err error
		memory := allocated(func() { res, err = Run(t.Context(), bash(`head -c 104857600 /dev/zero`)) })
		t.Logf("%v, %d KiB allocated", res.Duration, memory>>10)
		if _, ok := errors.AsType[*OutputError](err); !ok || int64(len(res.Stdout)) != DefaultMaxStdout {
			t.Errorf("%d bytes, error %v", len(res.Stdout), err)
		}
		if memory > 2*uint64(DefaultMaxStdout)+4<<20 {
			t.Errorf("%d bytes allocated", memory)
		}
	})
	t.Run("stderr", func(t *testing.T) {
		var res Result
		var err error
		memory := allocated(func() { res, err = Run(t.Context(), bash(`head -c 104857600 /dev/zero >&2; echo survived`)) })
		t.Logf("%v, %d KiB allocated", res.Duration, memory>>10)
		if err != nil || string(res.Stdout) != "survived\n" {
			t.Errorf("got %q, %v", res.Stdout, err)
		}
		if res.StderrOmitted != flood-DefaultMaxStderr || int64(len(res.Stderr)) > DefaultMaxStderr+64 {
			t.Errorf("%d bytes kept, %d omitted", len(res.Stderr), res.StderrOmitted)
		}
		if memory > 1<<20 {
			t.Errorf("%d bytes allocated", memory)
		}
	})
}

func TestOutputLimitIsInclusive(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1, 5, chunk, chunk + 1, 100_000} {
		cmd := bash("head -c " + strconv.FormatInt(size, 10) + " /dev/zero")
		cmd.MaxStdout = size
		if res, err := Run(t.Context(), cmd); err != nil || int64(len(res.Stdout)) != size || res.StdoutTruncated {
			t.Errorf("%d of %d bytes: got %d, %v", size, size, len(res.Stdout), err)
		}
		if size == 1 {
			continue // zero would mean the default
		}
		cmd.MaxStdout = size - 1
		res, err := Run(t.Context(), cmd)
		if _, ok := errors.AsType[*OutputError](err); !ok || int64(len(res.Stdout)) != size-1 {
			t.Errorf("%d of %d bytes: got %d, %v", size, size-1, len(res.Stdout), err)
		}
	}
}

func TestStderrKeepsBothEnds(t *testing.T) {
	t.Parallel()
	cmd := bash(`echo first >&2; head -c 1000000 /dev/zero >&2; echo last >&2; exit 9`)
	cmd.MaxStderr = 16
	res, err := Run(t.Context(), cmd)
	want := "first\n\x00\x00\n... 999995 bytes omitted ...\n\x00\x00\x00last\n"
	if res.Stderr != want || res.StderrOmitted != 999995 {
		t.Errorf("got %q, omitted %d", res.Stderr, res.StderrOmitted)
	}
	if exit, ok := errors.AsType[*ExitError](err); !ok || exit.Stderr != strings.TrimSpace(want) {
		t.Errorf("error %v", err)
	}
}

func TestLongStderrInMessage(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), bash(`head -c 20000 /dev/zero | tr '\0' x >&2; echo end >&2; exit 1`))
	exit, ok := errors.AsType[*ExitError](err)
	if !ok || len(exit.Stderr) != 20003 {
		t.Fatalf("error %v", err)
	}
	if text := err.Error(); len(text) > maxErrorStderr+100 || !strings.HasSuffix(text, "xend") {
		t.Errorf("a message of %d bytes that ends with %q", len(text), text[len(text)-10:])
	}
}

func TestBinaryOutput(t *testing.T) {
	t.Parallel()
	res, err := Run(t.Context(), bash(`for i in {0..255}; do printf "\\x$(printf %x $i)"; done; printf 'a\xffb\xc3' >&2`))
	want := make([]byte, 256)
	for i := range want {
		want[i] = byte(i)
	}
	if err != nil || !bytes.Equal(res.Stdout, want) {
		t.Errorf("got %q, %v", res.Stdout, err)
	}
	if res.Stderr != "a\uFFFDb\uFFFD" {
		t.Errorf("stderr %q", res.Stderr)
	}
}

func TestObservers(t *testing.T) {
	t.Parallel()
	cmd := bash(`printf 'one\r\n\ntwo\xff\n'; echo err >&2; head -c 70000 /dev/zero | tr '\0' x; printf '\nlast'`)
	var out, errs []string
	cmd.OnStdout = func(line string) { out = append(out, line) }
	cmd.OnStderr = func(line string) { errs = append(errs, line) }
	if _, err := Run(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	want := []string{"one", "", "two\uFFFD", strings.Repeat("x", maxLine), strings.Repeat("x", 70000-maxLine), "last"}
	if strings.Join(out, "|") != strings.Join(want, "|") {
		t.Errorf("stdout %.300q", out)
	}
	if strings.Join(errs, "|") != "err" {
		t.Errorf("stderr %q", errs)
	}
}

// zeros is an endless input.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// failing is an input that breaks off.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestStdin(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, tt := range []struct {
		name, script string
		in           io.Reader
		want, err    string
	}{
		{name: "none", script: `cat; echo end`, want: "end\n"},
		{name: "text", script: `cat`, in: strings.NewReader("hello"), want: "hello"},
		{name: "file", script: `cat; echo end`, in: file, want: "end\n"},
		{name: "large", script: `wc -c | tr -d ' '`, in: io.LimitReader(zeros{}, 1<<20), want: "1048576\n"},
		{name: "not_wanted", script: `echo x`, in: zeros{}, want: "x\n"},
		{name: "partly_wanted", script: `head -c 3 | wc -c | tr -d ' '`, in: zeros{}, want: "3\n"},
		{name: "broken", script: `cat; echo end`, in: failing{broken}, want: "end\n", err: "standard input of bash: disk on fire"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := bash(tt.script)
			cmd.Stdin = tt.in
			res, err := Run(t.Context(), cmd)
			if string(res.Stdout) != tt.want || errorText(err) != tt.err {
				t.Errorf("got %q, %v", res.Stdout, err)
			}
			if tt.err != "" && !errors.Is(err, broken) {
				t.Errorf("the cause is lost: %v", err)
			}
		})
	}
}

func TestStdinThatBlocks(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close() // ends the pending Read
	cmd := bash(`echo x`)
	cmd.Stdin = r
	res, err := Run(t.Context(), cmd)
	if err != nil || string(res.Stdout) != "x\n" || res.Duration > Grace+prompt {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestEnvironmentIsComplete(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{nil, {}, {"ONLY=this"}} {
		res, err := Run(t.Context(), Command{Path: "/usr/bin/env", Env: env})
		if want := strings.Join(env, "\n"); err != nil || strings.TrimSpace(string(res.Stdout)) != want {
			t.Errorf("got %q, %v, want %q", res.Stdout, err, want)
		}
	}
}

func TestLookupUsesChildsPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bash"), []byte("#!/bin/sh\necho mine \"$0\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	res, err := Run(t.Context(), Command{Path: "bash", Env: []string{"PATH=/none", "PATH=rel:" + dir + ":/usr/bin:/bin"}})
	if err != nil || string(res.Stdout) != "mine "+dir+"/bash\n" {
		t.Errorf("got %q, %v", res.Stdout, err)
	}
}

func TestWorkingDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	syscall.ForkLock.RLock() // a program that another test starts meanwhile would hold the file open, which keeps it from being executed
	err := os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\npwd\n"), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(t.Context(), Command{Path: "./tool", Dir: dir})
	if real, _ := filepath.EvalSymlinks(dir); err != nil || strings.TrimSpace(string(res.Stdout)) != real {
		t.Errorf("got %q, %v", res.Stdout, err)
	}
}

func TestParallelRuns(t *testing.T) {
	t.Parallel()
	var runs sync.WaitGroup
	for i := range 32 {
		runs.Go(func() {
			id := strconv.Itoa(i)
			cmd := bash(`read -r x; echo "$x $ID"; echo "$ID" >&2; exit "$ID"`)
			cmd.Env = append(cmd.Env, "ID="+id)
			cmd.Stdin = strings.NewReader("in" + id + "\n")
			res, err := Run(t.Context(), cmd)
			if (err != nil) != (i != 0) || res.ExitCode != i || string(res.Stdout) != "in"+id+" "+id+"\n" || res.Stderr != id+"\n" {
				t.Errorf("run %d: got %+v, %v", i, res, err)
			}
		})
	}
	runs.Wait()
}

// TestThreadsMayEnd ends threads while programs run: none may be one that started a
// program, as that would send the parent-death signal. Without the lock a goroutine
// moves to another thread only now and then, hence the crowd.
func TestThreadsMayEnd(t *testing.T) {
	const programs = 40
	var started, runs sync.WaitGroup
	started.Add(programs)
	for range programs {
		runs.Go(func() {
			cmd := bash(`echo started; read -r; echo alive`)
			r, w, err := os.Pipe()
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			cmd.Stdin = r
			cmd.OnStdout = func(line string) {
				if line == "started" {
					started.Done()
					started.Wait()
					for range 20 {
						go runtime.LockOSThread() // the thread ends with the goroutine
					}
					w.Close()
				}
			}
			if res, err := Run(t.Context(), cmd); string(res.Stdout) != "started\nalive\n" {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
	runs.Wait()
}

// TestAbandon covers a leader that cannot be killed, which no test can make: it gives
// up one that is merely alive.
func TestAbandon(t *testing.T) {
	t.Parallel()
	cmd := bash(`echo $$; sleep 60`)
	ready := make(chan struct{})
	cmd.OnStdout = func(string) { close(ready) }
	p, err := launch(&cmd, true)
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	res, err := p.finish(stopError(canceledContext(t), "bash"), false, standardTiming())
	want := "bash stopped: context canceled; process " + strconv.Itoa(p.pid) + " could not be killed"
	if errorText(err) != want || !errors.Is(err, context.Canceled) || res.ExitCode != -1 || string(res.Stdout) != strconv.Itoa(p.pid)+"\n" {
		t.Errorf("got %+v, %v", res, err)
	}
	p.tree.killGroup()
	<-p.reaped // the waiting goroutine was left to see to it
}

func canceledContext(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
