//go:build unix

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// planRules has a model write a graph that is right, and one that is not.
const planRules = `
rules:
  - match: {node: write, text: wrong}
    reply: "` + "```yaml graph.yaml\\nname: wrong\\nstart: a\\nnodes:\\n  a: {type: script, script: a.sh, next: nowhere}\\n  done: {type: end, output: done}\\n```\\n```sh a.sh\\ntouch ran; echo '{}'\\n```" + `"
  - match: {node: write}
    reply: "` + "```yaml graph.yaml\\nname: Right One\\nstart: a\\nnodes:\\n  a: {type: script, script: a.sh, next: done}\\n  done: {type: end, output: all done}\\n```\\n```sh a.sh\\ntouch ran; echo '{}'\\n```" + `"
`

// TestPlanTerminal shows plans at a terminal, and does what the user chooses there.
func TestPlanTerminal(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	type step struct{ wait, send string } // texts that are waited for, with | between them
	for _, tt := range []struct {
		name  string
		args  []string
		steps []step
		shown string // at the end
		runs  bool
		saved string // name of the agent
	}{
		{name: "no", steps: []step{{"Script a.sh|What do you want to do with this plan?|Number: ", "4\n"}}, shown: "nothing was run or saved"},
		{name: "enter", steps: []step{{"What do you want to do with this plan?|Number: ", "\n"}, {"Number: ", "no\n"}}, shown: "nothing was run or saved"},
		{name: "run", steps: []step{{"touch ran|What do you want to do with this plan?|Number: ", "run it\n"}}, shown: "all done", runs: true},
		{name: "save", steps: []step{{"What do you want to do with this plan?|Number: ", "3\n"}, {"What is the agent to be called?", "\n"}}, shown: "run it: loki -a right-one TEXT", saved: "right-one"},
		{
			name: "save_as", steps: []step{{"What do you want to do with this plan?|Number: ", "3\n"}, {"What is the agent to be called?", "digest\n"}, {"already", "other\n"}},
			shown: "run it: loki -a other TEXT", saved: "other",
		},
		{name: "save_named", args: []string{"--save", "mine"}, steps: []step{{"3) save it as mine|Number: ", "3\n"}}, shown: "run it: loki -a mine TEXT", saved: "mine"},
		{
			name:  "edit",
			steps: []step{{"What do you want to do with this plan?|Number: ", "edit it\n"}, {"Plan: Edited|What do you want to do with this plan?|Number: ", "3\n"}, {"to be called?", "edited\n"}},
			shown: "run it: loki -a edited TEXT", saved: "edited",
		},
		{
			name: "edit_a_wrong_one", args: []string{"--plan", "wrong"},
			steps: []step{
				{"error: a: next leads to|This plan cannot be used as it is.|Number: ", "edit it\n"}, {"Plan: Edited|What do you want to do with this plan?|Number: ", "no\n"},
			},
			shown: "nothing was run or saved",
		},
		{name: "leave_a_wrong_one", args: []string{"--plan", "wrong"}, steps: []step{{"This plan cannot be used as it is.|Number: ", "no\n"}}, shown: "no valid graph after 3 corrections"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "rules.yaml"), planRules)
			// The editor changes the name, and makes the target one that there is.
			write(t, filepath.Join(dir, "editor.sh"), "grep -q '^```yaml graph.yaml' \"$1\" && sed -i 's/^name:.*/name: Edited/; s/nowhere/done/' \"$1\"\n")
			args := []string{"-q", "-m", "builtin:script/rules.yaml"}
			if tt.args == nil || tt.args[0] != "--plan" {
				args = append(args, "--plan", "a wish")
			}
			cmd := exec.Command("loki", append(args, tt.args...)...)
			cmd.Dir = dir
			cmd.Env = append(emptyHome(dir), "TERM=dumb", "EDITOR=sh "+filepath.Join(dir, "editor.sh"))
			term := newTerminal(t, cmd)
			for _, s := range tt.steps {
				term.wait(strings.Split(s.wait, "|")...)
				if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
					t.Fatal("it ran before the answer")
				}
				term.send(s.send)
			}
			term.end()
			if !strings.Contains(term.seen.String(), tt.shown) {
				t.Errorf("the terminal shows %q", term.seen.String())
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); (err == nil) != tt.runs {
				t.Errorf("it ran: %v", err == nil)
			}
			saved, _ := filepath.Glob(filepath.Join(dir, "home", "config", "agents", "*", "a.sh"))
			if got := len(saved) > 0; got != (tt.saved != "") || got && filepath.Base(filepath.Dir(saved[0])) != tt.saved {
				t.Errorf("saved are %q", saved)
			}
		})
	}
}

// TestPlanChangedMeanwhile: a change of an agent that has changed since it was read is not saved.
func TestPlanChangedMeanwhile(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	for name, edit := range map[string]string{"same": "", "other": "# mine\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "rules.yaml"), planRules)
			file := filepath.Join(dir, "home", "config", "agents", "mine", "graph.yaml")
			const old = "name: mine\nstart: done\nnodes:\n  done: {type: end, output: old}\n"
			write(t, file, old)
			cmd := exec.Command("loki", "-q", "-m", "builtin:script/rules.yaml", "--plan", "a wish", "-a", "mine")
			cmd.Dir = dir
			cmd.Env = append(emptyHome(dir), "TERM=dumb")
			term := newTerminal(t, cmd)
			term.wait("-name: mine", "+name: Right One", "1) edit it", "2) save the change of mine", "3) no", "Number: ")
			write(t, file, edit+old)
			term.send("2\n")
			term.end()
			saved, err := os.ReadFile(file)
			if err != nil || strings.Contains(string(saved), "Right One") != (edit == "") {
				t.Errorf("the agent is %q, %v; the terminal shows %q", saved, err, term.seen.String())
			}
			if edit != "" && !strings.Contains(term.seen.String(), "has changed while its change was planned") {
				t.Errorf("the terminal shows %q", term.seen.String())
			}
		})
	}
}
