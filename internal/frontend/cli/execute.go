package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"loki/internal/agent/role"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/conversation"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
	"loki/internal/llm/chat"
)

// execute has the model write a command for the user's shell, and does with it what the
// user decides. Without a terminal to decide at, the command is printed: that is what
// key bindings of shells read.
func (c *command) execute(ctx context.Context, face *face) error {
	return c.talkAbout(ctx, face, func(conv *conversation.Conversation, asked conversation.Asked) error {
		for {
			a, err := conv.Ask(ctx, conversation.Question{Asked: asked, Command: true})
			if err != nil {
				return err
			}
			if err := conv.Record(context.WithoutCancel(ctx), asked, a); err != nil {
				return err
			}
			if strings.TrimSpace(a.Text) == "" {
				return fault.New(fault.Provider, "the model wrote no command").WithHint("say more precisely what the command is to do")
			}
			if !c.decides() {
				return nil // it has been printed
			}
			revision, err := c.decide(ctx, face, conv, a.Text)
			if err != nil || revision == "" {
				return err
			}
			asked.Text += "\n" + revision
			asked.User.Parts = append(asked.User.Parts, chat.Part{Type: chat.TextPart, Text: "\n" + revision})
		}
	})
}

// decides reports whether the user can decide about the command.
func (c *command) decides() bool {
	return c.OutTerminal && c.app != nil && !c.app.DryRun() && c.opts.output == outputText
}

// decide asks what to do with a command and does it. It returns how to revise the command, "" if
// all is done.
func (c *command) decide(ctx context.Context, face *face, conv *conversation.Conversation, command string) (revision string, err error) {
	terminal := c.terminal()
	face.screen.Close() // from here on the terminal is the user's
	hidden := c.present(command)
	for {
		key, err := terminal.Key(ctx, c.menu(), "\nerdcq") // the first is Enter, which decides nothing
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		switch key {
		case '\n':
		case 'e':
			if hidden {
				sure, err := terminal.Key(ctx, "Execute it with the characters that are not shown? "+c.paint(cyan, "y")+" | "+c.paint(cyan, "n")+": ", "ny")
				if err != nil && !errors.Is(err, io.EOF) {
					return "", err
				}
				if sure != 'y' {
					continue
				}
			}
			return "", c.runShell(command)
		case 'r':
			revision, err := terminal.Ask(ctx, ask.Question{Kind: ask.Text, Text: "What should be different?"})
			if err != nil || strings.TrimSpace(revision) != "" {
				return revision, err
			}
		case 'd':
			if err := c.describe(ctx, conv, command); err != nil {
				return "", err
			}
		case 'c':
			if err := display.Copy(command, c.terminalOut()); err != nil {
				return "", fault.Wrap(fault.Failure, err, "copying the command")
			}
			fmt.Fprintln(c.Out, c.paint(faint, "Copied."))
			return "", nil
		default:
			return "", nil
		}
	}
}

// present shows a command as it would be run: what could hide a part of it is written as an
// escape. It reports whether there is such a part.
func (c *command) present(command string) (hidden bool) {
	shown := text.Visible(command)
	fmt.Fprintln(c.Out, c.paint(orange, shown))
	if hidden = shown != command; hidden {
		fmt.Fprintln(c.Out, c.paint(faint, `It has characters that a terminal does not show, written here as \u and their number.`))
	}
	rows := 24
	if size := c.display().Size(); size != nil {
		if _, n := size(); n > 0 {
			rows = n
		}
	}
	if lines := strings.Count(shown, "\n") + 1; lines > rows-3 {
		fmt.Fprintln(c.Out, c.paint(faint, fmt.Sprintf("It has %d lines: scroll up to read it from its start.", lines)))
	}
	return hidden
}

// terminalOut is standard output if it is a terminal that obeys escape sequences, else nil.
func (c *command) terminalOut() io.Writer {
	if f, ok := c.Out.(*os.File); ok && render.IsTerminal(f, c.getenv) {
		return f
	}
	return nil
}

// Colors, as parameters of the escape sequence.
const (
	orange = "38;2;255;165;0"
	cyan   = "36"
	faint  = "2"
)

// paint colors text on standard output.
func (c *command) paint(color, text string) string {
	if !c.outColor() {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// menu names the keys of decide.
func (c *command) menu() string {
	var items []string
	for _, name := range []string{"execute", "revise", "describe", "copy", "quit"} {
		items = append(items, c.paint(cyan, name[:1])+name[1:])
	}
	return strings.Join(items, c.paint(faint, " | ")) + ": "
}

// describe has the command explained.
func (c *command) describe(ctx context.Context, conv *conversation.Conversation, command string) error {
	r, warnings, err := c.app.Roles().Load("explain-shell")
	c.warnProblems(warnings)
	if err != nil {
		return err
	}
	return c.showAnswer(ctx, conv, r, command)
}

// showAnswer prints how the role r answers text, outside of the conversation.
func (c *command) showAnswer(ctx context.Context, conv *conversation.Conversation, r role.Role, text string) error {
	plain := *c
	plain.opts.execute = false // it is an answer like any other
	face := plain.newFace(ctx)
	_, err := conv.With(c.app.Events(face.emitter)).Ask(ctx, conversation.Question{Asked: conversation.Asked{User: chat.Text(chat.User, text)}, Role: &r})
	return face.close(err)
}

// commandStatus is the exit status of a command that the user had executed.
type commandStatus int

func (s commandStatus) Error() string { return fmt.Sprintf("the command ended with status %d", int(s)) }

// shellStatus returns the status that a shell gives to a command: its own, or 128 and the
// number of the signal that ended it.
func shellStatus(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return max(state.ExitCode(), 0)
}

// runShell runs the command with the user's shell at the terminal. Its status becomes
// that of the program.
func (c *command) runShell(command string) error {
	sh := c.app.Shell()
	run := exec.Command(sh.Path, sh.Flag, command)
	child := c.app.Child()
	run.Stdin, run.Stdout, run.Stderr, run.Env = os.Stdin, c.Out, c.Err, child.Environ
	err := run.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if note := child.Note("list what commands may have under permission.keep_env in config.yaml", command); note != "" {
			c.warn(note)
		}
		return commandStatus(shellStatus(exit.ProcessState))
	}
	if err != nil {
		return fault.Wrap(fault.Tool, err, "shell %s", sh.Path).WithHint("set LOKI_SHELL to the shell to use")
	}
	if !c.app.Config.SaveShellHistory {
		return nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil // no home, no history
	}
	configDir, _ := os.UserConfigDir()
	if err := sh.History(runtime.GOOS, home, configDir, c.getenv).Append(command, time.Now()); err != nil {
		c.warn("the command is not in the shell's history: " + err.Error())
	}
	return nil
}
