package cli

import (
	"context"

	"loki/internal/base/fault"
	commands "loki/internal/frontend/command"
)

// examine checks the installation.
func (c *command) examine(ctx context.Context) error {
	r := commands.Examine(ctx, c.environ, c.opts.ask)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := c.print(r, r.Text())
	if n := r.Failures(c.opts.strict); err == nil && n > 0 {
		return &fault.Error{Code: fault.Failure, Err: &findingsError{n}}
	}
	return err
}
