package command

func macroCommands() []Command { return nil }
