package command

import (
	"context"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/file/update"
)

func updateCommands() []Command {
	return []Command{
		{Name: ".update", Args: "[VERSION]", Help: "Update this program to its newest release", Group: General, Offered: always, do: (*Console).update},
	}
}

// update is for .update.
func (c *Console) update(ctx context.Context, version string) error {
	if c.InMacro {
		return fault.New(fault.Usage, "a macro cannot update the program").WithHint("loki --update")
	}
	o, err := app.UpdateOptions(c.App, nil)
	if err != nil {
		return err
	}
	o.Warn = c.Out.Warn
	if c.Interactive {
		o.Asker = c.Asker
	}
	if c.Busy != nil {
		var stop func()
		defer func() {
			if stop != nil {
				stop()
			}
		}()
		o.Progress = func(int64, int64) {
			if stop == nil { // not before the question is answered
				stop = c.Busy("Downloading")
			}
		}
	}
	done, err := update.Run(ctx, o, version)
	return c.printUnless(err, done.Text())
}
