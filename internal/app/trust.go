package app

import (
	"context"

	"loki/internal/agent"
	"loki/internal/agent/workspace/trust"
	"loki/internal/base/process/sandbox"
	"loki/internal/tool"
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

// agentCalls says how the tools of an agent are called, see [App.calls]. Neither rules that allow nor consent beforehand count
// for one that is not trusted, and tools that reach the network are asked about. Its own scripts are confined
// or, where there is no sandbox, asked about.
func (a *App) agentCalls(r AgentRun, tools tool.Set) (tool.Options, error) {
	if a.Trust.Trusts(r.Agent) {
		return a.calls(r.Agent, r.Asker, a.consents(r))
	}
	o, err := a.calls(r.Agent, r.Asker, false)
	if err != nil {
		return o, err
	}
	o.AutoConfirm, o.AtMost = false, sandbox.Read
	o.Judge, err = a.judge(a.Trust.StrictRules(r.Agent, tools), nil, r.Agent) // nothing is remembered either
	return o, err
}
