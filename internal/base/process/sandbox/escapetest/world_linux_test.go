//go:build amd64 || arm64

// Package escapetest tries to get out of the sandbox, and judges by effects: files that changed, servers that heard
// something, signals that arrived, secrets that were printed, and things of the kernel that were had. Each attempt is also
// made without the sandbox, where its effect must be seen: an attempt that cannot succeed proves nothing.
package escapetest

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text/pattern"
)

const (
	roleVariable  = "LOKI_ESCAPE_ROLE" // attempt, victim; none for the tests
	worldVariable = "LOKI_ESCAPE_WORLD"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "attempt":
		os.Exit(runAttempts(os.Args[1:]))
	case "adversary":
		os.Exit(runAdversary(os.Args[1:]))
	case "victim":
		os.Exit(runVictim())
	}
	if underRace {
		fmt.Println("not with the race detector: the children are tried here, which are slow with it")
		return
	}
	os.Exit(m.Run())
}

// world is what a child could harm: the files of a user, of whom one directory is the workspace, processes, servers. The
// exported part is known to the child.
type world struct {
	Nonce                    string // in all secrets
	Home, Workspace, Outside string
	Temp                     []string // files of other programs, in directories for temporary files
	Parent, Victim           int
	Memory                   uint64            // address of a secret in the victim
	TCP, UDP                 []string          // addresses of servers
	Unix                     map[string]string // path of a server by a name
	Abstract                 string            // name of such a server
	Shm                      int               // id of shared memory
	Network                  bool              // the level is network

	root    string // of all files
	program string // what children execute, in the workspace
	level   sandbox.Level
	mu      sync.Mutex
	heard   []string
	before  map[string]string
	sandbox *sandbox.Sandbox
}

// secret returns the text of a secret.
func (w *world) secret(name string) string { return "SECRET-" + w.Nonce + "-" + name }

// hear notes that something reached a part of the world.
func (w *world) hear(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, fmt.Sprintf(format, args...))
}

// secretFiles are files of the user below the home directory, by the name of their secret.
var secretFiles = map[string]string{
	"ssh": ".ssh/id_ed25519", "aws": ".aws/credentials", "netrc": ".netrc", "git": ".git-credentials", "history": ".bash_history", "vault": ".config/loki/vault.yaml",
	"password": ".config/loki/vault.password", "session": ".local/state/loki/sessions/1.json", "docker": ".docker/config.json", "kube": ".kube/config",
	"gnupg": ".gnupg/private-keys-v1.d/key", "npm": ".npmrc", "diary": "Documents/diary.txt", "other_env": "src/other/.env", "other_code": "src/other/main.go",
	"env": "src/project/.env", "deep_env": "src/project/a/b/.env", "gh": ".config/gh/hosts.yml", "pgpass": ".pgpass", "cookies": ".mozilla/firefox/x/cookies.sqlite",
	"cargo": ".cargo/credentials.toml", "maven": ".m2/settings.xml", "dotfile": ".secretrc", "config": ".config/app/token",
}

// otherFiles are further files.
var otherFiles = map[string]string{
	".bashrc": "# bash\n", ".profile": "# profile\n", ".gitconfig": "[user]\n\tname = U\n\temail = u@example.com\n", ".cargo/bin/tool": "#!/bin/sh\n", ".local/bin/tool": "#!/bin/sh\n",
	".ssh/authorized_keys": "", "outside/file": "outside\n", "outside/dir/file": "outside\n", "outside/dir/empty/x": "",
	"src/project/file": "file\n", "src/project/a/file": "file\n", "src/project/.vscode/tasks.json": "{}\n", "src/project/.envrc": "# direnv\n",
	"src/project/.git/hooks/pre-push": "#!/bin/sh\n", "src/project/.github/workflows/ci.yml": "on: push\n", "src/project/node_modules/.bin/tool": "#!/bin/sh\n",
	"src/project/.venv/bin/python": "#!/bin/sh\n", "src/project/.mcp.json": "{}\n", "src/project/package.json": "{}\n", ".local/state/loki/sandbox/x": "",
}

