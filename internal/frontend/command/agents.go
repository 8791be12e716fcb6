package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/conversation"
	"loki/internal/frontend/command/display"
)

func agentCommands() []Command {
	return []Command{
		{Name: ".agent", Args: "NAME [SESSION] [KEY=VALUE...]", Help: "Talk with an agent", Group: Agents, Offered: bare, do: (*Console).agent, complete: completeAgent()},
		{Name: ".starter", Args: "[N]", Help: "Show what to ask the agent, or ask number N", Group: Agents, Offered: withAgent, do: (*Console).starter, complete: completeStarter()},
		{Name: ".clear todo", Help: "Empty the todo list of the model", Group: Agents, Offered: always, do: (*Console).clearTodo},
		{Name: ".edit agent-config", Help: "Edit the file of the agent", Group: Agents, Offered: withAgent, do: (*Console).editAgent},
		{Name: ".info agent", Help: "Show the agent", Group: Agents, Offered: withAgent, do: (*Console).infoAgent},
		{Name: ".exit agent", Help: "Leave the agent and its session", Group: Agents, Offered: withAgent, do: (*Console).exitAgent},
	}
}

// agent is for .agent.
func (c *Console) agent(ctx context.Context, args string) error {
	list, _ := words(args)
	if len(list) == 0 {
		return fault.New(fault.Usage, "the agent is missing").WithHint(".agent NAME")
	}
	session, given, err := agentWords(list[1:])
	if err != nil {
		return err
	}
	return c.conv.EnterAgent(ctx, list[0], session, given)
}

// agentWords returns the session and the variables that the words behind the name of an agent say.
func agentWords(list []string) (session string, given map[string]string, err error) {
	if len(list) > 0 && !strings.Contains(list[0], "=") {
		session, list = list[0], list[1:]
	}
	given, err = keyValues(list, ".agent NAME [SESSION] [KEY=VALUE...]")
	return session, given, err
}

// keyValues returns what words say that are KEY=VALUE each. Usage is how the command is written.
func keyValues(list []string, usage string) (map[string]string, error) {
	given := make(map[string]string, len(list))
	for _, word := range list {
		key, value, ok := strings.Cut(word, "=")
		if _, twice := given[key]; !ok || key == "" || twice {
			why := "is not KEY=VALUE"
			if twice {
				why = "sets " + key + " twice"
			}
			return nil, fault.New(fault.Usage, "%q %s", word, why).WithHint("%s; put a value with blanks in quotes: \"KEY=TWO WORDS\"", usage)
		}
		given[key] = unquote(value)
	}
	return given, nil
}

// inForce returns the agent in force.
func (c *Console) inForce() (conversation.Agent, error) {
	of, ok := c.conv.Agent()
	if !ok {
		return of, fault.New(fault.Usage, "there is no agent").WithHint("talk with one: .agent NAME")
	}
	return of, nil
}

// starter is for .starter.
func (c *Console) starter(ctx context.Context, arg string) error {
	of, err := c.inForce()
	if err != nil {
		return err
	}
	starters, err := c.conv.Starters(ctx)
	if err != nil {
		return err
	}
	if arg == "" {
		c.Out.Markdown(banner(of, starters))
		return nil
	}
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 || n > len(starters) {
		return fault.New(fault.Usage, "%q is not the number of a conversation starter: agent %s has %d", arg, of.Name, len(starters)).WithHint(".starter lists them")
	}
	c.Out.Note(">> " + text.Printable(starters[n-1]))
	return c.send(ctx, starters[n-1], nil, nil, "")
}

// banner introduces an agent with its conversation starters, as Markdown.
func banner(of conversation.Agent, starters []string) string {
	d := of.InForce
	var b strings.Builder
	b.WriteString(strings.TrimSpace("# " + of.Name + " " + d.Version))
	if description := strings.TrimSpace(d.Description); description != "" {
		b.WriteString("\n\n" + description)
	}
	if len(starters) > 0 {
		b.WriteString("\n\n## Conversation starters\n")
	}
	for i, s := range starters {
		fmt.Fprintf(&b, "\n%d. %s", i+1, s)
	}
	return b.String()
}

// clearTodo is for .clear todo.
func (c *Console) clearTodo(context.Context, string) error {
	cleared, err := c.conv.ClearTodo()
	if cleared {
		return c.printUnless(err, "✓ The todo list is empty")
	}
	return c.printUnless(err, "The todo list is empty already")
}

// infoAgent is for .info agent.
func (c *Console) infoAgent(ctx context.Context, _ string) error {
	of, err := c.inForce()
	if err != nil {
		return err
	}
	var session value.Value
	if s := c.conv.Session(); s != nil && s.Stored() {
		if _, session, err = c.conv.Export(); err != nil {
			return err
		}
	}
	info, _, err := display.AgentInfo(ctx, c.App, of.Agent, c.conv.Variables(), session)
	return c.printUnless(err, info)
}

// editAgent is for .edit agent-config.
func (c *Console) editAgent(ctx context.Context, _ string) error {
	of, err := c.inForce()
	if err != nil {
		return err
	}
	file := of.Definition.File
	if err := c.openNew(ctx, file, "# The agent "+of.Name+"\n"); err != nil {
		return err
	}
	c.Out.Note("The agent has its new definition when it is entered again: .exit agent, .agent " + of.Arg)
	return nil
}

// exitAgent is for .exit agent.
func (c *Console) exitAgent(ctx context.Context, _ string) error {
	if _, err := c.inForce(); err != nil {
		return err
	}
	return c.conv.ExitAgent(ctx)
}
