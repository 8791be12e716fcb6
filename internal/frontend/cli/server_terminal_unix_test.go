//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// press is what a user types when a text is shown.
type press struct{ at, keys string }

// atTerminal runs a command at a terminal and returns what it shows and its exit status. Each text is looked for
// behind the one before it; its keys are typed when a field or a list is below it. A press without keys calls do.
func atTerminal(t *testing.T, cmd *exec.Cmd, presses []press, do func()) (shown string, status int) {
	t.Helper()
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	var seen []byte
	place := 0
	for buf := make([]byte, 4096); ; {
		n, err := screen.Read(buf)
		seen = append(seen, buf[:n]...)
		if len(presses) > 0 {
			i := bytes.Index(seen[place:], []byte(presses[0].at))
			switch {
			case i >= 0 && presses[0].keys == "":
				do()
			case i < 0 || !bytes.Contains(seen[place+i:], []byte("submit")) && !bytes.Contains(seen[place+i:], []byte("to choose")):
				i = -1
			default:
				_, _ = screen.WriteString(presses[0].keys)
			}
			if i >= 0 {
				place, presses = len(seen), presses[1:]
			}
		}
		if err != nil { // the program has closed the terminal
			break
		}
	}
	_ = cmd.Wait() // the status is looked at
	if len(presses) > 0 {
		t.Errorf("%q is not shown:\n%s", presses[0].at, seen)
	}
	return string(seen), cmd.ProcessState.ExitCode()
}

// TestServerTerminal has the command line at a terminal be the client of a server: it asks what a run asks, goes
// on with it, and says what happened when Ctrl-C or the end of the server comes in between.
func TestServerTerminal(t *testing.T) {
	dir := t.TempDir()
	agents := filepath.Join(dir, "home", "config", "agents")
	write(t, filepath.Join(dir, "home", "config", "config.yaml"), "model: builtin:echo\nclients:\n  - {type: builtin, script: rules.yaml}\n")
	write(t, filepath.Join(dir, "home", "config", "rules.yaml"), "default: {reply: one two three, chunk_delay: 20s}\n")
	write(t, filepath.Join(agents, "ask", "graph.yaml"), `
name: ask
start: who
nodes:
  who: {type: input, question: "Who is it?", state_updates: {who: "{{input}}"}, next: review}
  review: {type: approval, question: "Greet {{who}}?", options: [yes, no], routes: {yes: hello, no: bye}, on_other: bye}
  hello: {type: end, output: "Hello, {{who}}!"}
  bye: {type: end, output: "Bye."}
`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := exec.CommandContext(ctx, "loki", "--serve", "127.0.0.1:0")
	server.Dir, server.Env = dir, emptyHome(dir)
	lines, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Wait() }()
	defer cancel()
	url := ""
	for log := bufio.NewScanner(lines); url == "" && log.Scan(); {
		url, _ = strings.CutPrefix(log.Text(), "listening on ")
		if !strings.HasPrefix(url, "http") {
			url = ""
		}
	}
	client := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "loki", args...)
		cmd.Dir, cmd.Env = dir, append(emptyHome(dir), "TERM=xterm-256color", "NO_COLOR=", "LOKI_SERVER="+url)
		return cmd
	}

	shown, status := atTerminal(t, client("-a", "ask", "x"), []press{{"Who is it?", "Ada\r"}, {"Greet Ada?", "yes\r"}}, nil)
	if status != 0 || !strings.Contains(shown, "Hello, Ada!") {
		t.Errorf("answered: status %d:\n%s", status, shown)
	}
	shown, status = atTerminal(t, client("-a", "ask", "x"), []press{{"Who is it?", "\x03"}}, nil)
	if status != 130 || !strings.Contains(shown, "loki --resume ") {
		t.Errorf("Ctrl-C at the question: status %d:\n%s", status, shown)
	}
	shown, status = atTerminal(t, client("--resume"), []press{{"Who is it?", "Bob\r"}, {"Greet Bob?", "no\r"}}, nil)
	if status != 0 || !strings.Contains(shown, "Bye.") {
		t.Errorf("resumed: status %d:\n%s", status, shown)
	}
	prompt := client("-m", "builtin:script", "x")
	shown, status = atTerminal(t, prompt, []press{{"one", ""}}, func() { _ = prompt.Process.Signal(os.Interrupt) })
	if status != 130 || !strings.Contains(shown, "Canceled.") {
		t.Errorf("Ctrl-C in a reply: status %d:\n%s", status, shown)
	}
	shown, status = atTerminal(t, client("-m", "builtin:script", "x"), []press{{"one", ""}}, func() { _ = server.Process.Kill() })
	if status != 1 || !strings.Contains(shown, "the connection to the server at "+url+" was lost") {
		t.Errorf("without the server: status %d:\n%s", status, shown)
	}
}
