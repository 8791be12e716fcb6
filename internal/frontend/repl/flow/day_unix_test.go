//go:build unix

package flow_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// working is the model of TestDay: it plans, works, remembers, and starts a job.
const working = `rules:
  - match: {text: plan it, turn: 1}
    tool_calls:
      - {name: plan__propose, arguments: {title: Mend the sail, summary: It is torn., steps: [{text: Write sail.txt, files: [sail.txt]}]}}
  - match: {tool_result: '"accepted"'}
    tool_calls:
      - {name: fs_write, arguments: {path: sail.txt, contents: "mended\n"}}
      - {name: todo__done, arguments: {id: 1}}
      - {name: memory__save, arguments: {title: Sails, text: Sails are mended with waxed thread., scope: workspace}}
  - match: {text: serve it, turn: 1}
    tool_calls:
      - {name: execute_command, arguments: {command: "echo up; sleep 611", background: true, ready: up}}
default: {reply: It is done. One two three four., chunk_delay: 300ms} # keys that follow an answer without a pause are no line
`

// TestDay is a day's work in a clone: its instructions are trusted, a plan is accepted and done in a worktree, a fact is kept, a job runs, the talk is exported, and
// the work is merged. In the evening there is nothing left but that.
func TestDay(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Parallel()
	u := start(t, setup{
		columns: 110, rows: 60, rules: working, config: "enabled_tools: all\n", args: []string{"--worktree=sail", "-s", "day"},
		before: `mkdir shop; cd shop; git init -q; git config user.name Ann; git config user.email a@b.example; echo Write short lines. >AGENTS.md; git add .; git commit -qm first; `,
	})
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = filepath.Join(u.home, "shop")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	u.idle(1)
	u.do(".mode plan", `^mode plan: `)
	u.enter("plan it")
	u.answer(`Write short lines(.|\n)*rust`, "y", "Enter")
	u.answer(`accept, and write unasked`, "1")
	u.sees(`plan accepted: Mend the sail`, `^It is done\.`, `proposes 1 change for the memory: Sails`)
	u.idle(3)
	if u.read("shop/sail.txt") != "" {
		t.Error("the checkout has the file before the merge")
	}
	u.do(".info instructions", `AGENTS\.md +used`)
	u.do(".memory accept all", `accepted: 1 proposal`)
	u.do(".memory", `workspace +Sails`)
	u.enter("serve it")
	u.sees(`runs job-[0-9a-f]{8}: echo up`)
	u.idle(7)
	u.do(".jobs", `job-[0-9a-f]{8} .*running`)
	u.do(".export day.md", `day\.md`)
	u.enter(".exit")
	u.answer("What should happen with it", "m", "Enter")
	u.sees(`merged 1 commit of loki/sail`)
	u.leaves(0)

	if got := u.read("shop/sail.txt") + git("status", "--porcelain") + git("branch", "--format=%(refname:short)", "--list", "loki/*"); got != "mended\n" {
		t.Errorf("the checkout has %q", got)
	}
	git("fsck", "--strict")
	if trees, _ := filepath.Glob(filepath.Join(u.home, "state", "worktrees", "*", "*")); len(trees) > 0 {
		t.Errorf("left are the worktrees %q", trees)
	}
	if out, err := exec.Command("ps", "-eo", "args").Output(); err != nil || strings.Contains(string(out), "sleep 611") {
		t.Errorf("left is the job, %v: %s", err, out)
	}
}
