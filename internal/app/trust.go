package app

import (
	"context"

	"loki/internal/agent"
	"loki/internal/agent/workspace/trust"
	"loki/internal/tool/script"
)

// newTrust returns what tells which agents the user trusts.
func (a *App) newTrust() *trust.Service {
	return trust.New(trust.Options{
		Origins: trust.Origins{
			Agents: &a.Agents, Config: a.Config,
			Bundled: func(file string) bool { return a.Bundles(nil, nil).Owns(file) },
		},
		Sandbox: a.Sandbox,
		Script: func(ctx context.Context, of agent.Agent) (string, script.Options, bool) {
			return a.Tools.Script(ctx, of, nil, nil)
		},
		Serving: func() bool { return a.host != nil },
	})
}
