package command

import "context"

func editCommands() []Command {
	return []Command{
		{Name: ".edit config", Help: "Edit config.yaml", Group: General, Offered: noAgent, do: (*Console).editConfig},
		{Name: ".edit mcp-config", Help: "Edit mcp.json, the list of the MCP servers", Group: General, Offered: noAgent, do: (*Console).editServers},
	}
}

// editConfig is for .edit config.
func (c *Console) editConfig(ctx context.Context, _ string) error {
	return c.editGlobal(ctx, c.App.Paths.ConfigFile)
}

// editServers is for .edit mcp-config.
func (c *Console) editServers(ctx context.Context, _ string) error {
	return c.editGlobal(ctx, c.App.Paths.MCPFile())
}

// editGlobal opens a file that is read when the program starts.
func (c *Console) editGlobal(ctx context.Context, file string) error {
	if err := c.openNew(ctx, file, ""); err != nil {
		return err
	}
	c.Out.Note("Restart the program to use what you changed in " + file)
	return nil
}
