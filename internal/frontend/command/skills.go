package command

import (
	"context"

	"loki/internal/frontend/display"
)

func skillCommands() []Command {
	return []Command{
		{Name: ".skills", Help: "List the skills for models here", Group: Tools, Offered: always, do: (*Console).skills},
	}
}

// skills is for .skills.
func (c *Console) skills(context.Context, string) error {
	of, _ := c.conv.Agent()
	table, list := display.Skills(c.App, of.Dir)
	if len(list) == 0 {
		table = display.NoSkills
	}
	c.Out.Print(trimEnd(table))
	return nil
}
