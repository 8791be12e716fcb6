package command

import (
	"context"

	"loki/internal/frontend/display"
)

func infoCommands() []Command {
	return []Command{
		{Name: ".info", Help: "Show what is in force, and where files are", Group: General, Offered: always, do: (*Console).info},
	}
}

// info is for .info.
func (c *Console) info(context.Context, string) error {
	c.Out.Print(trimEnd(display.InfoText(display.Info(c.App, c.conv))))
	return nil
}
