//go:build amd64 || arm64

package sandbox_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
)

// world is a home directory with a workspace in it and things that a child must not reach.
type world struct {
	home, workspace, outside string
	options                  sandbox.Options
	plain                    bool // without namespaces
}

// box returns a box in the world.
func (w *world) box(d sandbox.Declaration, n sandbox.Needs) *sandbox.Box {
	s := sandbox.New(w.options)
	if w.plain {
		s.WithoutNamespaces()
	}
	return s.Box(d, n)
}

// both runs a test with namespaces and without.
func both(t *testing.T, test func(t *testing.T, plain bool)) {
	t.Helper()
	for name, plain := range map[string]bool{"namespaces": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, plain)
		})
	}
}

func newWorld(t *testing.T, plain bool) *world {
	t.Helper()
	w := &world{home: t.TempDir(), plain: plain}
	w.workspace, w.outside = filepath.Join(w.home, "src", "project"), filepath.Join(w.home, "outside")
	for path, text := range map[string]string{
		"src/project/go.mod": "module project\n", "src/project/sub/a.txt": "text of a\n", "src/project/.env": "KEY=secret-env\n",
		"src/project/.git/config": "[core]\n", "src/project/.git/hooks/x": "", ".ssh/id": "secret-ssh\n", "outside/file": "secret-outside\n",
		"state/loki/vault": "secret-vault\n", "config/loki/config.yaml": "secret-config\n",
	} {
		w.write(t, path, text)
	}
	w.options = sandbox.Options{
		Workspace: w.workspace, Home: w.home, Getenv: os.Getenv,
		Own: []string{filepath.Join(w.home, "state", "loki"), filepath.Join(w.home, "config", "loki")},
	}
	if !sandbox.New(w.options).Support().Files {
		t.Skip(sandbox.New(w.options).Support().Missing)
	}
	return w
}

