package permission_test

import (
	"os"
	"path/filepath"
	"slices"
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
		"git status":                          permission.Allow,
		"cd sub && git status":                permission.Ask,
		"cd plain && git log -1":              permission.Ask,
		"cd ev && git status":                 permission.Ask,
		"cd ev/refs && git status":            permission.Ask,
		"cd ev/refs && git diff":              permission.Ask,
		"cd ev; cd refs; git ls-files -m":     permission.Ask,
		"cd e2 && git status":                 permission.Ask,
		"cd half && git status":               permission.Ask,
		"trap 'git status' EXIT; cd ev":       permission.Ask,
		"trap 'git status' EXIT; cd sub":      permission.Ask,
		"f() { git status; }; cd ev/refs; f":  permission.Ask,
		"(cd ev/refs && git blame a.txt)":     permission.Ask,
		"cd ev/refs && git --no-pager status": permission.Ask,
	} {
		if v := j.Judge(shellCall(command)); v.Action != want {
			t.Errorf("%s: %+v, want %s", command, v, want)
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
