package command

func deleteCommands() []Command { return nil }