// newWorld makes a world and starts what is in it.
func newWorld(t testing.TB, level sandbox.Level) *world {
	t.Helper()
	w := &world{Nonce: rand.Text(), Unix: map[string]string{}, level: level, Network: level == sandbox.Network, Parent: os.Getpid()}
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	w.root = filepath.Join(base, "r")
	w.Home, w.Outside = filepath.Join(w.root, "home"), filepath.Join(w.root, "home/outside")
	w.Workspace = filepath.Join(w.Home, "src/project")
	for path, text := range otherFiles {
		w.plant(t, filepath.Join(w.Home, path), text)
	}
	for name, path := range secretFiles {
		w.plant(t, filepath.Join(w.Home, path), w.secret(name)+"\n")
	}
	for _, git := range [][]string{{"init", "-q"}, {"add", "file"}, {"-c", "user.name=u", "-c", "user.email=u@example.com", "commit", "-qm", "x"}} {
		cmd := exec.Command("git", git...)
		cmd.Dir, cmd.Env = w.Workspace, append(os.Environ(), "HOME="+w.Home, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("git: %v: %s", err, out)
		}
	}
	must(t, os.Symlink(w.Outside, filepath.Join(w.Workspace, "link-dir")))
	must(t, os.Symlink(filepath.Join(w.Outside, "file"), filepath.Join(w.Workspace, "link-file")))
	must(t, os.Symlink(filepath.Join(w.Home, ".ssh/id_ed25519"), filepath.Join(w.Workspace, "link-secret")))
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		path := filepath.Join(dir, "loki-escape-"+w.Nonce)
		if os.WriteFile(path, []byte(w.secret("temp")+"\n"), 0o666) == nil {
			w.Temp = append(w.Temp, path)
			t.Cleanup(func() { os.Remove(path) })
		}
	}
	w.program = filepath.Join(w.Workspace, "escape")
	exe, err := os.Executable()
	must(t, err)
	if os.Link(exe, w.program) != nil {
		data, err := os.ReadFile(exe)
		must(t, err)
		must(t, os.WriteFile(w.program, data, 0o755))
	}
	w.listen(t)
	w.startVictim(t)
	w.share(t)
	data, err := json.Marshal(w)
	must(t, err)
	w.plant(t, filepath.Join(w.Workspace, "world.json"), string(data))
	dotenv, err := pattern.Compile(w.Workspace + "/**/.env")
	must(t, err)
	w.sandbox = sandbox.New(sandbox.Options{
		Workspace: w.Workspace, Home: w.Home, Getenv: os.Getenv, State: filepath.Join(w.Home, ".local/state/loki"),
		Own:    []string{filepath.Join(w.Home, ".config/loki"), filepath.Join(w.Home, ".local/state/loki")},
		Denied: dotenv.Branches(),
	})
	w.before = w.snapshot(t)
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) plant(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o755))
}

// listen starts servers that hear what reaches them, and say a secret.
func (w *world) listen(t testing.TB) {
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	stream := func(l net.Listener, name string) {
		t.Cleanup(func() { l.Close() })
		wg.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				w.hear("%s: a connection", name)
				fmt.Fprintln(conn, w.secret("server"))
				conn.Close()
			}
		})
	}
	packets := func(c net.PacketConn, name string) {
		t.Cleanup(func() { c.Close() })
		wg.Go(func() {
			for buffer := make([]byte, 1<<12); ; {
				if _, _, err := c.ReadFrom(buffer); err != nil {
					return
				}
				w.hear("%s: a packet", name)
			}
		})
	}
	hosts := []string{"127.0.0.1", "::1"}
	if own, err := net.InterfaceAddrs(); err == nil {
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.IsGlobalUnicast() {
				hosts = append(hosts, n.IP.String())
			}
		}
	}
	for _, host := range hosts {
		if l, err := net.Listen("tcp", net.JoinHostPort(host, "0")); err == nil {
			w.TCP = append(w.TCP, l.Addr().String())
			stream(l, "tcp "+host)
		}
		if c, err := net.ListenPacket("udp", net.JoinHostPort(host, "0")); err == nil {
			w.UDP = append(w.UDP, c.LocalAddr().String())
			packets(c, "udp "+host)
		}
	}
	short := w.Nonce[:8]
	for name, path := range map[string]string{
		"home": filepath.Join(w.Home, "agent.sock"), "tmp": "/tmp/loki-e-" + short, "vartmp": "/var/tmp/loki-e-" + short, "run": "/run/loki-e-" + short, "shm": "/dev/shm/loki-e-" + short,
		"runtime": fmt.Sprintf("/run/user/%d/loki-e-%s", os.Getuid(), short),
	} {
		if len(path) > 90 { // of the address of a socket
			path = "/tmp/loki-e-" + name + short
		}
		if l, err := net.Listen("unix", path); err == nil {
			w.Unix[name] = path
			stream(l, "unix "+name)
		}
		if c, err := net.ListenPacket("unixgram", path+"d"); err == nil {
			w.Unix[name+"-dgram"] = path + "d"
			t.Cleanup(func() { os.Remove(path + "d") })
			packets(c, "unixgram "+name)
		}
	}
	w.Abstract = "loki-escape-" + w.Nonce
	l, err := net.Listen("unix", "@"+w.Abstract)
	must(t, err)
	stream(l, "abstract")
	c, err := net.ListenPacket("unixgram", "@"+w.Abstract+"d")
	must(t, err)
	packets(c, "abstract packets")
}

