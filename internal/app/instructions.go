package app

import (
	"context"
	"slices"

	"loki/internal/agent"
	"loki/internal/agent/role"
	"loki/internal/agent/team"
	"loki/internal/agent/team/todo"
	"loki/internal/base/ask"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// texts returns what placeholders in texts of an agent stand for.
func (a *App) texts(variables map[string]string) agent.Texts {
	return agent.Texts{Variables: variables, Special: role.ThisMachine(a.Shell().Name, a.Env.Get).Lookup}
}

// Describe returns what is known of a plain agent without asking the user and starting
// anything: its settings as its file has them, and as they are in force with the system prompt
// as its instructions. The tools of MCP servers are not in the prompt, and dynamic instructions
// are empty.
func (a *App) Describe(ctx context.Context, of agent.Agent, variables map[string]string) (settings, inForce *value.Object, err error) {
	tools, err := a.declarations(ctx, of, variables)
	if err != nil {
		return nil, nil, err
	}
	texts := a.texts(variables)
	d := *of.InForce
	if d.Dynamic {
		d.Instructions = ""
	}
	d.Instructions = d.SystemPrompt(agent.Prompt{Base: d.Instructions, Tools: tools, Texts: texts})
	d.Starters = slices.Clone(d.Starters)
	for i, s := range d.Starters {
		d.Starters[i] = texts.Expand(s)
	}
	return of.Definition.Settings(), d.Settings(), nil
}

// declarations returns the declarations of a plain agent's tools, without those of MCP servers.
func (a *App) declarations(ctx context.Context, of agent.Agent, variables map[string]string) ([]chat.Tool, error) {
	set, err := a.Tools.Of(ctx, of, variables, nil)
	if err != nil {
		return nil, err
	}
	no := func(context.Context, team.Spawn) (team.Child, error) { return team.Child{}, ask.ErrUnavailable }
	members, err := team.New(ctx, team.Options{Agent: of.Name, Limits: of.InForce.Team, Start: no})
	if err != nil {
		return nil, err
	}
	defer members.Root().Close()
	tools := append(members.Root().Tools(), userTools(nil, of.Name)...)
	if of.InForce.Todo.Enabled {
		tools = append(todo.Tools(new(todo.List)), tools...)
	}
	set, err = set.With(tools...)
	return set.Declarations(), err
}
