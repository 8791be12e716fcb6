package command

import (
	"context"

	"loki/internal/app"
)

func infoCommands() []Command {
	return []Command{
		{Name: ".info", Help: "Show what is in force, and where files are", Group: General, Offered: always, do: (*Console).info},
	}
}

// info is for .info.
func (c *Console) info(context.Context, string) error {
	c.Out.Print(trimEnd(app.InfoText(c.App.Info(c.conv))))
	return nil
}
