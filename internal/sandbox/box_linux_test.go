//go:build amd64 || arm64

package sandbox_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/process"
	"loki/internal/sandbox"
)

// world is a home directory with a workspace in it and things that a child must not reach.
type world struct {
	home, workspace, outside string
	options                  sandbox.Options
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{home: t.TempDir()}
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
	b := sandbox.New(w.options).Box(d, sandbox.Needs{})
	r, err := process.Run(t.Context(), process.Command{
		Path: program, Args: args, Dir: w.workspace, Confinement: b,
		Env: append(os.Environ(), "HOME="+w.home, "OUT="+w.outside, "MY_SECRET=secret-variable"),
	})
	return string(r.Stdout) + r.Stderr, err
}

var read = sandbox.Declaration{Level: sandbox.Read}

func TestReadAllows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
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
		{"signal", "kill -0 $PPID"},
		{"connection", "echo x >/dev/tcp/127.0.0.1/" + port},
		{"shared_temporary_directory", "echo x >/tmp/loki-sandbox-test-$$"},
		{"temporary_directories_of_others", "ls $TMPDIR/.."},
		{"namespaces", "unshare -Ur true"},
		{"mounts", "mount -t tmpfs none $TMPDIR"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
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
	w := newWorld(t)
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
	w := newWorld(t)
	got, err := w.run(t, read, "bash", "-c", "mkdir -p $TMPDIR/a/b && : >$TMPDIR/a/b/c && chmod 500 $TMPDIR/a || true; echo $TMPDIR")
	if err != nil {
		t.Fatal(got, err)
	}
	if _, err := os.Stat(strings.TrimSpace(got)); !os.IsNotExist(err) {
		t.Errorf("%s: %v", got, err)
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "src/project/plain", "not a program\n")
	if err := os.Chmod(filepath.Join(w.workspace, "plain"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := sandbox.New(w.options).Box(read, sandbox.Needs{})
	_, err := process.Run(t.Context(), process.Command{Path: "./plain", Dir: w.workspace, Confinement: b})
	if err == nil || !strings.Contains(err.Error(), "has no #! line") {
		t.Errorf("got %v", err)
	}
}
