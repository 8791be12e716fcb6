package display

import (
	"context"
	"os"

	"loki/internal/agent/workspace"
	"loki/internal/app"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
)

// InstructionFile is a file that instructs models, with how many tokens its text has, about.
type InstructionFile struct {
	workspace.File
	Tokens int `json:"tokens"`
}

// Instructions returns the files that instruct models in the working directory and below, as a table and as a list for programs.
func Instructions(ctx context.Context, a *app.App) (table string, list []InstructionFile, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", nil, err
	}
	files, err := a.Instructions().Read(dir).All(ctx)
	list = make([]InstructionFile, 0, len(files))
	for _, f := range files {
		list = append(list, InstructionFile{f, chat.EstimateTokens(f.Text())})
	}
	return List(nil, list, func(f InstructionFile) []string {
		return []string{text.Visible(f.Name), string(f.State), text.Count(f.Bytes, "byte"), text.Count(f.Tokens, "token"), text.Visible(f.Fault)}
	}, 2, 3), list, err
}

// NoInstructions says that no file instructs models here.
const NoInstructions = "no file instructs models here: write AGENTS.md in this directory"
