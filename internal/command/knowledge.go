package command

func knowledgeCommands() []Command { return nil }
