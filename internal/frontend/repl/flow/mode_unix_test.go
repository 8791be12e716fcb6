//go:build unix

package flow_test

import (
	"strings"
	"testing"
)

// planning proposes a plan after a while, and does the work once it is accepted.
const planning = `rules:
  - match: {text: plan it, turn: 1}
    reply: "Let me see. "
    chunk_delay: 500ms
    tool_calls:
      - {name: plan__propose, arguments: {title: Mend the boat, summary: It leaks., steps: [{text: Make b.txt, files: [b.txt]}, {text: Check it}]}}
  - match: {tool_result: '"accepted"'}
    tool_calls:
      - {name: fs_write, arguments: {path: b.txt, contents: done}}
      - {name: todo__done, arguments: {id: 1}}
      - {name: todo__done, arguments: {id: 2}}
  - match: {tool_result: '"refused"'}
    reply: Noted. One two three four.
    chunk_delay: 300ms # keys that follow an answer without a pause are no line
default: {reply: Finished. One two three four., chunk_delay: 300ms}
`

// TestPlanMode: the mode is shown and changed at the prompt, and a plan is accepted, changed and refused.
func TestPlanMode(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{columns: 100, rows: 60, rules: planning, config: "enabled_tools: all\nvisible_tools: [fs_write]\n"})
	u.do(".mode", `^mode ask: you are asked about changes$`)
	u.typed("half a li")
	u.sees(`half a li$`)
	u.keys("BTab")
	u.sees(`^builtin:script\)\[plan\]> half a li$`)
	u.keys("BTab")
	u.sees(`^builtin:script\)> half a li$`)
	u.keys("C-u")
	u.do(".mode plan", `^mode plan: nothing is changed until you accept a plan$`)
	u.prompted("builtin:script)[plan]>")

	u.enter("plan it")
	u.answer(`accept, and write unasked`, "e")
	u.sees(`Change the plan\.`, `2\. Check it`)

	// Esc leaves the plan as it was, whatever was typed.
	u.typed(" in vain")
	u.sees(`Check it in vain`, `esc back without a change`)
	u.keys("Escape")
	u.answer(`accept, and write unasked`, "e")
	u.until("the plan again", func(all string) bool {
		return strings.Count(all, "Change the plan.") == 2 && strings.Contains(all, "esc back")
	})

	// It is changed, and shown again, and then refused with a reason.
	u.typed(" twice")
	u.keys("Enter")
	u.sees(`2\. Check it twice`)
	u.answer(`no, and say why`, "n")
	u.sees(`What should be different`)
	u.typed("Use oak.")
	u.keys("Enter")
	u.sees(`plan refused: Mend the boat`, `^Noted\.`)
	u.idle(3)

	// Accepted, its steps are done, and plan mode is over.
	u.enter("plan it")
	u.answer(`accept, and write unasked`, "1")
	u.sees(`plan accepted: Mend the boat; the mode is ask`, `^Finished\.`)
	u.until("the file", func(string) bool { return u.read("b.txt") == "done" })
	u.idle(4)
	u.prompted("builtin:script)>")

	// Writing unasked is typed, and takes Enter at a question.
	u.do(".mode write", `^mode write: programs write in the workspace without asking$`)
	u.prompted("builtin:script)[write]>")
	u.keys("BTab")
	u.sees(`^builtin:script\)\[plan\]>$`)
	u.enter("plan it")
	u.answer(`accept, and write unasked`, "2", "Enter")
	u.sees(`the mode is write`)
	u.idle(6)
	u.prompted("builtin:script)[write]>")
	u.do(".mode careful", `want ask, plan or write`)

	// A key that was typed before the plan was there accepts nothing.
	u.do(".mode plan")
	before := strings.Count(u.joined(), "plan accepted")
	u.enter("plan it")
	u.keys("1")
	u.answer(`accept, and write unasked`, "C-c")
	u.sees(`^builtin:script\)\[plan\]> 1$`)
	if n := strings.Count(u.joined(), "plan accepted"); n != before {
		t.Errorf("%d plans were accepted, want %d", n, before)
	}
}
