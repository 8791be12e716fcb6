package command

import (
	"context"

	"loki/internal/frontend/command/doctor"
)

func doctorCommands() []Command {
	return []Command{{Name: ".doctor", Help: "Check the installation", Group: General, Offered: always, do: (*Console).doctor}}
}

// Examine checks the installation that an environment names. If ask is set, the default model gets a short question.
func Examine(ctx context.Context, environ []string, ask bool) doctor.Report {
	return doctor.Run(ctx, doctor.Options{Environ: environ, Ask: ask, Editor: editorWords})
}

// doctor is for .doctor.
func (c *Console) doctor(ctx context.Context, _ string) error {
	defer c.Busy("Checking the installation")()
	c.Out.Print(trimEnd(Examine(ctx, c.App.Env.Environ(), false).Text()))
	return ctx.Err()
}
