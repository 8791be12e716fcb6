//go:build amd64 || arm64

package sandbox_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text/pattern"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	if !strings.Contains(sandbox.New(w.options).Support().How, "namespaces") {
		t.Skip("needs namespaces")
	}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write([]byte("hello\n")) }))
	t.Cleanup(server.Close)
	at := strings.TrimPrefix(server.URL, "http://")
	b := w.box(sandbox.Declaration{Level: sandbox.Network, Hosts: []string{at}}, sandbox.Needs{})
	r, err := process.Run(t.Context(), process.Command{
		Path: "bash", Args: []string{"-c", "unset NO_PROXY no_proxy; curl -s " + server.URL + "; curl -s -o /dev/null -w '%{http_code}\n' http://example.com/; curl -s --noproxy '*' " + server.URL + " || echo $?"},
		Dir: w.workspace, Env: os.Environ(), Confinement: b,
	})
	if want := "hello\n403\n7\n"; string(r.Stdout) != want || err != nil {
		t.Errorf("got %q %q, %v, want %q", r.Stdout, r.Stderr, err, want)
	}
	want := []sandbox.Refusal{{Access: sandbox.Connecting, What: "example.com:80", Level: sandbox.Network}}
	if diff := cmp.Diff(want, b.Refusals(r.Stderr, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		w.write(t, "src/project/sub/.env", "secret-too\n")
		w.options.Denied = patterns(w.workspace + "/**/.env")
		b := w.box(read, sandbox.Needs{})
		r, err := process.Run(t.Context(), process.Command{Path: "bash", Args: []string{"-c", "cat .env; true"}, Dir: w.workspace, Env: os.Environ(), Confinement: b})
		if stopped := b.Refusals(r.Stderr, err != nil); err != nil || len(stopped) != 1 || stopped[0].What != ".env" {
			t.Errorf("a denied file in a command that succeeds: %v, %s, %v", stopped, r.Stderr, err)
		}
		for _, d := range []sandbox.Declaration{read, write} {
			got, err := w.run(t, d, "bash", "-c", "cat .env; cat sub/.env; cat sub/a.txt go.mod; grep -r secret- . ; cp .env x; cat x; true")
			if err != nil || strings.Contains(got, "secret-") || !strings.Contains(got, "text of a\nmodule project\n") {
				t.Errorf("%s: got %q, %v", d.Level, got, err)
			}
		}
	})
}

func TestWhatRunsLaterIsWithheld(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		w.options.State = filepath.Join(w.home, "state", "loki")
		b := w.box(write, sandbox.Needs{})
		_, err := process.Run(t.Context(), process.Command{
			Path: "bash", Args: []string{"-c", "mkdir sub/.vscode && echo x >sub/.vscode/tasks.json; echo y >sub/.envrc; echo z >sub/kept"}, Dir: w.workspace, Env: os.Environ(), Confinement: b,
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []sandbox.Refusal{
			{Access: sandbox.Writing, What: "sub/.envrc", Reason: "direnv runs it in the user's shell; what it wrote is now sub/.envrc.withheld"},
			{Access: sandbox.Writing, What: "sub/.vscode", Reason: "the editor runs tasks in it; what it wrote is now sub/.vscode.withheld"},
		}
		if diff := cmp.Diff(want, b.Refusals("", false)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, name := range []string{"kept", ".envrc.withheld", ".vscode.withheld/tasks.json"} {
			if _, err := os.Stat(filepath.Join(w.workspace, "sub", name)); err != nil {
				t.Error(err)
			}
		}
		for _, name := range []string{".envrc", ".vscode"} {
			if _, err := os.Lstat(filepath.Join(w.workspace, "sub", name)); err == nil {
				t.Errorf("%s is there", name)
			}
		}
	})
}

// TestFilesOfDeniedDirectoriesKeepTheirNames has names that would be withheld if a command had made them.
func TestFilesOfDeniedDirectoriesKeepTheirNames(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{"shut", "shut/**", "sh*/**", "**/shut/**", "shut/.*", "**/.envrc"} {
		both(t, func(t *testing.T, plain bool) {
			w := newWorld(t, plain)
			w.options.State = filepath.Join(w.home, "state", "loki")
			w.options.Denied = patterns(w.workspace + "/" + rule)
			names := []string{"shut/.envrc", "shut/.dot", "shut/in/.vscode/tasks.json", "shut/.git/config"}
			for _, name := range names {
				w.write(t, "src/project/"+name, "mine")
			}
			for range 2 {
				_, _ = w.run(t, write, "bash", "-c", "echo x >>shut/.envrc; mkdir -p shut/in/.vscode; echo made >new; rm -rf shut")
			}
			if _, err := os.Stat(filepath.Join(w.workspace, "new")); err != nil && !plain {
				t.Error(err)
			}
			if rule != "shut" && rule != "shut/**" && rule != "sh*/**" && rule != "**/shut/**" {
				names = names[:1] // the rule does not deny the others
			}
			for _, name := range names {
				if text, err := os.ReadFile(filepath.Join(w.workspace, name)); err != nil || string(text) != "mine" {
					t.Errorf("%s, %s: %q, %v", rule, name, text, err)
				}
			}
		})
	}
}

func TestGitDirectoryThatIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.options.State = filepath.Join(w.home, "state", "loki")
	_, _ = w.run(t, write, "bash", "-c", "mv .git old; mkdir .git && echo '[core] fsmonitor=x' >.git/config")
	if text, err := os.ReadFile(filepath.Join(w.workspace, ".git", "config")); err == nil && strings.Contains(string(text), "fsmonitor") {
		t.Errorf("got %q", text)
	}
}

