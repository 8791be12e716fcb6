package app

import (
	"context"

	"loki/internal/agent"
)

// ToolNames returns the names of the tools that an agent brings.
func (a *App) ToolNames(ctx context.Context, of agent.Agent) ([]string, error) {
	set, err := a.agentTools(ctx, of, nil, nil)
	return set.Names(), err
}
