//go:build amd64 || arm64

package escapetest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"loki/internal/base/process/sandbox"
)

// attempt is a way out.
type attempt struct {
	gain    string       // what it would be good for
	try     func(*child) // in the child
	control string       // why it is not made without the sandbox; empty if it is, and succeeds
	network bool         // it is made at the level network, too
	program string       // that it needs
	alone   bool         // it changes or ends the process that makes it
}

// attempts returns all by their names.
func attempts() map[string]attempt {
	all := map[string]attempt{}
	for _, some := range []map[string]attempt{fileAttempts, gitAttempts, processAttempts, namespaceAttempts, networkAttempts, kernelAttempts, foreignAttempts} {
		maps.Copy(all, some)
	}
	for name, path := range secretFiles {
		all["read_"+name] = attempt{gain: "a secret", try: func(c *child) { c.read(c.home(path), filepath.Dir(c.home(path))+"/./"+filepath.Base(path)) }}
		all["cat_"+name] = attempt{gain: "a secret", try: func(c *child) { c.run("cat", c.home(path)) }}
	}
	return all
}

func TestThereAreManyAttempts(t *testing.T) {
	t.Parallel()
	all, secrets := attempts(), 0
	for name, a := range all {
		if a.gain == "a secret" {
			secrets++
		}
		if a.try == nil || a.gain == "" {
			t.Errorf("%s is incomplete", name)
		}
	}
	if len(all) < 150 || secrets < 40 {
		t.Errorf("%d attempts, %d for secrets", len(all), secrets)
	}
}

// full reports whether every attempt is made everywhere.
func full() bool { return os.Getenv("LOKI_TEST") == "full" }

// TestEscapes makes all attempts at each level. To be quick, a child makes many, one after the other; if
// there is an effect, each is made alone, to find whose it is.
func TestEscapes(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.Read, sandbox.Write, sandbox.Network} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			whole := t
			w := newWorld(t, level)
			if s := w.sandbox.Support(); !s.Files {
				t.Skip(s.Missing)
			}
			all := attempts()
			var together, alone []string
			for _, name := range slices.Sorted(maps.Keys(all)) {
				switch a := all[name]; {
				case level == sandbox.Network && !a.network && !full():
				case a.program != "" && missing(a.program):
				case a.alone || full():
					alone = append(alone, name)
				default:
					together = append(together, name)
				}
			}
			for batch := range slices.Chunk(together, 20) {
				if found, _ := w.try(t, batch...); len(found) > 0 {
					w = newWorld(t, level)
					alone = append(alone, batch...)
				}
			}
			for _, name := range alone {
				t.Run(name, func(t *testing.T) {
					if found, out := w.try(t, name); len(found) > 0 {
						t.Errorf("the sandbox lets a child have %s:\n%s\n\nit printed:\n%.3000s", all[name].gain, strings.Join(found, "\n"), out)
						w = newWorld(whole, level)
					}
				})
			}
			if found := w.effects(t, ""); len(found) > 0 { // that came late
				t.Errorf("some attempt had: %s", strings.Join(found, "\n"))
			}
		})
	}
}

// try makes attempts in one box, and returns their effects and what they printed.
func (w *world) try(t *testing.T, names ...string) (found []string, out string) {
	t.Helper()
	out = w.run(t, true, names...)
	return append(w.effects(t, out), w.survivors()...), out
}

func missing(program string) bool {
	_, err := exec.LookPath(program)
	return err != nil
}

// TestControls makes the attempts without a sandbox: each must succeed, or it would prove nothing.
func TestControls(t *testing.T) {
	t.Parallel()
	all := attempts()
	names := slices.Sorted(maps.Keys(all))
	for i, name := range names {
		a := all[name]
		if a.control != "" || !full() && i%6 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if a.program != "" && missing(a.program) {
				t.Skip("there is no " + a.program)
			}
			w := newWorld(t, sandbox.Read)
			out := w.run(t, false, name)
			found := w.effects(t, out)
			for end := time.Now().Add(2 * time.Second); len(found) == 0 && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
				found = append(w.effects(t, out), w.survivors()...)
			}
			if len(found) == 0 && !limited(out) {
				t.Errorf("without a sandbox it has no effect; it printed:\n%.3000s", out)
			}
		})
	}
}

// limited reports whether this machine itself keeps a child from something.
func limited(out string) bool {
	return strings.Contains(out, "operation not permitted") || strings.Contains(out, "function not implemented") || strings.Contains(out, "permission denied") || strings.Contains(out, "Operation not permitted")
}

// survivors returns processes of attempts that are still there, and ends them.
func (w *world) survivors() []string {
	var found []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && bytes.Contains(line, []byte("loki-daemon-"+w.Nonce)) {
			var pid int
			if _, err := fmt.Sscan(e.Name(), &pid); err == nil && pid > 1 {
				found = append(found, "a process lives: "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
	return found
}

// again runs the attempts by a program that changes the user, or what the kernel gives.
func again(t *testing.T, program string, args ...string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "escape")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o777))
	exe, err := os.Executable()
	must(t, err)
	data, err := os.ReadFile(exe)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "t"), data, 0o755))
	args = append(args, filepath.Join(dir, "t"), "-test.run=^TestEscapes$", "-test.timeout=100s")
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%.20000s", err, out.String())
	}
}

// TestAsUser makes the attempts as an ordinary user.
func TestAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the other tests run as one")
	}
	if !full() {
		t.Skip("LOKI_TEST=full runs it")
	}
	if missing("unshare") || missing("setpriv") {
		t.Skip("there is no unshare, or no setpriv")
	}
	// With a /proc of their own, as that of a machine can be closed to users.
	again(t, "unshare", "-mpf", "--mount-proc", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
}

// TestWithoutNamespaces makes the attempts where the kernel gives no namespaces to users.
func TestWithoutNamespaces(t *testing.T) {
	if !full() {
		t.Skip("LOKI_TEST=full runs it")
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command("unshare", "-Ur", "true").CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	again(t, "unshare", "-Ur", "sh", "-c", `for k in user mnt net ipc pid; do echo 0 >/proc/sys/user/max_${k}_namespaces; done; exec "$@"`, "sh")
}
