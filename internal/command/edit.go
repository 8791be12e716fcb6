package command

func editCommands() []Command { return nil }
