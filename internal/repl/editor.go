package repl

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"loki/internal/command"
	"loki/internal/fault"
	"loki/internal/process"
)

// editorCommand returns the words of the command that opens the user's editor.
func (r *repl) editorCommand() ([]string, error) {
	otherwise := "nano"
	if runtime.GOOS == "windows" {
		otherwise = "notepad"
	}
	set := ""
	if e := r.app.Config.Editor; e != nil {
		set = *e
	}
	written := cmp.Or(set, r.app.Env.Get("VISUAL"), r.app.Env.Get("EDITOR"), otherwise)
	words, _ := command.Words(written, runtime.GOOS == "windows")
	if len(words) == 0 {
		words = []string{otherwise}
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fault.Wrap(fault.Config, err, "the editor %s", words[0]).
			WithHint("name an installed one: editor: NAME in %s, or the variable EDITOR", r.app.Config.File)
	}
	return words, nil
}

// edit opens a file in the user's editor, and waits until it is closed. The editor's exit status does
// not count.
func (r *repl) edit(ctx context.Context, file string) error {
	words, err := r.editorCommand()
	if err != nil {
		return err
	}
	defer r.lend()()
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], file)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = r.in, r.out, r.out, r.options.Environ
	if err := process.RunAtTerminal(cmd); cmd.ProcessState == nil {
		return fault.Wrap(fault.Tool, err, "the editor %s", words[0])
	}
	return ctx.Err()
}

// shell lends the terminal to a command of the user's shell.
func (r *repl) shell() (t command.Terminal, release func()) {
	return command.Terminal{In: r.in, Out: r.out, Environ: r.options.Environ}, r.lend()
}

// editText opens a text in the user's editor and returns what came of it.
func (r *repl) editText(ctx context.Context, text string) (string, error) {
	f, err := os.CreateTemp("", fmt.Sprintf("loki-%d-repl-*.md", os.Getpid()))
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = r.edit(ctx, f.Name())
	}
	if err != nil {
		return "", err
	}
	edited, err := os.ReadFile(f.Name())
	return strings.TrimRight(string(edited), "\r\n"), err
}
