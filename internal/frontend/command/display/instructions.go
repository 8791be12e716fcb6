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
	rows := make([][]string, 0, len(files))
	for _, f := range files {
		one := InstructionFile{f, chat.EstimateTokens(f.Text())}
		list = append(list, one)
		rows = append(rows, []string{text.Visible(f.Name), string(f.State), text.Count(f.Bytes, "byte"), text.Count(one.Tokens, "token"), text.Visible(f.Fault)})
	}
	if err != nil || len(rows) == 0 {
		return "", list, err
	}
	return Table(rows, 2, 3), list, nil
}

// NoInstructions says that no file instructs models here.
const NoInstructions = "no file instructs models here: write AGENTS.md in this directory"
