package command

import (
	"context"
	"slices"
	"strings"

	"loki/internal/app"
	"loki/internal/ask"
	"loki/internal/fault"
	"loki/internal/text"
)

func deleteCommands() []Command {
	return []Command{
		{Name: ".delete", Args: "KIND", Help: "Delete roles, sessions, knowledge bases, macros or the data of agents", Group: General, Offered: always, do: (*Console).delete, complete: oneOf(app.Kinds()...)},
	}
}

// whichDeleted returns the question for what is deleted of a kind.
func whichDeleted(of app.Kind) string {
	switch of {
	case app.AgentKind:
		return "Which agents' data is deleted?"
	case app.BaseKind:
		return "Which knowledge bases are deleted?"
	}
	return "Which " + text.Plural(2, string(of)) + " are deleted?"
}

// delete is for .delete.
func (c *Console) delete(ctx context.Context, kind string) error {
	if !slices.Contains(app.Kinds(), kind) {
		return fault.New(fault.Usage, "%q cannot be deleted", kind).WithHint("%s", ".delete "+strings.Join(app.Kinds(), ", .delete "))
	}
	of, scope := app.Kind(kind), c.conv.Scope()
	names, err := c.App.Stored(ctx, of, scope)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fault.New(fault.NotFound, "there is no %s to delete", kind)
	}
	answer, err := c.Asker.Ask(ctx, ask.Question{Kind: ask.Multi, Text: whichDeleted(of), Options: names})
	if err != nil {
		return err
	}
	chosen, err := ask.SplitAnswers(answer)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return fault.New(fault.Usage, "no %s was chosen, so nothing is deleted", kind)
	}
	if s := c.conv.Session(); of == app.SessionKind && s != nil && slices.Contains(chosen, s.Name()) {
		return fault.New(fault.Usage, "session %s is in use, so nothing is deleted", s.Name()).WithHint("leave it first: .exit session")
	}
	sure, err := c.confirm(ctx, "Delete "+strings.Join(chosen, ", ")+"?", false)
	if err != nil || !sure {
		return err
	}
	for _, name := range chosen {
		if err := c.App.Delete(ctx, of, scope, name); err != nil {
			return err
		}
		c.Out.Print("✓ Deleted " + kind + " " + name)
	}
	return nil
}
