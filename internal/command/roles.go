package command

func roleCommands() []Command { return nil }
