//go:build amd64 || arm64

package sandbox_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
)

// notices runs a shell command at level write and returns what was noticed and stopped, a line each.
func (w *world) notices(t *testing.T, command string) string {
	t.Helper()
	b := w.box(write, sandbox.Needs{})
	r, err := process.Run(t.Context(), process.Command{Path: "bash", Args: []string{"-c", command}, Dir: w.workspace, Env: append(os.Environ(), "HOME="+w.home), Confinement: b})
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, r.Stderr)
	}
	return sandbox.Refusals(b.Refusals("", false))
}

// TestWithheldFromGit: a call by which git checks out files that run later says that git takes them for deleted, and how the user
// puts them back, and one that records this says so.
func TestWithheldFromGit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, init, more string }{
		{"version_2", "git init -q", "git update-index --index-version 2"},
		{"version_3", "git init -q", "echo x >new; git add -N new; git update-index --index-version 3"},
		{"version_4", "git init -q", "git update-index --index-version 4"},
		{"sha256", "git init -q --object-format=sha256", ":"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			if !strings.Contains(sandbox.New(w.options).Support().How, "namespaces") {
				t.Skip("needs namespaces")
			}
			git := exec.Command("bash", "-ec", "rm -rf .git; "+tt.init+` -b main .; git config user.name a; git config user.email a@b; git config core.excludesFile none
				git add sub; git commit -qm 1; git checkout -qb side; mkdir -p .github/workflows .storybook/.vscode "it's"
				for f in .gitattributes .eslintrc.js .github/workflows/ci.yml .storybook/.vscode/x "it's/.mocharc.js" .gitignore; do echo "# x" >"$f"; done
				git add .g* .s* .eslintrc.js "it's"; git commit -qm 2; git checkout -q main; `+tt.more)
			git.Dir, git.Env = w.workspace, append(os.Environ(), "HOME="+w.home)
			if out, err := git.CombinedOutput(); err != nil {
				t.Skip(string(out), err)
			}
			const names, inner = ".eslintrc.js, .gitattributes, .github/workflows, .storybook, ", ".storybook/.vscode, "
			const back = `mv .eslintrc.js.withheld .eslintrc.js && mv .gitattributes.withheld .gitattributes && mv .github/workflows.withheld .github/workflows && mv .storybook.withheld .storybook && `
			const innerBack, last, lastBack = `mv .storybook/.vscode.withheld .storybook/.vscode && `, "it's/.mocharc.js ", `mv './it'\''s/.mocharc.js.withheld' './it'\''s/.mocharc.js'`
			if got := w.notices(t, "git switch -q side"); !strings.HasPrefix(got, "left files withheld that git tracks and now takes for deleted: "+names+inner+last) || !strings.HasSuffix(got, back+innerBack+lastBack+")") {
				t.Errorf("git switch: %s", got)
			}
			if got := w.notices(t, "git log -1 && git commit -q --allow-empty -m 3"); got != "" {
				t.Errorf("nothing is recorded: %s", got)
			}
			if got := w.notices(t, "git add -A && git commit -qm 4"); !strings.HasPrefix(got, "changed what git tracks of files that are withheld: "+names+last) || !strings.HasSuffix(got, back+lastBack+")") {
				t.Errorf("git commit: %s", got)
			}
			put := exec.Command("bash", "-ec", back+innerBack+lastBack+" && git add -A && git diff --exit-code HEAD~1 -- .gitattributes .eslintrc.js .github .storybook it*")
			put.Dir = w.workspace
			if out, err := put.CombinedOutput(); err != nil {
				t.Errorf("the files are not put back: %v, %s", err, out)
			}
		})
	}
}

// TestNoIndex: no text in the place of git's index keeps a call from its end.
func TestNoIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	entry := "DIRC\\0\\0\\0\\%d\\377\\377\\377\\377$(printf '%%062d' 0)\\0"
	for _, text := range []string{"", "DIRC", "DIRC\\0\\0\\0\\2", strings.ReplaceAll(entry, "%d", "2"), strings.ReplaceAll(entry, "%d", "4"), strings.ReplaceAll(entry, "%d", "4") + "\\377\\377\\377\\377\\377"} {
		if got := w.notices(t, "rm -f .exrc.withheld; echo x >.exrc; printf \""+text+"\" >.git/index"); !strings.HasPrefix(got, "writes .exrc ") {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// crashVariable has the workspace of the process that is killed in [TestKilledWhileAtWork].
const crashVariable = "LOKI_TEST_CRASH"

// TestKilledWhileAtWork: a command ends with this program, and the next call says what came to be since, which keeps its name.
func TestKilledWhileAtWork(t *testing.T) {
	t.Parallel()
	if home := os.Getenv(crashVariable); home != "" {
		w := &world{home: home, workspace: filepath.Join(home, "src", "project")}
		w.options = sandbox.Options{Workspace: w.workspace, Home: home, State: filepath.Join(home, "state", "loki"), Getenv: os.Getenv}
		t.Fatal(w.run(t, write, "bash", "-c", "exec 3>sub/pipe; echo x >.envrc; echo x >>.eslintrc.js; echo x >sub/plain; echo made >&3; sleep 600"))
	}
	t.Run("same_devices", func(t *testing.T) { testKilled(t, func(text string) string { return text }) })
	t.Run("other_devices", func(t *testing.T) { // since a restart
		testKilled(t, func(text string) string { return regexp.MustCompile(`"Dev":\d+`).ReplaceAllString(text, `"Dev":1`) })
	})
}

func testKilled(t *testing.T, changed func(shared string) string) {
	w := newWorld(t, false)
	w.options.State = filepath.Join(w.home, "state", "loki")
	w.write(t, "src/project/.eslintrc.js", "old")
	w.write(t, "src/project/.prettierrc.js", "old")
	pipe := filepath.Join(w.workspace, "sub", "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	killed := exec.Command(program, "-test.run=^TestKilledWhileAtWork$")
	killed.Env = append(os.Environ(), crashVariable+"="+w.home)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	r := bufio.NewReader(from)
	_, err = r.ReadString('\n')
	if err = errors.Join(err, killed.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // it was killed
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err) // the command has not ended
	}
	shared, _ := filepath.Glob(filepath.Join(w.options.State, "sandbox", "work", "*.shared"))
	for _, file := range shared {
		text, err := os.ReadFile(file)
		if err = errors.Join(err, os.WriteFile(file, []byte(changed(string(text))), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "found .envrc, .eslintrc.js, new or changed since "
	if got := w.notices(t, "true"); !strings.HasPrefix(got, want) {
		t.Errorf("got %q", got)
	}
	if got := w.notices(t, "true"); got != "" {
		t.Errorf("said again: %q", got)
	}
	if _, err := os.Stat(filepath.Join(w.workspace, ".envrc")); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(w.options.State, "sandbox", "work", "*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
