package node

import (
	"context"
	"fmt"

	"loki/internal/agent/team"
	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/workflow/run"
)

// agent runs another agent as a child and takes its answer. A failure of the child goes to the node's fallback; without one the
// run fails.
func (r *Runner) agent(ctx context.Context, t *run.Task, wanted string) (product, error) {
	prompt, err := t.Node.Agent.Prompt.Strict(t.Draft)
	if err != nil {
		return r.fail(ctx, t, fmt.Errorf("prompt for agent %s: %w", t.Node.Agent.Agent, err))
	}
	result, err := tryNode(ctx, r, t, func(ctx context.Context) (value.Value, error) {
		return within(ctx, t.Node, func(ctx context.Context) (value.Value, error) { return r.agentResult(ctx, t, prompt) })
	})
	if err != nil {
		return r.fail(ctx, t, err)
	}
	return r.deliver(ctx, t, product{result: result}, t.Node.Agent.OutputSchema, wanted)
}

// deliver returns p, what a node has come to, with where it goes. With an output schema the members of the result become keys of the state, and
// then the state_updates are made.
func (r *Runner) deliver(ctx context.Context, t *run.Task, p product, schema *value.Value, wanted string) (product, error) {
	if schema != nil {
		for name, v := range p.result.AsObject().All() {
			t.Draft.Set(name, v)
		}
	}
	p.wanted, p.updated = t.Draft.ApplyUpdates(t.Node.Updates, outputKey, p.result, wanted)
	return r.exit(ctx, t, p)
}

// agentResult returns the child's output, or with an output schema the JSON value in it.
func (r *Runner) agentResult(ctx context.Context, t *run.Task, prompt string) (value.Value, error) {
	answer, err := r.child(ctx, t, prompt)
	if err != nil || t.Node.Agent.OutputSchema == nil {
		return value.Of(answer), err
	}
	form, err := schema.Compile(*t.Node.Agent.OutputSchema)
	if err != nil {
		return value.Value{}, fmt.Errorf("output_schema: %w", err)
	}
	req := engine.Request{Messages: []chat.Message{chat.Text(chat.User, prompt)}, Form: form, Whole: true, Node: t.Node.ID}
	result, reply, err := r.Engine.StructuredValue(ctx, r.request(t), req, engine.Reply{Text: answer}, true)
	addUsage(t, reply.Usage)
	if err != nil {
		return value.Value{}, fmt.Errorf("the output of agent %s: %w", t.Node.Agent.Agent, unfitReply(err, t.Secrets != nil))
	}
	return result, nil
}

// childKey is the call of the child in the record of an agent node.
const childKey = "agent"

// child runs the child of an agent node and returns its output.
func (r *Runner) child(ctx context.Context, t *run.Task, prompt string) (output string, err error) {
	own, err := r.team(ctx, t)
	if err != nil {
		return "", err
	}
	name := t.Node.Agent.Agent
	result, err := own.Root().Run(ctx, childKey, name, prompt)
	addUsage(t, result.Usage)
	addUsage(t, own.Root().Close())
	switch {
	case err != nil && result.Status == team.OutOfBudget:
		return "", fmt.Errorf("agent %s: %w", name, err)
	case err != nil:
		return "", err
	case result.Status == team.Done:
		return result.Output, nil
	case result.Error == "":
		return "", fmt.Errorf("agent %s ended as %s", name, result.Status)
	}
	return "", fmt.Errorf("agent %s failed: %s", name, result.Error)
}

// team returns a new team whose root is the node of t. Its children end with the node.
func (r *Runner) team(ctx context.Context, t *run.Task) (*team.Team, error) {
	if r.Team == nil {
		return nil, fault.New(fault.Config, "node %q: agents cannot be started here", t.Node.ID)
	}
	o := r.Team(t.Node)
	o.Agent, o.Steps, o.Events, o.Direct, o.Now = r.Agent, t.Steps, t.Events, r.Asker, r.Now
	o.Seed = fmt.Sprintf("%s/%d/%s/%s", t.Events.AgentID, t.Step, r.place(t), t.Steps.Key(""))
	return team.New(ctx, o)
}

// teamPrefix begins the names of the tools by which a model works with other agents.
const teamPrefix = "agent__"
