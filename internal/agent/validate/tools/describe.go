package tools

import (
	"context"
	"slices"

	"loki/internal/agent"
	"loki/internal/agent/team"
	"loki/internal/agent/team/todo"
	"loki/internal/base/ask"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/tool/builtin"
)

// Describe returns what is known of a plain agent without asking the user and starting
// anything: its settings as its file has them, and as they are in force with the system prompt
// as its instructions. The tools of MCP servers are not in the prompt, and dynamic instructions
// are empty.
func (s *Service) Describe(ctx context.Context, of agent.Agent, variables map[string]string) (settings, inForce *value.Object, err error) {
	tools, err := s.Declarations(ctx, of, variables)
	if err != nil {
		return nil, nil, err
	}
	texts := s.Texts(variables)
	d := *of.InForce
	if d.Dynamic {
		d.Instructions = ""
	}
	d.Instructions = d.SystemPrompt(agent.Prompt{Base: d.Instructions, Tools: tools, Texts: texts})
	d.Starters = slices.Clone(d.Starters)
	for i, starter := range d.Starters {
		d.Starters[i] = texts.Expand(starter)
	}
	return of.Definition.Settings(), d.Settings(), nil
}

// Declarations returns the declarations of a plain agent's tools, without those of MCP servers.
func (s *Service) Declarations(ctx context.Context, of agent.Agent, variables map[string]string) ([]chat.Tool, error) {
	set, err := s.Of(ctx, of, variables, nil)
	if err != nil {
		return nil, err
	}
	no := func(context.Context, team.Spawn) (team.Child, error) { return team.Child{}, ask.ErrUnavailable }
	members, err := team.New(ctx, team.Options{Agent: of.Name, Limits: of.InForce.Team, Start: no})
	if err != nil {
		return nil, err
	}
	defer members.Root().Close()
	tools := append(members.Root().Tools(), builtin.UserTools(ask.Unavailable{}, ask.Question{Agent: of.Name})...)
	if of.InForce.Todo.Enabled {
		tools = append(todo.Tools(new(todo.List)), tools...)
	}
	set, err = set.With(tools...)
	return set.Declarations(), err
}
