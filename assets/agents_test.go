package assets_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"loki/assets"
	"loki/internal/tool"
	"loki/internal/tool/script"
)

// agentTools are the tools of one bundled agent, installed into a directory of its own.
type agentTools struct {
	tools map[string]tool.Tool
}

// installTools loads the tools of a bundled agent that works in dir with these variables. Its scripts
// are copies, as they are rewritten when they are first called.
func installTools(t *testing.T, name, dir string, variables map[string]string, env ...string) agentTools {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the tools need a POSIX shell")
	}
	lookPath(t, "bash")
	root := t.TempDir()
	agents := filepath.Join(root, "agents")
	if err := os.CopyFS(agents, assets.Agents); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(agents, name)
	files, err := filepath.Glob(filepath.Join(home, "tools.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the agent %s has no tools: %v", name, err)
	}
	loaded, err := script.Load(files[0], script.Options{
		Root: root, Agent: &script.Agent{Name: name, Dir: home}, Dir: dir, Temp: t.TempDir(),
		Variables: func() (map[string]string, error) { return variables, nil },
		Environ:   append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LOKI_EXECUTABLE=/nowhere/loki"}, env...),
	})
	if err != nil {
		t.Fatal(err)
	}
	a := agentTools{make(map[string]tool.Tool)}
	for _, l := range loaded {
		a.tools[l.Declaration().Name] = l
	}
	return a
}

