package permission_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"loki/internal/base/process/sandbox"
	"loki/internal/tool/permission"
)

// TestCopiesOfDeniedFiles: git has copies of files in its directory, which the sandbox does not close. A command that names a denied file, or
// shows contents where the file is one of the repository, is asked about at every level.
func TestCopiesOfDeniedFiles(t *testing.T) {
	t.Parallel()
	repository := func(version string, add ...string) string {
		root := project(t)
		plant(t, root, map[string]string{"secret/key": "x\n", ".env": "x\n", "src/symlink": "x\n"})
		for _, args := range append([][]string{{"init", "-q"}, {"config", "index.version", version}}, append([]string{"add", "a.txt", "src/symlink"}, add...)) {
			cmd := exec.CommandContext(t.Context(), "git", args...)
			cmd.Dir, cmd.Env = root, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Skipf("git: %v %s", err, out)
			}
		}
		return root
	}
	named := []string{
		"git show HEAD:secret/key", "git show HEAD~3:./secret/key", "git show :secret/key", "git --no-pager show HEAD:secret/key", "git cat-file -p HEAD:secret/key", "git cat-file blob abc123",
		"git diff HEAD -- secret/key", "git diff HEAD~1 secret/key", "git log -p -- secret/key", "git log -L1,2:secret/key", "git log -p -- secret/key src", "git blame secret/key", "git annotate -- secret/key",
		"git archive HEAD secret", "git archive HEAD", "git cat-file --batch --batch-all-objects", "git grep x HEAD -- secret/key", "git stash show -p -- secret/key",
		"cd secret && git show HEAD:./key", "cd secret; git blame key", "sh -c 'git show HEAD:secret/key'", "x=$(git show HEAD:secret/key)", "git show HEAD:secret/key | head -1", "xargs git show HEAD:secret/key",
		"/usr/bin/git show HEAD:secret/key", "git show HEAD:src/../secret/key", "hg cat -r 1 secret/key", "svn cat secret/key", "jj file show secret/key",
	}
	unnamed := []string{
		"git show", "git show HEAD", "git diff", "git diff --cached", "git diff main...HEAD", "git log -p", "git log --patch -3", "git log -u", "git log -U5", "git log --unified=3", "git log --word-diff",
		"git stash show -p", "git stash show --patch stash@{1}", "git whatchanged -p", "git format-patch -1 --stdout", "git diff-tree -p HEAD", "git fast-export HEAD", "git bundle create - HEAD",
		"git grep x HEAD", "git -C src show HEAD", "git read-tree --prefix=copy/ HEAD", "git checkout-index -a --prefix=copy/", "git worktree add copy", "git clone . copy",
	}
	harmless := []string{"git status", "git log --oneline -5", "git log --stat", "git branch -a", "git add -A", "git commit -m x", "git ls-files", "git rev-parse HEAD", "git push origin main", "git switch -c x", "git checkout -b x"}
	for _, tt := range []struct {
		name  string
		root  string
		asked bool // about what names no file
	}{
		{"tracked", repository("2", "secret/key"), true},
		{"tracked_in_version_4", repository("4", "secret/key"), true},
		{"intended", repository("2", "-N", "secret/key"), true},
		{"not_tracked", repository("2"), false},
		{"no_repository", project(t), true},
	} {
		plant(t, tt.root, map[string]string{"secret/key": "x\n"})
		for _, pattern := range []string{"secret/**", "secret/key", "**/key", filepath.Join(resolved(t, tt.root), "secret")} {
			j := judge(t, permission.Options{Root: tt.root, Shell: "bash", Sandboxed: true, Rules: permission.Rules{List: []permission.Rule{
				{Tool: "*", Action: permission.Deny, Paths: []string{pattern}}, {Tool: "execute_command", Action: permission.Allow, Commands: []string{"*"}, Sandbox: sandbox.Write},
			}}})
			check := func(text string, asked bool) {
				for _, level := range []sandbox.Level{sandbox.Read, sandbox.Write} {
					if v := j.Judge(levelCall(text, level)); (v.Action != permission.Allow) != asked {
						t.Errorf("%s, deny %s: %s: %s: %s %s", tt.name, pattern, level, text, v.Action, v.Reason)
					}
				}
			}
			for _, text := range named {
				check(text, true)
			}
			for _, text := range unnamed {
				check(text, tt.asked)
			}
			for _, text := range harmless {
				check(text, false)
			}
		}
	}
}
