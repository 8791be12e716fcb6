package cli

import (
	"context"

	"loki/internal/fault"
)

// serve serves until a signal ends it.
func (c *command) serve(ctx context.Context) error {
	if c.faces.Server == nil {
		return fault.New(fault.Usage, "this program does not serve")
	}
	address := c.opts.serve
	if address == configuredAddress {
		address = ""
	}
	return c.faces.Server(context.WithoutCancel(ctx), c.displayed(), address)
}
