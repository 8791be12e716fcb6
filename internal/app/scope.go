package app

import (
	"context"
	"errors"
	"strings"

	"loki/internal/agent"
	"loki/internal/base/ask"
	"loki/internal/conversation"
	"loki/internal/conversation/launch"
	"loki/internal/llm/event"
	"loki/internal/tool/mcp"
	"loki/internal/tool/mcp/servers"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// serversOf returns the MCP servers that a conversation asks for, nil if it asks for none.
func (a *App) serversOf(ctx context.Context, w conversation.Wanted) (mcp.Servers, error) {
	pick := servers.Choice(nil)
	switch list := w.EnabledMCPServers; {
	case list != nil && *list != "":
		pick = servers.ChooseNames(*list)
	case list == nil && w.Agent != nil && len(w.Agent.InForce.MCPServers) > 0:
		pick = servers.ChooseList(w.Agent.InForce.MCPServers)
	}
	if pick == nil && len(a.MCP.Guests) > 0 {
		pick = servers.ChooseList(nil)
	}
	if pick == nil || w.NoTools || w.Agent != nil && !a.Trust.Trusts(w.Agent.Agent) {
		return nil, nil
	}
	return a.serverScope(ctx, w.Events, w.Asker, !w.NoServers, pick)
}

// startServers starts the MCP servers that a conversation asks for, see [conversation.Service].
func (a *App) startServers(ctx context.Context, w conversation.Wanted) (stop func(), err error) {
	if list := w.EnabledMCPServers; w.NoServers && list != nil && *list != "" {
		text := "MCP servers are asked for (" + *list + "), but mcp_server_support is off"
		if err := w.Events.Emit(ctx, event.Warning{Text: text}); err != nil {
			return nil, err
		}
	}
	if w.Agent != nil {
		if err := a.Trust.Settle(event.NewContext(ctx, w.Events), w.Agent.Agent, w.Asker); err != nil {
			return nil, err
		}
	}
	all, err := a.serversOf(ctx, w)
	if err != nil {
		return nil, err
	}
	scope, ok := all.(*mcp.Scope)
	if !ok || scope == nil { // none, or those of a cassette
		return func() {}, nil
	}
	if err := scope.ConnectVisibly(ctx, w.Events); err != nil {
		scope.Close()
		return nil, err
	}
	return scope.Close, nil
}

// conversationAgent finds an agent, see [conversation.Service].
func (a *App) conversationAgent(ctx context.Context, name string, given map[string]string, from conversation.Caller) (conversation.Agent, error) {
	ref, err := a.Agents.Find(name)
	if err != nil {
		return conversation.Agent{}, err
	}
	of, findings, err := a.Agents.Load(ref)
	if err != nil {
		return conversation.Agent{}, err
	}
	for _, f := range findings {
		if err := from.Events.Emit(ctx, event.Warning{Text: f.String()}); err != nil {
			return conversation.Agent{}, err
		}
	}
	who := a.PlainAgent(of, given, from.Asker, func(ctx context.Context) (map[string]string, error) {
		return variables(ctx, of.InForce.Variables, given, from.Asker)
	})
	if of.Graph != nil {
		who.Model = func(id string) string { return a.GraphModel(launch.Run{Agent: of, Model: id}) }
		who.Job = func(ctx context.Context, q conversation.GraphQuestion) (run.Job, error) {
			return a.AgentJob(ctx, launch.Run{
				Agent: of, Prompt: q.Prompt, Variables: q.Variables, Given: given, Model: q.Model, NoStream: q.NoStream, Dry: q.Dry, Servers: new(!q.NoServers),
				Events: q.Events, Asker: q.Asker, Yes: q.Yes,
			})
		}
	}
	return who, nil
}

// variables returns a value for each variable of an agent. The user is asked for those without one.
func variables(ctx context.Context, declared []graph.Variable, given map[string]string, asker ask.Asker) (map[string]string, error) {
	return agent.Values(declared, given, func(v graph.Variable) (string, bool, error) {
		if asker == nil {
			return "", false, nil
		}
		answer, err := asker.Ask(ctx, ask.Question{Kind: ask.Text, Text: v.Description + " (" + v.Name + ")", Validate: notBlank})
		return answer, err == nil, err
	})
}

// notBlank returns the error for an answer without text.
func notBlank(answer string) error {
	if strings.TrimSpace(answer) == "" {
		return errors.New("a value is needed")
	}
	return nil
}