// call returns what a model would read.
func (a agentTools) call(t *testing.T, name string, arguments map[string]any) string {
	t.Helper()
	called, ok := a.tools[name]
	if !ok {
		t.Fatalf("there is no tool %s", name)
	}
	if arguments == nil {
		arguments = args{}
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	result, err := called.Call(t.Context(), tool.Call{Name: name, Arguments: text})
	if err != nil {
		return "error: " + result.Output + result.Stderr
	}
	return result.Output
}

// want checks the beginning of what a tool returns, or all of it if it ends in a line end.
func (a agentTools) want(t *testing.T, name string, arguments map[string]any, want string) {
	t.Helper()
	got := a.call(t, name, arguments)
	if got != want && (strings.HasSuffix(want, "\n") || !strings.HasPrefix(got, want)) {
		t.Errorf("%s %v:\n got %q\nwant %q", name, arguments, got, want)
	}
}

type args = map[string]any

var here = map[string]string{"project_dir": "."}

func TestExploreTools(t *testing.T) {
	t.Parallel()
	dir := project(t,
		"main.go", "package main\n\nfunc main() { run() }\n", "cmd/list.go", "package cmd\n", "cmd/list_test.go", "package cmd\n// run list\n",
		"node_modules/x/list.go", "run", ".git/config", "run", "deep/a/b/c/list.md", "run\n", "bin.dat", "run\x00\x01",
	)
	a := installTools(t, "explore", dir, here)
	a.want(t, "get_structure", nil, "bin.dat\ncmd\ncmd/list.go\ncmd/list_test.go\ndeep\ndeep/a\ndeep/a/b\nmain.go\n")
	a.want(t, "search_files", args{"pattern": "*.go"}, "cmd/list.go\ncmd/list_test.go\nmain.go\n")
	a.want(t, "search_files", args{"pattern": "cmd/*_test.go"}, "cmd/list_test.go\n")
	a.want(t, "search_files", args{"pattern": "nothing"}, "No file matches.\n")
	a.want(t, "search_content", args{"pattern": `run\b`, "file_type": "go"}, "main.go:3:func main() { run() }\ncmd/list_test.go:2:// run list\n")
	a.want(t, "search_content", args{"pattern": "-e"}, "Nothing matches.\n")
	a.want(t, "search_content", args{"pattern": "("}, "error: ( is not an extended regular expression")
	a.want(t, "read_file", args{"path": "main.go"}, "1\tpackage main\n2\t\n3\tfunc main() { run() }\n")
	a.want(t, "read_file", args{"path": "main.go", "lines": 1}, "1\tpackage main\n[2 more lines; ask for more with lines]\n")
	a.want(t, "read_file", args{"path": "main.go", "lines": 0}, "error: lines must be a whole number above 0")
	a.want(t, "read_file", args{"path": "bin.dat"}, "error: bin.dat is not a text file")
	a.want(t, "read_file", args{"path": "cmd"}, "error: cmd is a directory")
	a.want(t, "read_file", args{"path": "../x"}, "error: There is no file or directory ../x")
	a.want(t, "read_file", args{"path": "/etc/hostname"}, "error: /etc/hostname is outside of the project")
	a.want(t, "find_similar", args{"path": "cmd/list.go"}, "cmd/list_test.go\n")
	a.want(t, "find_similar", args{"path": "bin.dat"}, "No similar file.\n")
	for name, declared := range a.tools {
		if !declared.Hints().ReadOnly || declared.Hints().Destructive {
			t.Errorf("%s may change something: %+v", name, declared.Hints())
		}
	}
	elsewhere := installTools(t, "explore", dir, map[string]string{"project_dir": "nowhere"})
	elsewhere.want(t, "get_structure", nil, "error: The project directory nowhere cannot be entered")
}

func TestOracleTools(t *testing.T) {
	t.Parallel()
	dir := project(t, "go.mod", "module x\n", "sub/a b.txt", "four\n")
	a := installTools(t, "oracle", dir, here)
	a.want(t, "get_project_info", nil, "Type: go\nBuild: go build ./...\nTest: go test ./...\nCheck: go vet ./...\n\nFiles:\ngo.mod\nsub\nsub/a b.txt\n")
	a.want(t, "list_directory", nil, "go.mod (9 bytes)\nsub/\n")
	a.want(t, "list_directory", args{"path": "sub"}, "a b.txt (5 bytes)\n")
	a.want(t, "list_directory", args{"path": "go.mod"}, "error: go.mod is a file")
	a.want(t, "search_code", args{"pattern": "^f"}, "sub/a b.txt:1:four\n")
	a.want(t, "read_file", args{"path": "sub/a b.txt"}, "1\tfour\n")
	a.want(t, "analyze_with_command", args{"command": "ls"}, "error: Nothing was run: the program loki")
	for name, declared := range a.tools {
		if !declared.Hints().ReadOnly || declared.Hints().Destructive {
			t.Errorf("%s may change something: %+v", name, declared.Hints())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".loki-project.json")); err == nil {
		t.Error("an agent that only reads wrote .loki-project.json")
	}
}

// The tools that run the project's commands ask, and report how they ended.
func TestProjectTools(t *testing.T) {
	t.Parallel()
	dir := project(t, ".loki-project.json", `{"type": "own", "build": "echo built; echo $NO_COLOR", "test": "echo no >&2; exit 3", "check": ""}`)
	for agent, build := range map[string]string{"sisyphus": "run_build", "coder": "verify_build"} {
		a := installTools(t, agent, dir, here)
		a.want(t, build, nil, "$ echo built; echo $NO_COLOR\nbuilt\n1\n\nThe build command succeeded.\n")
		a.want(t, "run_tests", nil, "error: $ echo no >&2; exit 3\nno\n\nThe test command failed with exit status 3.\n")
		for _, name := range []string{build, "run_tests"} {
			if !a.tools[name].Hints().Destructive {
				t.Errorf("%s of %s does not ask", name, agent)
			}
		}
	}
	none := installTools(t, "sisyphus", project(t), here)
	none.want(t, "run_tests", nil, "This project has no known test command (type unknown)")
	none.want(t, "get_project_info", nil, "Type: unknown\nBuild: none\nTest: none\nCheck: none\n\nFiles:\n")
}

// The demo looks up an address in Python and, in the other variant, in bash.
func TestDemoTools(t *testing.T) {
	t.Parallel()
	lookPath(t, "python3")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ip": "192.0.2.1", "auth": "` + r.Header.Get("Authorization") + `"}`))
	}))
	defer server.Close()
	dir := project(t)
	a := installTools(t, "demo", dir, map[string]string{"username": "Ada"}, "IPINFO_URL="+server.URL, "IPINFO_TOKEN=tk")
	for part, want := range map[string]string{"ip": "192.0.2.1", "auth": "Bearer tk"} {
		if got := a.call(t, "get_ipinfo", nil); !strings.Contains(got, `"`+part+`": "`+want+`"`) {
			t.Errorf("%s: %s", part, got)
		}
	}
	text, err := os.ReadFile(filepath.Join("agents", "demo", "tools.sh.bak"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "tools.sh", text)
	inBash, err := script.Load(filepath.Join(dir, "tools.sh"), script.Options{Agent: &script.Agent{Name: "demo", Dir: dir}})
	if err != nil || len(inBash) != 1 || inBash[0].Declaration().Description+"." != a.tools["get_ipinfo"].Declaration().Description {
		t.Errorf("the variant in bash: %v %v", inBash, err)
	}
}

