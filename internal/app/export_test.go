package app

import (
	"context"

	"loki/internal/agent"
	"loki/internal/llm/chat"
)

// ToolNames returns the names of the tools that an agent brings.
func (a *App) ToolNames(ctx context.Context, of agent.Agent) ([]string, error) {
	set, err := a.Tools.Of(ctx, of, nil, nil)
	return set.Names(), err
}

// Declarations returns the declarations of a plain agent's tools.
func (a *App) Declarations(ctx context.Context, of agent.Agent) ([]chat.Tool, error) {
	return a.Tools.Declarations(ctx, of, nil)
}
