package conversation

import (
	"context"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
)

// GraphQuestion is what a graph agent is run for.
type GraphQuestion struct {
	Prompt    string
	Variables map[string]string // a value for each variable of the agent
	Model     string            // that the user asked for; "" leaves it to the agent and the configuration
	NoStream  bool
	Dry       bool // models answer with what would be sent
	NoServers bool // there are no MCP servers
	Caller
}

// chosenModel returns the model that the user chose for the graph in force, with the command or in the conversation, before the
// graph was entered or after. It is empty if the graph and the configuration decide, so that the record of the run leaves it to them.
func (c *Conversation) chosenModel() string {
	if chosen := c.options.Settings.Over(c.tuned).Model; chosen != "" {
		return chosen
	}
	if id := c.Settings().Model; id != c.agent.Model("") {
		return id
	}
	return ""
}

// runGraph runs the graph of the agent with the question of l.
func (c *Conversation) runGraph(ctx context.Context, l *last) (Answer, error) {
	if err := c.ready(ctx); err != nil {
		return Answer{}, err
	}
	if c.Mode() == chat.ModePlan {
		return Answer{}, notOfGraphs(c.agent)
	}
	for _, p := range l.question.User.Parts {
		if p.Type != chat.TextPart {
			return Answer{}, fault.New(fault.Usage, "agent %s is a graph, and its prompt is text only: pictures cannot be attached", c.agent.Name)
		}
	}
	job, err := c.agent.Job(ctx, GraphQuestion{
		Prompt: l.question.User.Text(), Variables: c.variables, Model: c.chosenModel(),
		NoStream: c.values.noStream, Dry: c.values.dryRun, NoServers: c.values.switches.NoServers, Caller: c.options.Caller,
	})
	if err != nil {
		return Answer{}, err
	}
	job.Info.Owner = c.options.Owner
	out, err := c.runs().Start(ctx, job)
	l.used, c.spent = out.Usage, c.spent.Add(out.Usage)
	a := Answer{Text: out.Output, Stop: out.Stop, Usage: out.Usage}
	if out.Output != "" {
		a.Messages = []chat.Message{chat.Text(chat.Assistant, out.Output)}
	}
	l.take(a.Messages, session.Ask)
	if err != nil {
		return a, err
	}
	return a, c.journal(context.WithoutCancel(ctx), c.entry(l.question.Asked, a, nil))
}
