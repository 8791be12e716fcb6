package command

func vaultCommands() []Command { return nil }
