package app

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/agent"
	"loki/internal/agent/role"
	"loki/internal/agent/team"
	"loki/internal/agent/team/todo"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/script"
)

// instructions returns the instructions of a plain agent as they are written: those of its
// definition or, if they are dynamic, what the function _instructions of its script returns.
func (a *App) instructions(ctx context.Context, of agent.Agent, variables map[string]string, asker ask.Asker) (string, error) {
	if !of.InForce.Dynamic {
		return of.InForce.Instructions, nil
	}
	file, t, done, err := a.dynamic(ctx, of, variables, asker)
	if err != nil {
		return "", err
	}
	defer done()
	if err := a.Trust.Settle(ctx, of, asker); err != nil {
		return "", err
	}
	if err := a.Trust.ScriptConsent(of, asker)(ctx, file); err != nil {
		return "", err
	}
	defer ask.Hold(asker)()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(t.Hints().Timeout, a.Config.ToolTimeout, instructionsTimeout))
	defer cancel()
	result, err := t.Call(ctx, tool.Call{Name: t.Declaration().Name, Arguments: []byte("{}")})
	text := strings.TrimSpace(result.Output)
	switch {
	case err != nil:
		err = fault.Wrap(fault.Tool, err, "the function _instructions of %s", file)
		if said := strings.TrimSpace(result.Stderr); said != "" {
			return "", fault.Wrap(fault.Tool, err, "").WithHint("it printed: %s", said)
		}
		return "", err
	case text == "":
		return "", fault.New(fault.Tool, "the function _instructions of %s returned nothing", file).
			WithHint("what it returns becomes the instructions of the agent; a bash function writes it to $LLM_OUTPUT")
	}
	return text, nil
}

// dynamic returns the function that writes an agent's instructions, and the script it is in. At
// a terminal it may talk with the user, also by its standard streams, until done is called.
func (a *App) dynamic(ctx context.Context, of agent.Agent, variables map[string]string, asker ask.Asker) (file string, t tool.Tool, done func(), err error) {
	why, done := "has no script of tools", func() {}
	file, o, ok := a.agentScript(ctx, of, variables, asker)
	if ok {
		if o.Terminal {
			if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
				o.Stdin, o.Echo, done = tty, tty, func() { _ = tty.Close() }
			}
		}
		if t, err = script.Instructions(file, o); err == nil && t != nil {
			return file, t, done, nil
		}
		done()
		if err != nil {
			return "", nil, nil, err
		}
		why = filepath.Base(file) + " has no function _instructions"
	}
	return "", nil, nil, fault.New(fault.Config, "agent %s has dynamic_instructions, but %s", of.Name, why).
		WithHint("write the function _instructions in tools.sh, tools.py or tools.ts, or take dynamic_instructions out of %s", of.Definition.File)
}

// instructionsTimeout bounds how long _instructions takes where nothing else does. It may ask the
// user.
const instructionsTimeout = 10 * time.Minute

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
	set, err := a.agentTools(ctx, of, variables, nil)
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