// TestDirectoriesAreRenamed: what runs later stays what it was in a directory that gets another name, and a bare repository
// that a command makes names no programs.
func TestDirectoriesAreRenamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.write(t, "src/project/a/.git/config", "[core]\n")
	w.write(t, "src/project/a/.vscode/tasks.json", "{}")
	if r, err := w.run(t, write, "bash", "-c", "mv a b; mkdir -p bare/objects bare/refs; echo ref: refs/heads/x >bare/HEAD; echo '[core] fsmonitor=x' >bare/config"); err != nil {
		t.Fatal(err, r)
	}
	for _, name := range []string{"b/.git/config", "b/.vscode/tasks.json", "bare/config.withheld"} {
		if _, err := os.Stat(filepath.Join(w.workspace, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestTemporaryFilesAreKept: what a command that may write moves to /tmp is there for the next one, and what is around a workspace
// below /tmp cannot be written.
func TestTemporaryFilesAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.options.State = filepath.Join(w.home, "state", "loki")
	w.write(t, "src/project/report", "precious")
	if r, err := w.run(t, write, "bash", "-c", "mv report /tmp/report"); err != nil {
		t.Fatal(err, r)
	}
	if r, err := w.run(t, write, "cat", "/tmp/report"); err != nil || r != "precious" {
		t.Errorf("%v: %s", err, r)
	}
	for _, l := range []sandbox.Declaration{read, write} {
		if _, err := w.run(t, l, "touch", "../beside"); err == nil {
			t.Errorf("level %s: a file beside the workspace seems to be written", l.Level)
		}
	}
}

// TestTemporaryFilesInTheWorkspace: the temporary directories of other boxes are not a part of what a box holds.
func TestTemporaryFilesInTheWorkspace(t *testing.T) {
	w := newWorld(t, false)
	w.write(t, "src/project/.tmp/x", "")
	t.Setenv("TMPDIR", filepath.Join(w.workspace, ".tmp"))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if out, err := w.run(t, write, "true"); err != nil {
				t.Error(err, out)
			}
		})
	}
	all.Wait()
}