// startVictim starts another process of the user, with secrets in its environment, arguments, memory and files.
func (w *world) startVictim(t testing.TB) {
	cmd := exec.Command("/proc/self/exe", w.secret("cmdline"))
	cmd.Env = []string{roleVariable + "=victim", "KEY=" + w.secret("environ"), "MEMORY=" + w.Nonce}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the victim says nothing")
	}
	w.Victim = cmd.Process.Pid
	_, err = fmt.Sscanf(lines.Text(), "%d", &w.Memory)
	must(t, err)
	var wg sync.WaitGroup
	ending := make(chan struct{})
	wg.Go(func() {
		for lines.Scan() {
			w.hear("victim: %s", lines.Text())
		}
		select {
		case <-ending:
		default:
			w.hear("victim: ended")
		}
	})
	t.Cleanup(func() {
		close(ending)
		in.Close()
		stuck := time.AfterFunc(2*time.Second, func() { _ = cmd.Process.Kill() }) // an attempt may have stopped it
		wg.Wait()
		stuck.Stop()
		_ = cmd.Wait()
	})
}

// runVictim lives until its standard input ends, and reports signals and what changes in its memory.
func runVictim() int {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGIO, syscall.SIGWINCH, syscall.SIGINT, syscall.SIGCONT)
	unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0) // Yama holds nothing
	var limit, now unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	secret := []byte("SECRET-" + os.Getenv("MEMORY") + "-memory\n")
	f, err := os.CreateTemp("", "victim")
	if err != nil {
		return 1
	}
	os.Remove(f.Name())
	_, _ = f.Write([]byte("SECRET-" + os.Getenv("MEMORY") + "-descriptor\n"))
	fmt.Println(uintptr(unsafe.Pointer(&secret[0])))
	done := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(done) }() // ends with the process
	for {
		select {
		case s := <-signals:
			fmt.Println("signal", s)
		case <-done:
			if !strings.HasPrefix(string(secret), "SECRET-") {
				fmt.Println("memory was written")
			}
			if _ = unix.Getrlimit(unix.RLIMIT_NOFILE, &now); now != limit {
				fmt.Println("limits were changed")
			}
			return 0
		}
	}
}

// share makes memory that processes share by a number.
func (w *world) share(t testing.TB) {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		w.Shm = -1
		return
	}
	w.Shm = id
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	data, err := unix.SysvShmAttach(id, 0, 0)
	must(t, err)
	copy(data, w.secret("shm"))
	must(t, unix.SysvShmDetach(data))
}

