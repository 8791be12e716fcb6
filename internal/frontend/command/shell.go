package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/text"
	"loki/internal/knowledge/input"
)

const (
	// maxShellOutput is how many bytes of a command's output can go with a prompt.
	maxShellOutput = 64 << 10
	// shellPatience is how long the output of a command that has ended is waited for: a program that it
	// left behind may keep it open.
	shellPatience = time.Second
)

// Terminal is what a shell command reads and writes, and its environment.
type Terminal struct {
	In      io.Reader
	Out     io.Writer // of both of its streams
	Environ []string
}

// ShellError is the error of a shell command that ran and failed.
type ShellError struct {
	Status string // such as "exit status 3" or "signal: interrupt"
}

// Error implements error.
func (e *ShellError) Error() string { return "the command ended with " + e.Status }

// shellCommand returns the command in a text that begins with an exclamation mark.
func shellCommand(text string) (command string, ok bool) {
	command, ok = strings.CutPrefix(strings.TrimSpace(text), "!")
	return strings.TrimSpace(command), ok
}

// shell runs a command with the user's shell at the terminal, as that shell would. What it prints is
// kept: "!! TEXT" sends it with a prompt. The error is a [*ShellError] if the command fails, which a user who types
// has been shown then.
func (c *Console) shell(ctx context.Context, command string) error {
	if question, ok := strings.CutPrefix(command, "!"); ok {
		return c.askAbout(ctx, strings.TrimSpace(question))
	}
	switch {
	case command == "":
		return fault.New(fault.Usage, "there is no command behind the !").WithHint("run one with your shell: !git status")
	case c.Shell == nil:
		return fault.New(fault.Usage, "a command of the shell cannot be run here")
	case c.InMacro && c.conv.State().DryRun:
		c.Out.Note("▸ dry run: the command is not run")
		c.output = input.Document{Kind: input.Command, Name: command + " (not run)"}
		return nil
	}
	sh := c.App.Shell()
	out := &tail{limit: maxShellOutput}
	terminal, release := c.Shell()
	cmd := exec.CommandContext(ctx, sh.Path, sh.Flag, command)
	both := io.MultiWriter(terminal.Out, out) // of one type, so that one pipe has both streams in their order
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = terminal.In, both, both, terminal.Environ
	cmd.WaitDelay = shellPatience
	err := process.RunAtTerminal(cmd)
	release()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case cmd.ProcessState == nil:
		return fault.Wrap(fault.Tool, err, "shell %s", sh.Path).WithHint("set LOKI_SHELL to the shell to use")
	}
	c.output = input.Document{Kind: input.Command, Name: command, Text: out.text()}
	if err = nil; !cmd.ProcessState.Success() { // else a program that was left behind has the output open
		failed := &ShellError{cmd.ProcessState.String()}
		c.output.Name += " (" + failed.Status + ")"
		err = failed
	}
	c.reportShell(err)
	return err
}

// reportShell shows the user how a command has ended, and, the first time, how to send its output. In a
// macro the error says it.
func (c *Console) reportShell(err error) {
	if !c.Interactive || c.InMacro {
		return
	}
	if failed, ok := errors.AsType[*ShellError](err); ok {
		c.Out.Note("▸ " + failed.Status)
	}
	if !c.hinted {
		c.hinted = true
		c.Out.Note("▸ !! TEXT sends this output with a prompt")
	}
}

// askAbout sends the output of the last shell command with a question.
func (c *Console) askAbout(ctx context.Context, question string) error {
	switch {
	case c.output == (input.Document{}):
		return fault.New(fault.Usage, "there is no output of a command to send").WithHint("run one first: !git status")
	case question == "":
		return fault.New(fault.Usage, "there is no question behind the !!").WithHint("write it there: !! what is wrong here?")
	}
	c.attached = append(c.attached, c.output)
	return c.Do(ctx, question)
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