// TestSockets: a program outside of the sandbox that listens in the workspace is not reached.
func TestSockets(t *testing.T) {
	w := newWorld(t, false)
	t.Chdir(w.workspace) // the path of a socket has to be short
	l, err := net.Listen("unix", "sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := w.run(t, write, "python3", "-c", "import socket; s = socket.socket(socket.AF_UNIX); s.connect('sock')")
	if err == nil {
		t.Errorf("connected: %s", r)
	}
}

// TestWhatOthersChangeStays: a place that runs later and was there, or that a command at a higher level may have made, is
// not moved away.
func TestWhatOthersChangeStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.options.State = filepath.Join(w.home, "state", "loki")
	s := sandbox.New(w.options)
	config, envrc := filepath.Join(w.workspace, ".git", "config"), filepath.Join(w.workspace, ".envrc")
	low := s.Box(sandbox.Declaration{Level: sandbox.Write}, sandbox.Needs{})
	_, err := process.Run(t.Context(), process.Command{
		Path: "bash", Args: []string{"-c", "echo ready; until [ -e go ]; do sleep 0.05; done"}, Dir: w.workspace, Env: os.Environ(), Confinement: low,
		OnStdout: func(string) {
			if err := os.WriteFile(config+".new", []byte("[core]\n"), 0o600); err != nil {
				t.Error(err)
			}
			if err := os.Rename(config+".new", config); err != nil { // as git does
				t.Error(err)
			}
			full := s.Box(sandbox.Declaration{Level: sandbox.Full}, sandbox.Needs{})
			if _, err := process.Run(t.Context(), process.Command{Path: "touch", Args: []string{envrc}, Env: os.Environ(), Confinement: full}); err != nil {
				t.Error(err)
			}
			w.write(t, "src/project/go", "")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{config, envrc} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if found := low.Refusals("", false); len(found) != 2 || found[0].Access != sandbox.Noticed || !strings.HasSuffix(found[0].What, " .git/config was replaced") || !strings.Contains(found[1].Reason, "a command at level full") {
		t.Errorf("got %v", found)
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		w.write(t, "config/loki/functions/tool.sh", "echo from the tool; echo result >$RESULT; cat ../config.yaml")
		result := filepath.Join(t.TempDir(), "result")
		if err := os.WriteFile(result, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		tools := filepath.Join(w.home, "config", "loki", "functions")
		b := w.box(read, sandbox.Needs{Read: []string{tools}, Write: []string{result}})
		r, _ := process.Run(t.Context(), process.Command{Path: "bash", Args: []string{tools + "/tool.sh"}, Dir: w.workspace, Env: append(os.Environ(), "RESULT="+result), Confinement: b})
		if text, _ := os.ReadFile(result); string(text) != "result\n" || string(r.Stdout) != "from the tool\n" {
			t.Errorf("got %q, result %q, %s", r.Stdout, text, r.Stderr)
		}
	})
}

func TestRefused(t *testing.T) {
	t.Parallel()
	both(t, testRefused)
}

func testRefused(t *testing.T, plain bool) {
	for _, tt := range []struct {
		name    string
		d       sandbox.Declaration
		program string
		args    []string
		want    []string
	}{
		{"bash_write", read, "bash", []string{"-c", "echo x >go.sum"}, []string{"writes go.sum (write)"}},
		{"bash_outside", read, "bash", []string{"-c", "echo x >$OUT/new"}, []string{"writes ~/outside/new ()"}},
		{"success", read, "bash", []string{"-c", "touch go.sum; cat nothing; true"}, []string{"writes go.sum (write)"}},
		{"success_network", read, "bash", []string{"-c", "curl -sS https://example.com/x; true"}, []string{"connects to example.com (network)"}},
		{"success_without", read, "bash", []string{"-c", "cat nothing $OUT/nothing; true"}, nil},
		{"write_declared", sandbox.Declaration{Level: sandbox.Read, Write: []string{"~/outside"}}, "bash", []string{"-c", "echo x >$OUT/new"}, []string{"writes ~/outside/new (write)"}},
		{"bash_change_outside", read, "bash", []string{"-c", "echo x >$HOME/note"}, []string{"writes ~/note ()"}},
		{"python_change_outside", read, "python3", []string{"-c", "import os; open(os.environ['HOME'] + '/note', 'w')"}, []string{"writes ~/note ()"}},
		{"cat_outside", read, "cat", []string{"../../outside/file"}, []string{"reads ~/outside/file ()"}},
		{"upward", read, "bash", []string{"-c", "cd sub && touch ../made"}, []string{"writes ../made (write)"}},
		{"upward_outside", write, "bash", []string{"-c", "touch ../made"}, []string{"writes ../made ()"}},
		{"cat_missing", read, "cat", []string{"nothing"}, nil},
		{"cp", read, "cp", []string{"go.mod", "x"}, []string{"writes x (write)"}},
		{"python_write", read, "python3", []string{"-c", "open('x', 'w')"}, []string{"writes x (write)"}},
		{"python_read", read, "python3", []string{"-c", "import os; open(os.environ['HOME'] + '/.ssh/id')"}, []string{"reads ~/.ssh/id ()"}},
		{"node_write", read, "node", []string{"-e", "require('fs').writeFileSync('x', '')"}, []string{"writes x (write)"}},
		{"git_config", write, "git", []string{"config", "core.x", "y"}, []string{"writes .git/config ()"}},
		{"coarse_new", write, "touch", []string{"new"}, []string{"writes new ()"}},
		{"coarse_directory", write, "mkdir", []string{"new"}, []string{"writes new ()"}},
		{"coarse_shell", write, "bash", []string{"-c", "echo x >new"}, []string{"writes new ()"}},
		{"coarse_copy", write, "cp", []string{"-p", "go.mod", "sub/new"}, []string{"writes sub/new ()"}},
		{"coarse_mode", write, "chmod", []string{"700", "go.mod"}, []string{"writes go.mod ()"}},
		{"coarse_lock", write, "git", []string{"commit", "--allow-empty", "-m", "x"}, []string{"writes .git/index.lock ()"}},
		{"venv", write, "mkdir", []string{"-p", ".venv", "sub/venv", ".husky"}, []string{"writes .husky ()", "writes .venv (network)", "writes sub/venv (network)"}},
		{"make", read, "make", []string{"-f", "sub/Makefile"}, []string{"writes made (write)"}},
		{"curl", read, "curl", []string{"-sS", "https://example.com/x"}, []string{"connects to example.com (network)"}},
		{"pip", write, "python3", []string{"-c", "import urllib.request; urllib.request.urlopen('https://example.com')"}, []string{"connects to the network (network)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if plain && (tt.name == "git_config" || tt.name == "venv") {
				t.Skip("they make something in a directory that is not written")
			}
			w := newWorld(t, plain)
			w.write(t, "note", "x")
			w.write(t, "src/project/sub/Makefile", "all:\n\techo x >made\n")
			if tt.program == "git" {
				if out, err := exec.Command("git", "init", "-q", w.workspace).CombinedOutput(); err != nil {
					t.Fatal(string(out), err)
				}
			}
			b := w.box(tt.d, sandbox.Needs{})
			r, err := process.Run(t.Context(), process.Command{
				Path: tt.program, Args: tt.args, Dir: w.workspace, Confinement: b, Env: append(os.Environ(), "HOME="+w.home, "OUT="+w.outside),
			})
			var got []string
			for _, f := range b.Refusals(r.Stderr, err != nil) {
				got = append(got, f.String()+" ("+string(f.Level)+")")
			}
			if plain && strings.HasSuffix(tt.name, "_change_outside") {
				tt.want = []string{"reads ~/note ()"} // Landlock does not say which
			}
			if strings.HasPrefix(tt.name, "coarse_") && !plain {
				tt.want = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s(-want +got):\n%s", r.Stderr, diff)
			}
		})
	}
}

// TestRefusedTexts: what package managers print when a box stops them, word for word but for the paths.
func TestRefusedTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	b := w.box(read, sandbox.Needs{})
	if _, err := process.Run(t.Context(), process.Command{Path: "true", Dir: w.workspace, Env: os.Environ(), Confinement: b}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"go_proxy", `go: golang.org/x/text@v0.3.0: Get "https://proxy.golang.org/golang.org/x/text/@v/v0.3.0.info": dial tcp: lookup proxy.golang.org on 10.0.0.53:53: dial udp 10.0.0.53:53: socket: permission denied`, "connects to proxy.golang.org (network)"},
		{"go_sum", "go: updating go.sum: open WORKSPACE/go.sum: read-only file system", "writes go.sum (write)"},
		{"go_build", "go build x: open out: read-only file system", "writes out (write)"},
		{"npm_registry", "npm error request to https://registry.npmjs.org/left-pad failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org", "connects to registry.npmjs.org (network)"},
		{"npm_directory", "npm error code EROFS\nnpm error path WORKSPACE/node_modules\nnpm error errno -30\nnpm error rofs EROFS: read-only file system, mkdir 'WORKSPACE/node_modules'", "writes node_modules (write)"},
		{"pip_index", "ERROR: Could not install packages due to an OSError: HTTPSConnectionPool(host='pypi.org', port=443): Max retries exceeded with url: /simple/six/ (Caused by NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution'))", "connects to pypi.org (network)"},
		{"pip_retry", "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/six/", "connects to the network (network)"},
		{"venv", "Error: [Errno 30] Read-only file system: 'WORKSPACE/.venv'", "writes .venv (network)"},
		{"apostrophe", "rm: can't remove 'go.mod': Read-only file system", "writes go.mod (write)"},
		{"upward", "touch: cannot touch '../made': Read-only file system", "writes ../made (write)"},
		{"upward_later", "touch: cannot touch '../.git/hooks/pre-commit': Read-only file system", "writes ../.git/hooks/pre-commit ()"},
		{"loopback_curl", "curl: (7) Failed to connect to 127.0.0.1 port 8080 after 0 ms: Couldn't connect to server", "connects to 127.0.0.1:8080 (network)"},
		{"loopback_node", "Error: connect ECONNREFUSED 127.0.0.1:5432", "connects to 127.0.0.1:5432 (network)"},
		{"loopback_python", "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>", "connects to this machine ()"},
		{"listen_go", "panic: httptest: failed to listen on a port: listen tcp6 [::1]:0: socket: permission denied", "connects to its own loopback interface (write)"},
		{"listen_node", "Error: listen EACCES: permission denied 127.0.0.1", "connects to its own loopback interface (write)"},
		{"listen_asyncio", "PermissionError: [Errno 13] error while attempting to bind on address ('127.0.0.1', 0): permission denied", "connects to its own loopback interface (write)"},
		{"listen_python", "    _socket.socket.__init__(self, family, type, proto, fileno)\nPermissionError: [Errno 13] Permission denied", "connects to its own loopback interface (write)"},
		{"git_fetch", "fatal: 'OUTSIDE' does not appear to be a git repository\nfatal: Could not read from remote repository.", "reads ~/outside ()"},
		{"git_clone", "fatal: repository 'OUTSIDE' does not exist", "reads ~/outside ()"},
		{"git_remote", "fatal: 'origin' does not appear to be a git repository", ""},
		{"mount", "mount: failed to read mtab: Permission denied", ""},
	} {
		var got []string
		for _, f := range b.Refusals(strings.NewReplacer("WORKSPACE", w.workspace, "OUTSIDE", w.outside).Replace(tt.text), true) {
			got = append(got, f.String()+" ("+string(f.Level)+")")
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, text, tt.want)
		}
	}
}

