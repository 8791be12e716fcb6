package cli

import (
	"context"
	"errors"

	"loki/internal/base/text"
)

// migrateStore copies sessions and runs from files into the database that the configuration names.
func (c *command) migrateStore(ctx context.Context) error {
	m, err := c.app.MigrateStore(ctx, c.opts.dryRun)
	if err != nil {
		return err
	}
	verb := "Copied"
	if c.opts.dryRun {
		verb = "Would copy"
	}
	err = c.say("%s %s and %s.", verb, text.Count(m.Sessions, "session"), text.Count(m.Runs, "run"))
	if m.SessionsBefore+m.RunsBefore > 0 && err == nil {
		err = c.say("In the database already: %s and %s.", text.Count(m.SessionsBefore, "session"), text.Count(m.RunsBefore, "run"))
	}
	return errors.Join(err, errors.Join(m.SessionsWithout...), errors.Join(m.RunsWithout...))
}
