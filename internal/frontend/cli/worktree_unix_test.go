//go:build linux || darwin

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/ptytest"
)

// TestWorktreeQuestion answers the question at the end of work in a worktree.
func TestWorktreeQuestion(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	const rules = `
rules:
  - match: {turn: 1, text: conflicts}
    tool_calls: [{name: fs_write, arguments: {path: one.txt, contents: "RESOLVED\n"}}]
  - match: {turn: 1}
    tool_calls: [{name: fs_write, arguments: {path: one.txt, contents: "new\n"}}, {name: execute_command, arguments: {command: "sh $MEANWHILE", sandbox: full, reason: test}}]
default: {reply: "the end"}
`
	for _, tt := range []struct {
		name      string
		meanwhile string
		steps     []string // texts that are waited for, and what is typed then
		one       string
		status    string // of git
	}{
		{"merge", "", []string{"What should happen with it?|press ", "m\r", "merged 1 commit", ""}, "new\n", ""},
		{"apply", "", []string{"What should happen with it?|press ", "a\r", "applied the changes of 1 file", ""}, "new\n", " M one.txt\n"},
		{"keep", "", []string{"What should happen with it?|press ", "k\r", "kept the branch loki/w with 1 commit", ""}, "old\n", ""},
		{"discard", "", []string{"What should happen with it?|press ", "d\r", "no, keep the branch|press ", "d\r", "discarded the work", ""}, "old\n", ""},
		{"resolve", "echo mine >one.txt && git commit -qam mine", []string{"cannot be merged|press ", "r\r", "merge|press ", "m\r", "merged 2 commits", ""}, "both\n", ""},
		{"resolve for the own side", "echo mine >one.txt && git commit -qam mine", []string{"cannot be merged|press ", "r\r", "merge|press ", "m\r", "merged 2 commits", ""}, "new\n", ""},
		{"uncommitted", "echo mine >one.txt", []string{"cannot be merged|press ", "k\r", "kept the branch", ""}, "mine\n", " M one.txt\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			repo := filepath.Join(dir, "shop")
			write(t, filepath.Join(repo, "one.txt"), "old\n")
			write(t, filepath.Join(dir, "rules.yaml"), strings.Replace(rules, "RESOLVED", strings.TrimSpace(tt.one), 1))
			write(t, filepath.Join(dir, "meanwhile"), "cd "+repo+"\n"+tt.meanwhile+"\n")
			write(t, filepath.Join(dir, "home", "config", "agents", "writer", "config.yaml"), "name: writer\nglobal_tools: [fs_write, execute_command]\n")
			env := append(emptyHome(dir), "TERM=xterm", "NO_COLOR=", "LOKI_SCRIPT_FILE="+filepath.Join(dir, "rules.yaml"), "MEANWHILE="+filepath.Join(dir, "meanwhile"))
			git := func(args ...string) string {
				cmd := exec.Command("git", args...)
				cmd.Dir, cmd.Env = repo, env
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			git("init", "-q")
			git("config", "user.name", "Ann")
			git("config", "user.email", "ann@example.com")
			git("add", "-A")
			git("commit", "-qm", "first")
			cmd := exec.Command("loki", "-y", "-m", "builtin:script", "-a", "writer", "--worktree=w", "x")
			cmd.Dir, cmd.Env = repo, env
			x := ptytest.Start(t, 40, cmd)
			for i := 0; i < len(tt.steps); i += 2 {
				seesQuestion(x, "xterm", tt.steps[i])
				x.Types(tt.steps[i+1])
			}
			if status := x.Ends(); status != 0 {
				t.Errorf("status %d\n%s", status, x.Drawn())
			}
			if got, err := os.ReadFile(filepath.Join(repo, "one.txt")); err != nil || string(got) != tt.one {
				t.Errorf("one.txt is %q, %v\n%s", got, err, x.Drawn())
			}
			if got := git("status", "--porcelain"); got != tt.status {
				t.Errorf("git status: %q", got)
			}
		})
	}
}