func TestHomeAsWorkspace(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		w.write(t, ".bashrc", "secret-settings\n")
		w.write(t, ".app/deep/deeper/x", "secret-settings-of-app\n")
		w.options.Own = append(w.options.Own, filepath.Join(w.home, ".app", "deep"), filepath.Join(w.home, ".app", "deep", "deeper"))
		w.workspace, w.options.Workspace = w.home, w.home
		before := w.content(t)
		for _, d := range []sandbox.Declaration{read, write} {
			got, _ := w.run(t, d, "bash", "-c", "cat .bashrc .ssh/id; echo x >.bashrc; echo x >.ssh/authorized_keys; echo x >.profile; mkdir .config; cat outside/file")
			if !strings.HasSuffix(got, "secret-outside\n") && !strings.HasPrefix(got, "secret-outside\n") || strings.Count(got, "secret-") != 1 {
				t.Errorf("%s: got %q", d.Level, got)
			}
		}
		if after := w.content(t); strings.Contains(strings.ReplaceAll(after, ".profile.withheld", ""), ".profile") || strings.Contains(after, "authorized") || strings.Count(after, "secret-settings\n") != 1 {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	})
}

func TestStepThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	if !strings.Contains(sandbox.New(w.options).Support().How, "namespaces") {
		t.Skip("needs namespaces")
	}
	mark := filepath.Join(w.workspace, "ran")
	b := w.box(write, sandbox.Needs{})
	_, err := process.Run(t.Context(), process.Command{Path: "touch", Args: []string{mark}, Dir: w.outside, Env: os.Environ(), Confinement: b})
	if err == nil || !strings.Contains(err.Error(), "enter the working directory "+w.outside) || !strings.Contains(err.Error(), "did not run") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command ran")
	}
}

