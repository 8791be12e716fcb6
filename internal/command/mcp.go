package command

func mcpCommands() []Command { return nil }
