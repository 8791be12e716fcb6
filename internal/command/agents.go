package command

func agentCommands() []Command { return nil }
