//go:build unix

package cli

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"loki/internal/base/ptytest"
)

// TestInterruptQuestion presses Ctrl-C at questions that come up in several places. Each time all
// work ends, no model reads of it, and the run goes on with the same question.
func TestInterruptQuestion(t *testing.T) {
	const script = `
rules:
  - match: {system: You lead, turn: 1}
    tool_calls: [{name: agent__spawn, arguments: {agent: NAME, prompt: a}}, {name: agent__spawn, arguments: {agent: NAME, prompt: b}}]
  - match: {system: You lead, turn: 2, result_regex: '"id":\s*"(\w+)"'}
    tool_calls: [{name: agent__collect, arguments: {id: $1}}]
  - match: {system: You write, turn: 1}
    tool_calls: [{name: fs_write, arguments: {path: one.txt, contents: new}}]
  - match: {system: You ask, turn: 1}
    tool_calls: [{name: user__input, arguments: {question: "Which name?"}}]
default: {reply: 'the end {{tool_result}}'}
`
	node := func(agent string) string {
		return "name: flow\nstart: look\nnodes:\n  look: {type: agent, agent: " + agent + ", prompt: go, next: done}\n  done: {type: end, output: the end}\n"
	}
	for _, tt := range []struct{ name, agent, child, asks string }{
		{"permission_of_a_child", "lead", "writer", "Replace the contents"},
		{"permission_below_a_node", "./consents", "", "Replace the contents"},
		{"question_below_a_node", "./asks", "", "Which name?"},
		{"question_of_the_agent", "asker", "", "Which name?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "one.txt"), "old")
			for agent, config := range map[string]string{
				"lead":   "can_spawn_agents: true\ninstructions: You lead.\n",
				"writer": "instructions: You write.\nglobal_tools: [fs_write]\n",
				"asker":  "instructions: You ask.\n",
			} {
				write(t, filepath.Join(dir, "home", "config", "agents", agent, "config.yaml"), "name: "+agent+"\n"+config)
			}
			write(t, filepath.Join(dir, "consents", "graph.yaml"), node("writer"))
			write(t, filepath.Join(dir, "asks", "graph.yaml"), node("asker"))
			write(t, filepath.Join(dir, "script.yaml"), strings.ReplaceAll(script, "NAME", tt.child))
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, "loki", "-a", tt.agent, "-m", "builtin:script/"+filepath.Join(dir, "script.yaml"), "go")
			cmd.Dir, cmd.Env = dir, append(emptyHome(dir), "TERM=xterm-256color", "NO_COLOR=")
			screen, err := pty.Start(cmd)
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			var shown []byte
			pressed := false
			for buf := make([]byte, 4096); ; {
				n, err := screen.Read(buf)
				shown = append(shown, buf[:n]...)
				if i := bytes.Index(shown, []byte(tt.asks)); i >= 0 && !pressed && bytes.Contains(shown[i:], []byte("\x1b[")) { // the field below it is there
					pressed = true
					_, _ = screen.WriteString("\x03")
				}
				if err != nil { // the program has closed the terminal
					break
				}
			}
			_ = cmd.Wait() // the status is looked at next
			if got := cmd.ProcessState.ExitCode(); got != 130 || !pressed {
				t.Errorf("exit status %d, pressed %v", got, pressed)
			}
			for _, text := range []string{"writer FAILED", "asker FAILED", "the end"} {
				if bytes.Contains(shown, []byte(text)) {
					t.Errorf("it shows %q", text)
				}
			}
			answered := exec.CommandContext(ctx, "loki", "--resume", "--answer", "yes")
			answered.Dir, answered.Env = dir, cmd.Env
			if out, _ := answered.CombinedOutput(); tt.asks == "Replace the contents" && (!bytes.Contains(out, []byte("was canceled at its question")) || !bytes.Contains(out, []byte(" --answer TEXT"))) { // else the key may have come before the question
				t.Errorf("an answer without an id:\n%s", out)
			}
			again := exec.CommandContext(ctx, "loki", "--resume")
			again.Dir, again.Env = dir, cmd.Env
			out, _ := again.CombinedOutput()
			if got := again.ProcessState.ExitCode(); got != 8 || !strings.Contains(string(out), tt.asks) {
				t.Errorf("resumed: exit status %d: %s", got, out)
			}
			if t.Failed() {
				t.Logf("%s", shown)
			}
		})
	}
}

// TestQuestionAboutAttachment attaches a file that a rule asks about, at a terminal.
func TestQuestionAboutAttachment(t *testing.T) {
	for key, tt := range map[string]struct {
		shows  string
		status int
	}{"y": {"one of the user", 0}, "n": {"one.txt is not attached, and nothing was sent", 2}} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "one.txt"), "one of the user")
			write(t, filepath.Join(dir, "home", "config", "config.yaml"), "clients: [{type: builtin}]\npermission: {rules: [{tool: fs_read, action: ask, path: one.txt}]}\n")
			cmd := exec.Command("loki", "-m", "builtin:echo", "-f", "one.txt", "hello")
			cmd.Dir, cmd.Env = dir, append(emptyHome(dir), "TERM=xterm-256color", "NO_COLOR=")
			x := ptytest.Start(t, 80, cmd)
			x.Sees("May the model read one.txt?")
			x.Sees("press ")
			x.Types(key)
			x.Sees(tt.shows)
			if status := x.Ends(); status != tt.status {
				t.Errorf("status %d\n%s", status, x.Drawn())
			}
		})
	}
}
