package command

func installCommands() []Command { return nil }