func (w *world) write(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(w.home, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a program in a box and returns what it printed on both streams.
func (w *world) run(t *testing.T, d sandbox.Declaration, program string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip(err)
	}
	b := w.box(d, sandbox.Needs{})
	r, err := process.Run(t.Context(), process.Command{
		Path: program, Args: args, Dir: w.workspace, Confinement: b,
		Env: append(os.Environ(), "HOME="+w.home, "OUT="+w.outside, "MY_SECRET=secret-variable"),
	})
	return string(r.Stdout) + r.Stderr, err
}

var read = sandbox.Declaration{Level: sandbox.Read}

func TestReadAllows(t *testing.T) {
	t.Parallel()
	both(t, testReadAllows)
}

func testReadAllows(t *testing.T, plain bool) {
	w := newWorld(t, plain)
	for _, tt := range []struct{ name, command, want string }{
		{"workspace", "cat go.mod sub/a.txt && ls", "module project\ntext of a\ngo.mod\nsub\n"},
		{"temporary_files", `f=$(mktemp) && echo x >"$f" && mkdir "$TMPDIR/d" && mv "$f" "$TMPDIR/d/g" && cat "$TMPDIR/d/g" && rm -r "$TMPDIR/d"`, "x\n"},
		{"devices", "echo x >/dev/null && head -c 3 /dev/zero | wc -c", "3\n"},
		{"process_substitution", "cat <(echo a) <(echo b)", "a\nb\n"},
		{"here_document", "cat <<E\na\nE", "a\n"},
		{"environment", "echo $MY_SECRET", "secret-variable\n"},
		{"signals_to_own", "sleep 60 & kill $!; wait $! || echo $?", "143\n"},
		{"status", "(exit 3) || echo $?", "3\n"},
		{"descriptors", "ls /proc/self/fd 2>/dev/null | wc -l; for i in 3 4 5 6 7 8 9; do { true <&$i; } 2>/dev/null && echo open $i; done; true", "0\n"},
		{"new_privileges", "grep -h NoNewPrivs /proc/self/status 2>/dev/null; ulimit -c", "0\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := w.run(t, read, "bash", "-c", tt.command)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestReadStops(t *testing.T) {
	t.Parallel()
	both(t, testReadStops)
}

func testReadStops(t *testing.T, plain bool) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	_, port, _ := net.SplitHostPort(server.Addr().String())
	for _, tt := range []struct{ name, command string }{
		{"other_files", "cat $OUT/file"},
		{"credentials", "cat ~/.ssh/id"},
		{"own_files", "cat ~/state/loki/vault ~/config/loki/config.yaml"},
		{"environment_of_the_parent", "cat /proc/$PPID/environ"},
		{"command_line_of_the_parent", "cat /proc/$PPID/cmdline | grep ."},
		{"root_of_the_parent", "cat /proc/$PPID/root/etc/passwd"},
		{"link", "ln -s $OUT/file $TMPDIR/l && cat $TMPDIR/l"},
		{"hard_link", "ln $OUT/file $TMPDIR/l"},
		{"new_file", "echo x >new"},
		{"change", "echo x >>go.mod"},
		{"truncate", ": >go.mod"},
		{"truncate_by_call", "truncate -s 0 go.mod"},
		{"remove", "rm -f go.mod"},
		{"rename", "mv go.mod go.sum"},
		{"mode", "chmod 600 go.mod"},
		{"time", "touch -d 2001-01-01 go.mod"},
		{"owner", "chown 12345 go.mod"},
		{"signal", `test "$PPID" != 0 && kill -0 "$PPID"`},
		{"connection", "echo x >/dev/tcp/127.0.0.1/" + port},
		{"shared_temporary_directory", "echo x >/tmp/loki-sandbox-test; exit 1"},
		{"temporary_directories_of_others", "ls $TMPDIR/.."},
		{"namespaces", "unshare -Ur true"},
		{"mounts", "mount -t tmpfs none $TMPDIR"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain)
			before := w.content(t)
			got, err := w.run(t, read, "bash", "-c", tt.command)
			if err == nil {
				t.Errorf("succeeded: %s", got)
			}
			if strings.Contains(got, "secret-") {
				t.Errorf("read: %s", got)
			}
			if after := w.content(t); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// content returns all files with their modes, times and texts.
func (w *world) content(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.Walk(w.home, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		all.WriteString(path + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		if info.Mode().IsRegular() {
			text, _ := os.ReadFile(path)
			all.Write(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestReadRunsPrograms(t *testing.T) {
	t.Parallel()
	both(t, testReadRunsPrograms)
}

func testReadRunsPrograms(t *testing.T, plain bool) {
	w := newWorld(t, plain)
	w.options.Home, _ = os.UserHomeDir()
	w.write(t, "src/project/main.go", "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hi\") }\n")
	for _, tt := range []struct {
		name, program string
		args          []string
		want          string
	}{
		{"dash", "dash", []string{"-c", "echo hi"}, "hi"},
		{"git", "git", []string{"--version"}, "git version"},
		{"node", "node", []string{"-e", "require('child_process').execSync('echo hi',{stdio:'inherit'})"}, "hi"},
		{"python", "python3", []string{"-c", "import subprocess,tempfile\nwith tempfile.TemporaryDirectory() as d: print(subprocess.check_output(['echo','hi'],cwd=d).decode())"}, "hi"},
		{"go", "go", []string{"run", "main.go"}, "hi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && tt.name == "go" {
				t.Skip("compiles the standard library")
			}
			got, err := w.run(t, read, tt.program, tt.args...)
			if err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestTemporaryDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	both(t, testTemporaryDirectoryIsRemoved)
}

func testTemporaryDirectoryIsRemoved(t *testing.T, plain bool) {
	w := newWorld(t, plain)
	b := w.box(read, sandbox.Needs{})
	_, err := process.Run(t.Context(), process.Command{
		Path: "bash", Args: []string{"-c", "mkdir -p $TMPDIR/a/b && : >$TMPDIR/a/b/c && chmod 500 $TMPDIR/a || true"}, Dir: w.workspace, Env: os.Environ(), Confinement: b,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.Temp()); b.Temp() == "" || !os.IsNotExist(err) {
		t.Errorf("%s: %v", b.Temp(), err)
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	both(t, testStartErrors)
}

func testStartErrors(t *testing.T, plain bool) {
	w := newWorld(t, plain)
	w.write(t, "src/project/plain", "not a program\n")
	if err := os.Chmod(filepath.Join(w.workspace, "plain"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := w.box(read, sandbox.Needs{})
	_, err := process.Run(t.Context(), process.Command{Path: "./plain", Dir: w.workspace, Confinement: b})
	if err == nil || !strings.Contains(err.Error(), "has no #! line") {
		t.Errorf("got %v", err)
	}
}

var write = sandbox.Declaration{Level: sandbox.Write}

func TestWriteAllows(t *testing.T) {
	t.Parallel()
	both(t, testWriteAllows)
}

func testWriteAllows(t *testing.T, plain bool) {
	for _, tt := range []struct{ name, command, want string }{
		{"change", "echo x >>sub/a.txt && cat sub/a.txt", "text of a\nx\n"},
		{"new_file", "echo x >sub/new && mkdir sub/d && mv sub/new sub/d/ && cat sub/d/new && rm -r sub/d", "x\n"},
		{"new_file_at_the_top", "echo x >new && cat new && mkdir -p a/b && ls a", "x\nb\n"},
		{"mode_and_time", "chmod 700 go.mod && touch -d 2001-01-01 go.mod && stat -c '%a %Y' go.mod", "700 978307200\n"},
		{"temporary_files", `f=$(mktemp) && touch "$f" && chmod 600 "$f" && echo x >/tmp/hello && cat /tmp/hello`, "x\n"},
		{"sockets_of_its_own", `python3 -c '
import socket, threading
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname()); c.sendall(b"tcp"); print(s.accept()[0].recv(9))
u = socket.socket(socket.AF_UNIX); u.bind("/tmp/u"); u.listen()
c = socket.socket(socket.AF_UNIX); c.connect("/tmp/u"); c.sendall(b"unix"); print(u.accept()[0].recv(9))'`, "b'tcp'\nb'unix'\n"},
		{"git", "rm -rf .git && git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --format=%s", "x\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if plain && tt.name != "change" && tt.name != "new_file" {
				t.Skip("needs namespaces")
			}
			w := newWorld(t, plain)
			if tt.name == "git" {
				if err := os.RemoveAll(filepath.Join(w.workspace, ".git")); err != nil {
					t.Fatal(err)
				}
			}
			got, err := w.run(t, write, "bash", "-c", tt.command)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestWriteStops(t *testing.T) {
	t.Parallel()
	both(t, testWriteStops)
}

func testWriteStops(t *testing.T, plain bool) {
	dir := t.TempDir()
	server, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	_, port, _ := net.SplitHostPort(tcp.Addr().String())
	for _, tt := range []struct{ name, command string }{
		{"other_files", "cat $OUT/file"},
		{"change_outside", "echo x >$OUT/file"},
		{"new_outside", "echo x >$OUT/new"},
		{"rename_outside", "mv go.mod $OUT/"},
		{"credentials", "cat ~/.ssh/id"},
		{"settings_of_git", "git config core.fsmonitor 'touch x'"},
		{"settings_of_git_by_hand", "echo x >>.git/config"},
		{"hooks", "echo x >.git/hooks/x"},
		{"new_hook", "echo x >.git/hooks/pre-commit"},
		{"mode_of_a_hook", "chmod 777 .git/hooks/x"},
		{"hooks_renamed", "mv .git/hooks .git/other"},
		{"system", "touch /usr/bin/x || touch /etc/x || chmod 600 /etc/passwd || touch /proc/sys/kernel/x"},
		{"environment_of_the_parent", "cat /proc/$PPID/environ | grep -a ."},
		{"command_line_of_the_parent", "cat /proc/$PPID/cmdline | grep -a ."},
		{"signal", `test "$PPID" != 0 && kill -0 "$PPID"`},
		{"connection", "echo x >/dev/tcp/127.0.0.1/" + port},
		{"socket", `python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("` + dir + `/s")'`},
		{"namespaces", "unshare -Ur true"},
		{"mounts", "umount .git/hooks || umount -l /usr || mount -o remount,rw /usr"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain)
			before := w.content(t)
			got, err := w.run(t, write, "bash", "-c", tt.command)
			if err == nil {
				t.Errorf("succeeded: %s", got)
			}
			if strings.Contains(got, "secret-") {
				t.Errorf("read: %s", got)
			}
			if after := w.content(t); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}
