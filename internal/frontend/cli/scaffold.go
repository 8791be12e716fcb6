package cli

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"

	"loki/internal/agent/validate/draft/scaffold"
	"loki/internal/base/text"
)

// initAgent writes the files of a new agent, and trusts them.
func (c *command) initAgent(ctx context.Context) error {
	dir := c.opts.value
	files, err := scaffold.Write(dir, cmp.Or(c.opts.kind, scaffold.Plain))
	if err != nil {
		return err
	}
	written, paths := slices.Sorted(maps.Keys(files)), make(map[string][]byte)
	for name, data := range files {
		paths[filepath.Join(dir, filepath.FromSlash(name))] = data
	}
	if err := c.app.Trust.AddWritten(ctx, dir, paths); err != nil {
		c.warn(err.Error())
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