func TestReviewTools(t *testing.T) {
	t.Parallel()
	lookPath(t, "git")
	dir := project(t, "a.txt", "one\n", "b b.txt", "x\n", "c.txt", "c\n")
	git := func(arguments ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=n", "-c", "user.email=e@example.com"}, arguments...)...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", arguments, err, out)
		}
	}
	a := installTools(t, "code-reviewer", dir, here)
	a.want(t, "get_diff", nil, "error: ")
	git("init", "-q", "-b", "main")
	a.want(t, "get_changed_files", nil, "error: There is nothing to review")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	if got := a.call(t, "get_changed_files", nil); !strings.HasPrefix(got, "# The last commit: ") || !strings.Contains(got, " first\nA a.txt (+1 -0)\n") {
		t.Errorf("the first commit: %q", got)
	}
	git("checkout", "-q", "-b", "work")
	write(t, dir, "a.txt", []byte("two\n"))
	write(t, dir, "b b.txt", []byte("  x\n"))
	if err := os.Remove(filepath.Join(dir, "c.txt")); err != nil {
		t.Fatal(err)
	}
	const changed = "M a.txt (+1 -1)\nM b b.txt (+1 -1, whitespace only)\nD c.txt (+0 -1)\n"
	a.want(t, "get_changed_files", nil, "# The changes that are not staged\n"+changed)
	git("add", ".")
	write(t, dir, "bin", []byte("\x00\x01"))
	a.want(t, "get_changed_files", nil, "# The staged changes\n"+changed)
	a.want(t, "get_diff", nil, "# The staged changes\ndiff --git a/a.txt b/a.txt\nindex ")
	git("add", ".")
	git("commit", "-q", "-m", "second")
	a.want(t, "get_changed_files", args{"base": "main"}, "# All changes since main, committed or not\nM a.txt (+1 -1)\nM b b.txt (+1 -1, whitespace only)\nA bin (+- --, binary)\nD c.txt (+0 -1)\n")
	a.want(t, "get_diff", args{"base": "nowhere"}, "error: nowhere is not a branch")
	a.want(t, "get_diff", args{"base": "--output=x"}, "error: ")
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("an option reached git")
	}
}

func TestClassifySource(t *testing.T) {
	t.Parallel()
	lookPath(t, "python3")
	a := installTools(t, "deep-research", project(t), nil)
	for url, tier := range map[string]string{
		"https://www.nist.gov/x": "high", "https://www.stats.gov.uk": "high", "https://cs.stanford.edu": "high", "https://www.ox.ac.uk/a": "high",
		"http://arxiv.org/abs/2401.1": "preprint", "https://www.biorxiv.org/": "preprint", "https://papers.ssrn.com/1": "preprint",
		"https://en.wikipedia.org/wiki/Go": "tertiary", "https://www.iso.org:443/x": "medium", "iso.org": "medium",
		"https://example.com": "unverified", "https://gov.example.com": "unverified", "https://arxiv.org.example.com": "unverified", "https://notarxiv.org": "medium", "": "unverified", "http://[": "unverified",
	} {
		if got := a.call(t, "classify_source", args{"url": url}); !strings.Contains(got, `"tier": "`+tier+`"`) {
			t.Errorf("%q: %s, want %s", url, got, tier)
		}
	}
}
