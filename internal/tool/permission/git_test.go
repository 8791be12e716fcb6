package permission_test

import (
	"os"
	"path/filepath"
	"testing"

	"loki/internal/tool/permission"
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

// TestGitThatRunsPrograms: git runs what the configuration of a repository names, and a model can put one together by writing files. So
// without a sandbox it is asked about, whatever it does.
func TestGitThatRunsPrograms(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Shell: "bash"})
	for _, text := range []string{
		"git status", "git diff --stat", "git log --oneline", "git show", "git blame a.txt", "git branch --show-current", "git remote -v", "git rev-parse HEAD", "git ls-files", "cd sub && git ls-files",
		"trap 'git ls-files' EXIT; cd sub", "git --no-pager branch", "/usr/bin/git branch",
	} {
		if v := j.Judge(shellCall(text)); v.Action != permission.Ask {
			t.Errorf("%s: %+v", text, v)
		}
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
