package command

func sessionCommands() []Command { return nil }