// TestPlacesKeepTheirNames: a command cannot take what runs later, or what a rule denies, out of its name for the next one,
// nor reach it by a link.
func TestPlacesKeepTheirNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, first, second string
		kept                string // a file and its text
	}{
		{"directory_around", "mv node_modules nm; ln -s nm node_modules", "echo evil >nm/.bin/tsc", "node_modules/.bin/tsc=tsc"},
		{"link_to_directory", "true", "echo evil >linked/.bin/tsc", "linked/.bin/tsc=tsc"},
		{"link_to_file", "true", "echo evil >env.sh", "env.sh=env"},
		{"denied_directory", "mv top/sec top/s", "cat top/s/k top2/sec/k", "top/sec/k=secret-k"},
		{"directory_around_denied", "mv top top2", "cat top2/sec/k", "top/sec/k=secret-k"},
		{"names_at_any_depth", "mv any/where/deep any/where/d; mv any/where/private any/where/p", "cat any/where/p/key any/where/private/key", "any/where/private/key=secret-k"},
		{"file_denied_by_name", "mv top/named t; mv top/named/k2 k", "cat t k top/named/k2", "top/named/k2=secret-k"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, plain bool) {
				w := newWorld(t, plain)
				for path, text := range map[string]string{
					"node_modules/.bin/tsc": "tsc", "linked/.bin/tsc": "tsc", "env.sh": "env", "top/sec/k": "secret-k", "any/where/private/key": "secret-k", "any/where/deep/x": "", "top/named/k2": "secret-k",
				} {
					w.write(t, "src/project/"+path, text)
				}
				for link, target := range map[string]string{"sub/node_modules": "../linked", ".envrc": "env.sh"} {
					if err := os.Symlink(target, filepath.Join(w.workspace, link)); err != nil {
						t.Fatal(err)
					}
				}
				w.options.Denied = patterns(w.workspace+"/top/sec/**", w.workspace+"/**/private/key", w.workspace+"/top/named/k2")
				first, _ := w.run(t, write, "bash", "-c", tt.first)
				second, _ := w.run(t, write, "bash", "-c", tt.second)
				third, _ := w.run(t, read, "bash", "-c", tt.second)
				if strings.Contains(second+third, "secret-") {
					t.Errorf("it reads %q %q %q", first, second, third)
				}
				path, text, _ := strings.Cut(tt.kept, "=")
				if got, err := os.ReadFile(filepath.Join(w.workspace, path)); err != nil || string(got) != text {
					t.Errorf("%s has %q, %v; %q %q", path, got, err, first, second)
				}
			})
		})
	}
}

