package command

import (
	"context"
	"fmt"
	"strings"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/llm/catalog"
)

func settingCommands() []Command {
	return []Command{
		{Name: ".help", Args: "[TEXT]", Help: "List the commands, or those whose help has TEXT", Group: General, Offered: always, do: (*Console).help},
		{Name: ".model", Args: "NAME", Help: "Switch to another model", Group: General, Offered: always, do: (*Console).model, complete: completeModel()},
		{Name: ".models", Args: "[TEXT]", Help: "Choose a model whose name has the letters of TEXT", Group: General, Offered: always, do: (*Console).pickModel, complete: completeModel()},
		{Name: ".set", Args: "KEY VALUE", Help: "Change a setting of what is in force", Group: General, Offered: always, do: (*Console).set, complete: completeSet()},
		{Name: ".authenticate", Help: "Log in to the provider of the model", Group: General, Offered: always, do: (*Console).authenticate},
		{Name: ".exit", Help: "Leave the program", Group: General, Offered: always, do: (*Console).exit},
	}
}

// exit is for .exit.
func (c *Console) exit(context.Context, string) error { return ErrExit }

// tips are what .help ends with.
const tips = `Tips
  :::                       begins and ends a text of several lines
  @FILE                     in a prompt sends the file along
  !COMMAND                  runs a shell command; !! TEXT sends its output
  Ctrl+O                    opens the text in your editor
  Ctrl+C                    stops an answer, and keeps its partial text
  Ctrl+D                    leaves the program`

// help is for .help.
func (c *Console) help(_ context.Context, filter string) error {
	var b strings.Builder
	for _, group := range groups() {
		heading := string(group) + "\n"
		for _, row := range c.commands {
			if row.Group == group && strings.Contains(strings.ToLower(row.Usage()+" "+row.Help), strings.ToLower(filter)) {
				usage := row.Usage()
				if filter == "" {
					usage = text.CutRunes(usage, 24) // whole in the help of a few
				}
				fmt.Fprintf(&b, "%s  %-24s  %s\n", heading, usage, row.Help)
				heading = ""
			}
		}
		if heading == "" {
			b.WriteByte('\n')
		}
	}
	switch {
	case filter == "":
		b.WriteString(tips)
	case b.Len() == 0:
		return fault.New(fault.NotFound, "no command has %q in its help", filter).WithHint("all commands: .help")
	}
	c.Out.Print(trimEnd(b.String()))
	return nil
}

// model is for .model.
func (c *Console) model(ctx context.Context, id string) error { return c.conv.SetModel(ctx, id) }

// pickModel is for .models.
func (c *Console) pickModel(ctx context.Context, filter string) error {
	var list []Candidate
	for m := range c.App.Catalog.Models(catalog.Chat) {
		list = append(list, Candidate{Value: m.ID(), Description: m.Description()})
	}
	var ids, lines []string
	for _, m := range ranked(filter, list) {
		ids, lines = append(ids, m.Value), append(lines, fmt.Sprintf("%-40s %s", m.Value, m.Description))
	}
	switch len(ids) {
	case 0:
		return fault.New(fault.NotFound, "no model is called like %q", filter)
	case 1:
		return c.useModel(ctx, ids[0])
	}
	answer, err := c.Asker.Ask(ctx, ask.Question{Kind: ask.Select, Text: "Which model?", Options: lines})
	if err != nil {
		return err
	}
	for i, line := range lines {
		if line == answer {
			return c.useModel(ctx, ids[i])
		}
	}
	return fault.New(fault.NotFound, "%q is not one of the models", answer)
}

func (c *Console) useModel(ctx context.Context, id string) error {
	err := c.conv.SetModel(ctx, id)
	if err == nil {
		c.Out.Print("✓ " + id)
	}
	return err
}

// set is for .set.
func (c *Console) set(ctx context.Context, args string) error {
	key, value := cutWord(args)
	if value == "" {
		return c.usage(".set KEY VALUE\nSettings: " + strings.Join(c.conv.SettingKeys(), ", "))
	}
	return c.conv.Set(ctx, key, value)
}

// authenticate is for .authenticate.
func (c *Console) authenticate(ctx context.Context, _ string) error {
	client := c.conv.State().Client
	login := app.Login{Asker: c.Asker, Note: c.Out.Note}
	if c.Interactive {
		login.Browser = c.App.OpenBrowser
	}
	if err := c.App.Authenticate(ctx, client, login); err != nil {
		return err
	}
	c.Out.Print("✓ Client " + client + " is logged in")
	return nil
}
