package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/knowledge/input"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/tool/permission"
)

// AskForFiles asks the user whether models may read the files among the sources of attachments that a rule asks about, and opens
// them to l. The error reports a file without consent, or that no user can be asked. With yes, or AUTO_CONFIRM, it asks nothing and
// opens all files that a rule asks about, also the ones found by a directory or a pattern. Commands, addresses and what only loaders
// understand are no files.
func (a *App) AskForFiles(ctx context.Context, l *input.Loader, sources []string, asker ask.Asker, yes bool) error {
	kept, all, open := l.Denied, yes || tool.AutoConfirm(a.Env.Environ()), make(map[string]bool)
	if kept == nil {
		return nil
	}
	l.Consented = all
	l.Denied = func(path string) error {
		err := kept(path)
		if k, ok := errors.AsType[*permission.KeptError](err); ok && k.Asks && (all || open[config.Absolute(path)]) {
			return nil
		}
		return err
	}
	for _, source := range sources {
		file := l.FileOf(source)
		err := l.Denied(file)
		k, ok := errors.AsType[*permission.KeptError](err)
		if info, statErr := os.Stat(file); !ok || !k.Asks || statErr != nil || info.IsDir() {
			continue
		}
		q := ask.Question{Kind: ask.Choice, Options: []string{"yes", "no"}, Consent: true, Text: fmt.Sprintf("May the model read %s?\n\nYou are asked because of a rule: %s.", text.Visible(source), k.Rule)}
		switch answer, asked := asker.Ask(ctx, q); {
		case errors.Is(asked, ask.ErrUnavailable):
			return fault.New(fault.Usage, "a rule asks about %s, and no user can be asked here: %s", source, k.Rule).WithHint("run it in a terminal to be asked, or consent with --yes")
		case asked != nil:
			return asked
		case answer != "yes":
			return fault.New(fault.Usage, "%s is not attached, and nothing was sent", source)
		}
		open[config.Absolute(file)], l.Consented = true, true
	}
	return nil
}
