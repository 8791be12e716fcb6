package cli

import (
	"context"

	"loki/internal/agent"
	"loki/internal/base/value"
	"loki/internal/conversation"
	"loki/internal/frontend/command/display"
	"loki/internal/workflow/graph"
)

// agentInfo describes the agent of -a.
func (c *command) agentInfo(ctx context.Context) error {
	of, err := c.agent()
	if err != nil {
		return err
	}
	values, session := map[string]string(nil), value.Value{}
	switch {
	case of.Graph == nil:
		if values, err = c.knownVariables(of); err == nil && c.opts.hasSession {
			session, err = c.agentSession(ctx, of, values)
		}
	case c.opts.hasSession:
		_, err = c.isGraph() // it has none
	}
	if err != nil {
		return err
	}
	info, machine, err := display.AgentInfo(ctx, c.app, of, values, session)
	if err != nil {
		return err
	}
	return c.print(machine, info)
}

// knownVariables returns the values of the agent's variables, without the ones that the user would be asked for.
func (c *command) knownVariables(of agent.Agent) (map[string]string, error) {
	var unset []string
	values, err := agent.Values(of.InForce.Variables, c.agentVariables(), func(v graph.Variable) (string, bool, error) {
		unset = append(unset, v.Name)
		return "", true, nil
	})
	for _, name := range unset {
		delete(values, name)
	}
	return values, err
}

// agentSession returns the session that --session names, of a plain agent.
func (c *command) agentSession(ctx context.Context, of agent.Agent, values map[string]string) (value.Value, error) {
	conv := c.app.Conversations().Begin(conversation.Options{})
	who := c.app.PlainAgent(of, nil, nil, func(context.Context) (map[string]string, error) { return values, nil })
	who.Instructions = func(context.Context, map[string]string) (string, error) { return "", nil } // of a session that is not there
	if err := conv.UseAgent(ctx, who); err != nil {
		return value.Value{}, err
	}
	_, session, err := c.exportSession(ctx, conv)
	return session, err
}
