package cli

import (
	"context"
	"io"

	"loki/internal/base/fault"
	commands "loki/internal/frontend/command"
)

// examine checks the installation.
func (c *command) examine(ctx context.Context) (err error) {
	r := commands.Examine(ctx, c.environ, c.opts.ask)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case c.opts.output != outputText:
		err = printJSON(c.Out, r)
	default:
		_, err = io.WriteString(c.Out, r.Text())
	}
	if n := r.Failures(c.opts.strict); err == nil && n > 0 {
		return &fault.Error{Code: fault.Failure, Err: &findingsError{n}}
	}
	return err
}
