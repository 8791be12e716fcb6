//go:build unix

package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/process/sandbox"
)

// TestSkillTools loads a skill that lists tools at a terminal: the question shows what they mean, a no and the answer for a session are not
// kept, and the lasting answer holds for the skill as it is.
func TestSkillTools(t *testing.T) {
	if !sandbox.New(sandbox.Options{Workspace: t.TempDir()}).Support().Files {
		t.Skip("there is no sandbox, so that commands are asked about")
	}
	t.Parallel()
	dir := t.TempDir()
	md := "---\nname: touch\ndescription: Makes a file.\nallowed-tools: Bash(touch:*) Other\n---\nMake it.\n"
	write(t, filepath.Join(dir, ".agents", "skills", "touch", "SKILL.md"), md)
	write(t, filepath.Join(dir, "rules.yaml"), "rules:\n"+
		"  - {match: {turn: 1}, tool_calls: [{name: skill, arguments: {name: touch}}]}\n"+
		"  - {match: {turn: 2}, tool_calls: [{name: execute_command, arguments: {command: touch made, sandbox: write}}]}\n"+
		"  - {match: {tool_result: consent}, reply: refused}\ndefault: {reply: done}\n")
	run := func(more ...string) *terminal {
		cmd := exec.Command("loki", append([]string{"-m", "builtin:script/rules.yaml", "go"}, more...)...)
		cmd.Dir, cmd.Env = dir, emptyHome(dir, "TERM=dumb", "LOKI_ENABLED_TOOLS=execute_command", "LOKI_TRUSTED_DIRS="+dir)
		return newTerminal(t, cmd)
	}
	question := []string{"The skill touch in", "level write: touch *", "These mean nothing here: Other", "for this skill as it is now", "Number: "}

	term := run()
	term.wait(question...)
	term.send("no\r")
	term.wait("touch made", "no in your own words")
	term.send("no\r")
	term.wait("refused")
	term.end()

	term = run() // a no is not kept
	term.wait(question...)
	term.send("yes, in this session\r")
	term.wait("done")
	term.end()

	term = run()
	term.wait(question...)
	term.send("always, for this skill as it is now\r")
	term.wait("done")
	term.end()

	term = run()
	term.wait("done")
	term.end()

	// A changed skill is asked about again. A rule of the user wins.
	write(t, filepath.Join(dir, ".agents", "skills", "touch", "more.md"), "more")
	term = run()
	term.wait(question...)
	term.send("always, for this skill as it is now\r")
	term.wait("done")
	term.end()
	cmd := exec.Command("loki", "--list", "trusted")
	cmd.Dir, cmd.Env = dir, emptyHome(dir)
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "touch  trusted  2 files") {
		t.Errorf("%s", out)
	}
}

// TestSkillToolsInGraph loads a skill that lists tools at a node of a graph: a yes holds for the nodes of the run, and without a terminal nothing
// is allowed.
func TestSkillToolsInGraph(t *testing.T) {
	if !sandbox.New(sandbox.Options{Workspace: t.TempDir()}).Support().Files {
		t.Skip("there is no sandbox, so that commands are asked about")
	}
	t.Parallel()
	dir := t.TempDir()
	agent := filepath.Join(dir, ".loki", "agents", "team")
	write(t, filepath.Join(agent, "skills", "touch", "SKILL.md"), "---\nname: touch\ndescription: Makes a file.\nallowed-tools: Bash(touch:*)\n---\nMake it.\n")
	write(t, filepath.Join(agent, "graph.yaml"), "name: team\nglobal_tools: [execute_command]\nstart: one\nnodes:\n"+
		"  one: {type: llm, model: builtin:script/rules.yaml, prompt: x, tools: [execute_command], skills: [touch], next: two}\n"+
		"  two: {type: llm, model: builtin:script/rules.yaml, prompt: x, tools: [execute_command], skills: [touch], state_updates: {said: '{{output}}'}, next: end}\n"+
		"  end: {type: end, output: '{{said}}'}\n")
	write(t, filepath.Join(dir, "rules.yaml"), "rules:\n"+
		"  - {match: {turn: 1}, tool_calls: [{name: skill, arguments: {name: touch}}]}\n"+
		"  - {match: {turn: 2}, tool_calls: [{name: execute_command, arguments: {command: touch made, sandbox: write}}]}\n"+
		"  - {match: {tool_result: consent}, reply: refused}\ndefault: {reply: done}\n")
	run := func() *exec.Cmd {
		cmd := exec.Command("loki", "-a", agent, "go")
		cmd.Dir, cmd.Env = dir, emptyHome(dir, "TERM=dumb", "LOKI_TRUSTED_DIRS="+dir)
		return cmd
	}
	term := newTerminal(t, run())
	term.wait("The skill touch in", "level write: touch *", "yes, in this run", "Number: ")
	term.send("yes, in this run\r")
	term.wait("done")
	term.end()
	if out, err := run().CombinedOutput(); err == nil || !strings.Contains(string(out), "touch made") {
		t.Errorf("without a terminal: %v, %s", err, out)
	}
}
