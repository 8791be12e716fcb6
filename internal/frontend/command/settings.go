package command

import (
	"context"
	"fmt"
	"strings"

	"loki/internal/agent/team/job"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/tool/mcp/servers"
)

func settingCommands() []Command {
	return []Command{
		{Name: ".help", Args: "[TEXT]", Help: "List the commands; TEXT: section, .command or word", Group: General, Offered: always, do: (*Console).help, complete: completeHelp()},
		{Name: ".model", Args: "NAME", Help: "Switch to another model", Group: General, Offered: always, do: (*Console).model, complete: completeModel()},
		{Name: ".models", Args: "[TEXT]", Help: "Choose a model whose name has the letters of TEXT", Group: General, Offered: always, do: (*Console).pickModel, complete: completeModel()},
		{Name: ".mode", Args: "[NAME]", Help: "Show or change the mode: ask, plan or write", Group: General, Offered: always, do: (*Console).setMode, complete: first(completeMode)},
		{Name: ".set", Args: "KEY VALUE", Help: "Change a setting of what is in force", Group: General, Offered: always, do: (*Console).set, complete: completeSet(), more: (*Console).listSettings},
		{Name: ".authenticate", Help: "Log in to the provider of the model", Group: General, Offered: always, do: (*Console).authenticate},
		{Name: ".exit", Help: "Leave the program", Group: General, Offered: always, do: (*Console).exit},
	}
}

// exit is for .exit.
func (c *Console) exit(context.Context, string) error { return ErrExit }

// model is for .model.
func (c *Console) model(ctx context.Context, id string) error { return c.conv.SetModel(ctx, id) }

// pickModel is for .models.
func (c *Console) pickModel(ctx context.Context, filter string) error {
	var ids, lines []string
	for _, m := range rankCandidates(filter, c.modelCandidates(catalog.Chat)) {
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

// ofMode says what a mode means.
var ofMode = map[chat.Mode]string{
	chat.ModeAsk:   "you are asked about changes",
	chat.ModePlan:  "nothing is changed until you accept a plan",
	chat.ModeWrite: "programs write in the workspace without asking",
}

// setMode is for .mode.
func (c *Console) setMode(_ context.Context, name string) error {
	if name != "" {
		mode, err := chat.ParseMode(name)
		if err != nil {
			return fault.Wrap(fault.Usage, err, "mode").WithHint(".mode plan")
		}
		if err := c.conv.SetMode(mode); err != nil {
			return err
		}
	}
	c.Out.Print("mode " + string(c.conv.Mode()) + ": " + ofMode[c.conv.Mode()])
	if n := c.writingJobs(); n > 0 && c.conv.Mode() == chat.ModePlan {
		c.Out.Print("still running: " + text.Count(n, "job") + " that may write; .jobs lists them, .jobs kill ID ends one")
	}
	return nil
}

// writingJobs returns how many jobs run that may change files.
func (c *Console) writingJobs() (n int) {
	if list := c.conv.Jobs(); list != nil {
		for _, j := range list.All() {
			if j.Status == job.Running && j.Level != string(sandbox.Read) {
				n++
			}
		}
	}
	return n
}

// completeMode completes a mode.
func completeMode(*Console, context.Context, []string) (found []Candidate) {
	for _, name := range chat.Modes() {
		found = append(found, Candidate{Value: name, Description: ofMode[chat.Mode(name)]})
	}
	return found
}

func (c *Console) useModel(ctx context.Context, id string) error {
	return c.printUnless(c.conv.SetModel(ctx, id), "✓ "+id)
}

// set is for .set.
func (c *Console) set(ctx context.Context, args string) error {
	key, value := cutWord(args)
	if want := c.conv.SettingWants(key); value == "" && want != "" {
		return c.usage(".set " + key + " VALUE\n  now " + c.conv.Setting(key) + "; VALUE is " + want)
	}
	return c.conv.Set(ctx, key, value)
}

// listSettings lists the settings, each with its value and what values it takes.
func (c *Console) listSettings(context.Context) string {
	var b strings.Builder
	for _, key := range c.conv.SettingKeys() {
		now := text.CutColumns(display.Line(c.conv.Setting(key)), 11)
		b.WriteString(text.CutColumns(fmt.Sprintf("  %-24s %-11s %s", key, now, c.conv.SettingWants(key)), lineWidth) + "\n")
	}
	return b.String()
}

// authenticate is for .authenticate.
func (c *Console) authenticate(ctx context.Context, _ string) error {
	client := c.conv.State().Client
	login := servers.User{Asker: c.Asker, Note: c.Out.Note}
	if c.Interactive {
		login.Browser = c.App.OpenBrowser
	}
	return c.printUnless(c.App.Authenticate(ctx, client, login), "✓ Client "+client+" is logged in")
}
