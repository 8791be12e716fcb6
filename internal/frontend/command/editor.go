package command

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/text"
)

// editorWords returns the words of the command that opens the user's editor.
func editorWords(a *app.App) ([]string, error) {
	otherwise := "nano"
	if runtime.GOOS == "windows" {
		otherwise = "notepad"
	}
	set := ""
	if e := a.Config.Editor; e != nil {
		set = *e
	}
	written := cmp.Or(set, a.Env.Get("VISUAL"), a.Env.Get("EDITOR"), otherwise)
	words, _ := Words(written, runtime.GOOS == "windows")
	if len(words) == 0 {
		words = []string{otherwise}
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fault.Wrap(fault.Config, err, "the editor %s", words[0]).
			WithHint("name an installed one: editor: NAME in %s, or the variable EDITOR", a.Config.File)
	}
	return words, nil
}

// Edit opens a file in the user's editor at a terminal, which nothing else may use meanwhile, and waits until it is closed. The
// editor's exit status does not count.
func Edit(ctx context.Context, a *app.App, file string, t Terminal) error {
	words, err := editorWords(a)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], file)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = t.In, t.Out, t.Out, t.Environ
	if err := process.RunAtTerminal(cmd); cmd.ProcessState == nil {
		return fault.Wrap(fault.Tool, err, "the editor %s", words[0])
	}
	return ctx.Err()
}

// EditText is [Edit] for a text. It returns the edited text without trailing line ends.
func EditText(ctx context.Context, a *app.App, before string, t Terminal) (string, error) {
	return editCopy(before, ".md", func(file string) error { return Edit(ctx, a, file, t) })
}

// editCopy returns a text as it is in a file once edit has changed that, without trailing line ends. The extension tells the editor what
// it is.
func editCopy(before, extension string, edit func(file string) error) (string, error) {
	dir, err := os.MkdirTemp("", "loki-edit-")
	if err != nil {
		return "", fault.Wrap(fault.Failure, err, "editing a text")
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "text"+extension)
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		return "", fault.Wrap(fault.Failure, err, "editing a text")
	}
	if err := edit(file); err != nil {
		return "", err
	}
	edited, err := os.ReadFile(file)
	if err != nil {
		return "", fault.Wrap(fault.Failure, err, "reading the edited text")
	}
	return strings.TrimRight(string(text.TrimMark(edited)), "\r\n"), nil
}
