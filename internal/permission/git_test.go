package permission_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/permission"
)

// plant writes files below root.
func plant(t testing.TB, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// monitor is the configuration of a repository that runs a program.
const monitor = "[core]\nrepositoryformatversion=0\nbare=false\nworktree=..\nfsmonitor=\"touch PWN; false\"\n"

// TestGitOfAModel looks at repositories that were put together by writing files, which needs
// no consent. Git reads their settings in the directory and below it.
func TestGitOfAModel(t *testing.T) {
	root := project(t)
	plant(t, root, map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/config": "", ".git/objects/x": "", ".git/refs/x": "",
		"ev/HEAD": "ref: refs/heads/main\n", "ev/objects/x": "", "ev/refs/x": "", "ev/config": monitor,
		"e2/HEAD": "ref: refs/heads/main\n", "e2/commondir": "../cfg", "e2/config.worktree": monitor, "cfg/config": "[extensions]\nworktreeConfig=true\n",
		"half/HEAD": "ref: refs/heads/main\n", "half/refs/x": "",
		"plain/HEAD": "a file of that name\n",
	})
	j := judge(t, permission.Options{Root: root, Shell: "bash"})
	for command, want := range map[string]permission.Action{
		"git ls-files":                         permission.Allow,
		"cd sub && git ls-files":               permission.Ask,
		"cd plain && git branch":               permission.Ask,
		"cd ev && git ls-files":                permission.Ask,
		"cd ev/refs && git ls-files":           permission.Ask,
		"cd ev/refs && git remote":             permission.Ask,
		"cd ev; cd refs; git ls-files -m":      permission.Ask,
		"cd e2 && git ls-files":                permission.Ask,
		"cd half && git ls-files":              permission.Ask,
		"trap 'git ls-files' EXIT; cd ev":      permission.Ask,
		"trap 'git ls-files' EXIT; cd sub":     permission.Ask,
		"f() { git ls-files; }; cd ev/refs; f": permission.Ask,
		"(cd ev/refs && git branch)":           permission.Ask,
		"cd ev/refs && git --no-pager branch":  permission.Ask,
	} {
		if v := j.Judge(shellCall(command)); v.Action != want {
			t.Errorf("%s: %+v, want %s", command, v, want)
		}
	}
}

// TestGitThatRunsPrograms: git runs what the configuration of the repository names, in all that looks at contents.
func TestGitThatRunsPrograms(t *testing.T) {
	root := project(t)
	ran := filepath.Join(t.TempDir(), "ran")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		cmd.Env = permission.HarmlessEnvironment(append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1"))
		if out, err := cmd.CombinedOutput(); err != nil && args[0] == "init" {
			t.Skipf("git: %v %s", err, out)
		}
	}
	git("init", "-q")
	plant(t, root, map[string]string{"a.txt": "a\n"})
	git("add", "a.txt")
	git("-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "x")
	git("config", "diff.external", "touch "+ran)
	git("config", "filter.x.clean", "touch "+ran)
	git("config", "diff.x.textconv", "touch "+ran)
	git("config", "log.showSignature", "true")
	plant(t, root, map[string]string{".gitattributes": "* filter=x diff=x\n", "a.txt": "changed\n"})
	j := judge(t, permission.Options{Root: root, Shell: "bash"})
	asked := 0
	for _, text := range []string{
		"git status", "git status -s", "git diff", "git diff --stat", "git diff --cached", "git log -p", "git log --oneline", "git show", "git blame a.txt", "git describe --dirty", "git shortlog -sn",
		"git branch", "git branch -v", "git branch --show-current", "git remote -v", "git remote", "git rev-parse HEAD", "git rev-parse --show-toplevel", "git ls-files", "git ls-files --others --exclude-standard", "git version",
	} {
		if j.Judge(shellCall(text)).Action != permission.Allow {
			asked++
			continue
		}
		git(strings.Fields(text)[1:]...)
		if _, err := os.Stat(ran); err == nil {
			t.Fatalf("%s runs a program and is not asked about", text)
		}
	}
	if asked < 11 || asked > 13 {
		t.Errorf("%d are asked about", asked)
	}
	for _, text := range []string{"git status", "git diff", "git log -p", "git log --oneline", "git show", "git blame a.txt"} {
		if v := j.Judge(shellCall(text)); v.Action != permission.Ask {
			t.Errorf("%s: %+v", text, v)
		}
	}
}

func TestHarmlessEnvironment(t *testing.T) {
	env := []string{"A=1", "GIT_CONFIG_COUNT=9", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=me"}
	got := permission.HarmlessEnvironment(env)
	want := append(slices.Clone(env), "GIT_CONFIG_KEY_1=safe.bareRepository", "GIT_CONFIG_VALUE_1=explicit",
		"GIT_CONFIG_KEY_2=core.fsmonitor", "GIT_CONFIG_VALUE_2=false",
		"GIT_CONFIG_KEY_3=core.hooksPath", "GIT_CONFIG_VALUE_3="+os.DevNull, "GIT_CONFIG_COUNT=4")
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestManyDirectories judges a text whose directories double with each command, in a time that
// does not.
func TestManyDirectories(t *testing.T) {
	text := ""
	for range 200 {
		text += "cd sub;"
	}
	for _, text := range []string{text, "cd a;cd b;cd c;cd d;cd e;cd f;cd g;cd h;cd i;cd j;cd k;cd l;cd m;cd n;cd o;cd p;cd q;cd r;cd s;cd t;cd u;cd v;cd w;cd x;ls"} {
		if v := judge(t, permission.Options{Root: project(t), Shell: "bash"}).Judge(shellCall(text)); v.Action != permission.Ask {
			t.Errorf("%+v", v)
		}
	}
}
