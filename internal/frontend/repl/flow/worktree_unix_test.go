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

// TestWorktreeAgent: an agent that is entered in a chat works in its worktree, and at its end the user decides about the work. The chat continues.
func TestWorktreeAgent(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Parallel()
	u := begin(t, setup{
		columns: 100, rows: 60, rules: writing, args: []string{"-y"}, config: "agent_session: null\n",
		files:  map[string]string{"config/agents/fixer/config.yaml": "name: fixer\ninstructions: Work.\nglobal_tools: [fs_write]\nworktree: true\n"},
		before: `mkdir shop; cd shop; git init -q; git config user.name Ann; git config user.email a@b.example; echo old >one.txt; git add .; git commit -qm first; `,
	})
	u.do(".agent fixer")
	u.do("change it", `works in the worktree fixer-[0-9a-f]+, on the branch loki/fixer-`, `^It is written\.`)
	u.do(".info", `^worktree +fixer-[0-9a-f]+, on the branch loki/fixer-`)
	if got := u.read("shop/one.txt"); got != "old\n" {
		t.Errorf("before the end, one.txt is %q", got)
	}
	cmd := exec.Command("sh", "-c", "echo mine >one.txt; git commit -qam mine")
	cmd.Dir = filepath.Join(u.home, "shop")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	u.enter(".exit agent")
	u.answer("cannot be merged", "r", "Enter")
	u.answer("  merge\n", "m", "Enter")
	u.sees(`merged 2 commits of loki/fixer-`)
	if got := u.read("shop/one.txt"); got != "both\n" {
		t.Errorf("one.txt is %q", got)
	}
	u.do("hello", `It is written\.`)
	u.enter(".exit")
	u.leaves(0)
}

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
