package cli

import (
	"cmp"
	"context"

	"loki/internal/agent/validate/draft/scaffold"
	"loki/internal/base/text"
)

// initAgent writes the files of a new agent.
func (c *command) initAgent(context.Context) error {
	dir := c.opts.value
	written, err := scaffold.Write(dir, cmp.Or(c.opts.kind, scaffold.Plain))
	if err != nil {
		return err
	}
	if c.opts.output != outputText {
		return printJSON(c.Out, map[string]any{"directory": dir, "files": written})
	}
	for _, name := range written {
		if err := c.say("%s", name); err != nil {
			return err
		}
	}
	return c.say("\nNext: loki --test %s", text.Word(dir))
}
