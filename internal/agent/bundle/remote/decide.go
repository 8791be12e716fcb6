package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
)

// consent asks the user whether to install what can run, unless the answer was given before.
// Without anything of the kind nothing is asked.
func (i *Installer) consent(ctx context.Context, p *plan) (yes bool, err error) {
	dangers := i.dangers(p)
	if len(dangers) == 0 {
		return true, nil
	}
	list := "It brings what can run programs with your rights:\n" + strings.Join(dangers, "\n")
	if i.Yes || i.DryRun {
		i.Show(list)
		return true, nil
	}
	const do, stop = "yes", "no"
	answer, err := i.Asker.Ask(ctx, ask.Question{
		ID: "bundle", Kind: ask.Choice, Consent: true, Options: []string{do, stop},
		Text: list + "\n\nInstall bundle " + text.Name(p.report.Bundle) + " from " + text.Name(p.report.URL) + "?",
	})
	if errors.Is(err, ask.ErrUnavailable) {
		return false, fault.New(fault.Usage, "bundle %s brings what can run programs with your rights, and no user can be asked. Nothing was changed", text.Name(p.report.Bundle)).
			WithHint("see what it is with --dry-run, and consent with --yes")
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == do || answer == "y", err
}

// settle has the user decide the conflicts, before anything is written.
func (i *Installer) settle(ctx context.Context, p *plan) error {
	var open []string
	for _, t := range slices.Concat(p.files, p.mcp) {
		if t.State == Conflict {
			open = append(open, t.title())
		}
	}
	if len(open) == 0 {
		return nil
	}
	unattended := func(err error) error {
		if !errors.Is(err, ask.ErrUnavailable) {
			return err
		}
		return fault.New(fault.Usage, "bundle %s has other content than yours for %s, and no user can be asked. Nothing was changed:\n%s",
			text.Name(p.report.Bundle), text.Count(len(open), "file or server"), strings.Join(open, "\n")).
			WithHint("--install-force takes the bundle's; or run it at a terminal, which asks")
	}
	if err := i.settleFiles(ctx, p.files); err != nil {
		return unattended(err)
	}
	return unattended(i.settleServers(ctx, p))
}

func (t *item) title() string {
	switch {
	case t.Category == MCPConfig:
		return "  MCP server " + text.Name(t.here())
	case t.ours == "":
		return "  " + text.Name(t.Path) + " (you have deleted it)"
	}
	return "  " + text.Name(t.Path)
}

// errAborted is what the user wants at a conflict.
func errAborted() error {
	return fault.New(fault.Canceled, "stopped at a conflict. Nothing was changed")
}

func (i *Installer) settleFiles(ctx context.Context, files []item) error {
	const keep, replace, keepAll, replaceAll, abort = "keep", "replace", "keep-all", "replace-all", "abort"
	always := ""
	if i.Force {
		always = replace
	}
	for n := range files {
		t := &files[n]
		if t.State != Conflict {
			continue
		}
		answer := always
		if answer == "" {
			question := fmt.Sprintf("%s: yours differs from the bundle's (%s)", i.Dirs.target(t.Path), size(len(t.content)))
			if t.ours == "" {
				question = i.Dirs.target(t.Path) + ": you have deleted it, and the bundle has changed it"
			}
			var err error
			answer, err = i.Asker.Ask(ctx, ask.Question{
				ID: "bundle-file", Kind: ask.Select, Text: question, Options: []string{keep, replace, keepAll, replaceAll, abort},
			})
			if err != nil {
				return err
			}
		}
		if one, all := strings.CutSuffix(answer, "-all"); all {
			answer, always = one, one
		}
		switch answer {
		case keep:
			t.State = Kept
		case replace:
			t.State = Replaced
		default:
			return errAborted()
		}
	}
	return nil
}

func (i *Installer) settleServers(ctx context.Context, p *plan) error {
	const keep, take, abort = "keep local", "take remote", "abort merge"
	for n := range p.mcp {
		t := &p.mcp[n]
		if t.State != Conflict {
			continue
		}
		if i.Force {
			t.State = Replaced
			continue
		}
		free := remoteName(p.local, p.mcp, t.Path)
		options := []string{keep, take, fmt.Sprintf("rename remote as %q", free), abort}
		mine := "not there: you have deleted it"
		if spec, ok := p.local.list.Get(t.here()); ok {
			mine = describe(spec, false)
		}
		answer, err := i.Asker.Ask(ctx, ask.Question{
			ID: "bundle-server", Kind: ask.Select, Options: options,
			Text: fmt.Sprintf("MCP server %s:\n  yours:        %s\n  the bundle's: %s", text.Name(t.here()), mine, describe(t.spec, true)),
		})
		switch {
		case err != nil:
			return err
		case answer == keep:
			t.State = Kept
		case answer == take:
			t.State = Replaced
		case answer == options[2]:
			t.State, t.As = Renamed, free
		default:
			return errAborted()
		}
	}
	return nil
}