// protected reports whether a path below the workspace must not change at the level write.
func protected(path string) bool {
	for _, p := range []string{
		".git/hooks", ".git/config", ".git/info/attributes", ".git/modules", ".git/commondir", ".gitmodules", ".envrc", ".vscode", ".idea", ".github/workflows", ".gitlab-ci.yml", ".husky",
		".pre-commit-config.yaml", ".venv", ".npmrc", ".yarnrc.yml", ".mcp.json", "AGENTS.md", ".env",
		"a/.git/config", "a/.git/hooks", "new/.git/config", "new/.git/hooks", "a/.envrc", "a/.vscode", "a/.venv", "a/.npmrc", "link-dir", "link-file",
	} {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return path == ".git" // a directory, and the same one
}

// snapshot returns what is known of each file that must not change.
func (w *world) snapshot(t testing.TB) map[string]string {
	files := map[string]string{}
	look := func(path string) {
		info, err := os.Lstat(path)
		if err != nil {
			return
		}
		st := info.Sys().(*syscall.Stat_t)
		text := fmt.Sprint(info.Mode(), st.Uid, st.Gid, info.ModTime().UnixNano())
		if rel, err := filepath.Rel(w.Workspace, path); err == nil && rel == ".git" {
			text = fmt.Sprint(info.Mode(), st.Ino) // git writes in it
		} else if !info.IsDir() {
			text += fmt.Sprint(" links ", st.Nlink)
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			text += " to " + target
		case info.Mode().IsRegular() && info.Size() < 1<<20:
			data, _ := os.ReadFile(path)
			text += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		var names [1 << 12]byte
		if n, err := unix.Llistxattr(path, names[:]); err == nil && n > 0 {
			text += fmt.Sprintf(" attributes %q", names[:n])
		}
		files[path] = text
	}
	must(t, filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what vanishes is missing
		}
		if path == w.program {
			return nil
		}
		if rel, err := filepath.Rel(w.Workspace, path); err == nil && !strings.HasPrefix(rel, "..") && w.level != sandbox.Read && (!protected(rel) || w.Network && strings.Contains(rel, ".venv")) && (d.IsDir() || d.Name() != ".git") {
			return nil
		}
		if strings.HasPrefix(path, filepath.Join(w.Home, ".local/state/loki/sandbox")) {
			return nil
		}
		look(path)
		return nil
	}))
	for _, path := range slices.Concat(w.Temp, systemFiles(w.Nonce)) {
		look(path)
	}
	return files
}

// systemFiles are paths that attempts try to make, in places of the system.
func systemFiles(nonce string) []string {
	var list []string
	for _, dir := range []string{
		"/etc/cron.d", "/etc/profile.d", "/etc/ld.so.conf.d", "/usr/local/bin", "/usr/lib", "/var/spool/cron/crontabs", "/var/spool/cron", "/run/systemd/system", "/etc/systemd/system",
		"/etc/sudoers.d", "/opt", "/var/lib", "/dev", "/run", "/tmp", "/var/tmp", "/dev/shm", "/sys/fs/cgroup", "/root", "/", "/etc/apt/apt.conf.d", "/usr/share/bash-completion/completions", "/boot", "/dev/mqueue", "/home", "/srv", "/mnt",
	} {
		list = append(list, filepath.Join(dir, "loki-escaped-"+nonce))
	}
	return list
}

