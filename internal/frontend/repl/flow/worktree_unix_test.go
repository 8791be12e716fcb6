//go:build unix

package flow_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// writing is the model of TestWorktreeTalk, which changes a file and resolves its conflicts.
const writing = `rules:
  - match: {turn: 1, text: change it}
    tool_calls: [{name: fs_write, arguments: {path: one.txt, contents: "new\n"}}]
  - match: {turn: 1, text: "conflicts between marks"}
    tool_calls: [{name: fs_write, arguments: {path: one.txt, contents: "both\n"}}]
default: {reply: It is written.}
`

// TestWorktreeTalk: a chat in a worktree whose work has conflicts continues with the conversation that it was, and the model resolves them.
func TestWorktreeTalk(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Parallel()
	for _, session := range [][]string{nil, {"-s", "chat"}} {
		u := begin(t, setup{
			columns: 100, rows: 60, rules: writing, config: "enabled_tools: all\n", args: append([]string{"-y", "--worktree=w"}, session...),
			before: `mkdir shop; cd shop; git init -q; git config user.name Ann; git config user.email a@b.example; echo old >one.txt; git add .; git commit -qm first; `,
		})
		u.do("change it", `^It is written\.`)
		cmd := exec.Command("sh", "-c", "echo mine >one.txt; git commit -qam mine")
		cmd.Dir = filepath.Join(u.home, "shop")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		u.enter(".exit")
		u.answer("cannot be merged", "r", "Enter")
		u.sees(`These files have conflicts between marks(.|\n)*It is written\.`)
		u.idle(3)
		u.do(".info session", `^>> change it`, `^>> The branch was merged`)
		u.enter(".exit")
		u.answer("What should happen with it", "m", "Enter")
		u.sees(`merged 2 commits of loki/w`)
		u.leaves(0)
		if got := u.read("shop/one.txt"); got != "both\n" {
			t.Errorf("%v: one.txt is %q", session, got)
		}
	}
}
