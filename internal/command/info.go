package command

func infoCommands() []Command { return nil }
