package repl

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/fault"
	"loki/internal/input"
	"loki/internal/text"
)

const (
	// maxShellOutput is how many bytes of a command's output can go with a prompt.
	maxShellOutput = 64 << 10
	// shellPatience is how long the output of a command that has ended is waited for: a program that it
	// left behind may keep it open.
	shellPatience = time.Second
)

// shellCommand returns the command in a text that begins with an exclamation mark.
func shellCommand(text string) (command string, ok bool) {
	command, ok = strings.CutPrefix(strings.TrimSpace(text), "!")
	return strings.TrimSpace(command), ok
}

// shell runs a command with the user's shell at the terminal, as that shell would. What it prints is
// kept: "!! TEXT" sends it with a prompt.
func (r *repl) shell(ctx context.Context, command string) error {
	if question, ok := strings.CutPrefix(command, "!"); ok {
		return r.askAbout(ctx, strings.TrimSpace(question))
	}
	if command == "" {
		return fault.New(fault.Usage, "there is no command behind the !").WithHint("run one with your shell: !git status")
	}
	sh := r.app.Shell()
	out := &tail{limit: maxShellOutput}
	release := r.lend()
	cmd := exec.Command(sh.Path, sh.Flag, command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = r.in, io.MultiWriter(r.out, out), io.MultiWriter(r.out, out), r.options.Environ
	cmd.WaitDelay = shellPatience
	err := cmd.Run()
	release()
	if cmd.ProcessState == nil {
		return fault.Wrap(fault.Tool, err, "shell %s", sh.Path).WithHint("set LOKI_SHELL to the shell to use")
	}
	status := ""
	if !cmd.ProcessState.Success() {
		status = " (" + cmd.ProcessState.String() + ")"
		fmt.Fprintln(r.out, r.dim("▸ "+cmd.ProcessState.String()))
	}
	r.output = input.Document{Kind: input.Command, Name: command + status, Text: out.text()}
	if !r.hinted {
		r.hinted = true
		fmt.Fprintln(r.out, r.dim("▸ !! TEXT sends this output with a prompt"))
	}
	return nil
}

// askAbout sends the output of the last shell command with a question.
func (r *repl) askAbout(ctx context.Context, question string) error {
	switch {
	case r.output == (input.Document{}):
		return fault.New(fault.Usage, "there is no output of a command to send").WithHint("run one first: !git status")
	case question == "":
		return fault.New(fault.Usage, "there is no question behind the !!").WithHint("write it there: !! what is wrong here?")
	}
	defer r.watchKeys()()
	r.console.Attach(r.output)
	return r.console.Do(ctx, question)
}

// tail keeps the end of what is written to it. It may be used from several goroutines.
type tail struct {
	limit int

	mu   sync.Mutex
	kept []byte
	cut  bool // something before it is left out
}

// Write implements [io.Writer]. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*t.limit {
		t.kept, t.cut = append(t.kept[:0], t.kept[len(t.kept)-t.limit:]...), true
	}
	return len(p), nil
}

// text returns what was kept, as plain text.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, note := t.kept, ""
	if t.cut = t.cut || len(kept) > t.limit; t.cut {
		kept = kept[max(0, len(kept)-t.limit):]
		note = fmt.Sprintf("[only the last %d bytes]\n", len(kept))
	}
	return note + text.Printable(ansi.Strip(strings.ToValidUTF8(string(kept), "")))
}