// TestNewLinks: of a link that a command makes where it would run later, the link gets another name, not what it leads to.
func TestNewLinks(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		w.write(t, "src/project/lib/.bin/tsc", "tsc")
		if got, err := w.run(t, write, "bash", "-c", "cd sub; ln -s a.txt .envrc; ln -s ../lib node_modules; mkdir nm nm/.bin; mkdir b; ln -s ../nm b/node_modules"); err != nil {
			t.Fatal(got, err)
		}
		for _, name := range []string{"sub/a.txt", "sub/.envrc.withheld", "sub/node_modules.withheld", "lib/.bin/tsc", "sub/b/node_modules.withheld"} {
			if _, err := os.Lstat(filepath.Join(w.workspace, name)); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestUnreadableDirectory: what cannot be looked at is closed, as nobody knows what is in it.
func TestUnreadableDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads every directory")
	}
	w := newWorld(t, false)
	w.write(t, "src/project/shut/.envrc", "mine")
	dir := filepath.Join(w.workspace, "shut")
	if err := os.Chmod(dir, 0o000); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	_, _ = w.run(t, write, "bash", "-c", "chmod 700 shut; echo evil >shut/.envrc")
	_ = os.Chmod(dir, 0o700)
	if text, err := os.ReadFile(filepath.Join(dir, ".envrc")); err != nil || string(text) != "mine" {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestCompiledAtRead: a command at level read finds what the Go command of another one compiled, and one that may write does not.
func TestCompiledAtRead(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, plain bool) {
		w := newWorld(t, plain)
		w.options.State = filepath.Join(w.home, "state", "loki")
		if got, err := w.run(t, read, "bash", "-c", `echo compiled >"$GOCACHE/x"`); err != nil {
			t.Fatal(got, err)
		}
		if got, err := w.run(t, read, "bash", "-c", `cat "$GOCACHE/x"`); got != "compiled\n" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if got, _ := w.run(t, write, "bash", "-c", `ls "$GOCACHE"; cat ~/state/loki/sandbox/*/read/go-build/x`); strings.Contains(got, "compiled\n") {
			t.Errorf("got %q", got)
		}
	})
}

// patterns returns what texts mean; they are patterns.
func patterns(texts ...string) (all []pattern.Branch) {
	for _, text := range texts {
		p, _ := pattern.Compile(text)
		all = append(all, p.Branches()...)
	}
	return all
}