// effects are what has happened since the world was made.
func (w *world) effects(t testing.TB, output string) []string {
	var found []string
	after := w.snapshot(t)
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if was, ok := w.before[path]; !ok {
			found = append(found, "new: "+path)
		} else if was != after[path] {
			found = append(found, fmt.Sprintf("changed: %s: %s, was %s", path, after[path], was))
		}
	}
	for path := range w.before {
		if _, ok := after[path]; !ok {
			found = append(found, "gone: "+path)
		}
	}
	for _, path := range systemFiles(w.Nonce) {
		_ = os.RemoveAll(path)
	}
	w.mu.Lock()
	found = append(found, w.heard...)
	w.mu.Unlock()
	for line := range strings.Lines(output) {
		if strings.Contains(line, "SECRET-"+w.Nonce) || strings.HasPrefix(line, "GAINED") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// run makes attempts in a box, or without one, and returns what they printed.
func (w *world) run(t testing.TB, confined bool, names ...string) string {
	t.Helper()
	env := []string{
		roleVariable + "=attempt", worldVariable + "=" + filepath.Join(w.Workspace, "world.json"), "HOME=" + w.Home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(),
		"DBUS_SESSION_BUS_ADDRESS=unix:path=" + w.Unix["home"], "SSH_AUTH_SOCK=" + w.Unix["home"], "GIT_CONFIG_NOSYSTEM=1", "GOTRACEBACK=none", "GOMAXPROCS=2",
	}
	c := process.Command{Path: w.program, Args: names, Dir: w.Workspace, Env: env, Timeout: 30 * time.Second, HasTimeout: true, MaxStdout: 1 << 22}
	if confined {
		c.Confinement = w.sandbox.Box(w.declaration(), sandbox.Needs{})
	}
	r, err := process.Run(context.WithoutCancel(t.Context()), c)
	var start *process.StartError
	if errors.As(err, &start) || err != nil && r.ExitCode == -1 && r.Signal == "" {
		t.Errorf("did not run: %v", err)
	}
	out := string(r.Stdout) + r.Stderr
	if len(names) > 1 && !strings.Contains(out, "attempts end") {
		t.Errorf("%v did not come to the end: %v\n%s", names, err, out)
	}
	return out
}

func (w *world) declaration() sandbox.Declaration {
	d := sandbox.Declaration{Level: w.level}
	if w.Network {
		d.Hosts = []string{"allowed.example", "*.allowed.example"}
	}
	return d
}

// child is an attempt under way, in the child.
type child struct {
	world
	name string
}

func runAttempts(names []string) int {
	c := &child{}
	data, err := os.ReadFile(os.Getenv(worldVariable))
	if err == nil {
		err = json.Unmarshal(data, &c.world)
	}
	if err != nil {
		fmt.Println("GAINED nothing, the attempts cannot begin:", err)
		return 2
	}
	all := attempts()
	for _, name := range names {
		fmt.Println("attempt", name)
		c.name = name
		all[name].try(c)
	}
	fmt.Println("attempts end")
	return 0
}

// gained reports that something was had that the sandbox should keep.
func (c *child) gained(format string, args ...any) {
	fmt.Println("GAINED " + fmt.Sprintf(format, args...))
}

// note prints why an attempt failed, for those who read the output.
func (c *child) note(err error) { fmt.Println("stopped:", err) }

// call makes a system call, and reports a gain if it succeeds.
func (c *child) call(what string, number uintptr, args ...uintptr) uintptr {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		c.note(fmt.Errorf("%s: %w", what, errno))
		return ^uintptr(0)
	}
	c.gained("%s", what)
	return r
}

// read prints what is in a file.
func (c *child) read(paths ...string) {
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			c.note(err)
			continue
		}
		data, err := io.ReadAll(io.LimitReader(f, 1<<16))
		fmt.Println(path, strings.ReplaceAll(string(data), "\x00", "\n"), err)
		f.Close()
	}
}

// write writes into files.
func (c *child) write(paths ...string) {
	for _, path := range paths {
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(c.name+"\n"), 0o755); err != nil {
			c.note(err)
		}
	}
}

// run runs a program.
func (c *child) run(program string, args ...string) {
	out, err := exec.Command(program, args...).CombinedOutput()
	fmt.Println(string(out), err)
}

// sh runs a command of bash.
func (c *child) sh(text string) { c.run("bash", "-c", text) }

func (c *child) home(path string) string   { return filepath.Join(c.Home, path) }
func (c *child) out(path string) string    { return filepath.Join(c.Outside, path) }
func (c *child) inside(path string) string { return filepath.Join(c.Workspace, path) }
func (c *child) temp(path string) string   { return filepath.Join(os.TempDir(), path) }
func (c *child) proc(path string) string   { return filepath.Join("/proc", strconv.Itoa(c.Victim), path) }

func (c *child) pointer(s string) uintptr {
	p, _ := unix.BytePtrFromString(s)
	return uintptr(unsafe.Pointer(p))
}

func (c *child) dial(network, at string) {
	conn, err := net.DialTimeout(network, at, 2*time.Second)
	if err != nil {
		c.note(err)
		return
	}
	defer conn.Close()
	fmt.Fprintln(conn, c.name)
	_ = conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
	data, _ := io.ReadAll(conn)
	fmt.Println(string(data))
}
