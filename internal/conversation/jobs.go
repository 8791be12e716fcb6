package conversation

import (
	"context"

	"loki/internal/agent/job"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
)

// withJobs returns tools of which execute_command starts jobs, with the tools to use them. A set without that tool stays as it is.
func (c *Conversation) withJobs(set tool.Set) (tool.Set, error) {
	if c.jobs == nil {
		return set, nil
	}
	var tools []tool.Tool
	changed := false
	for _, t := range set.All() {
		with := builtin.InBackground(t, c.jobs)
		changed = changed || with != t
		tools = append(tools, with)
	}
	if !changed {
		return set, nil
	}
	with, err := tool.NewSet(tools...)
	if err != nil {
		return set, err
	}
	return with.With(c.jobs.Tools()...)
}

// Jobs returns the jobs of the conversation, nil if there can be none.
func (c *Conversation) Jobs() *job.List { return c.jobs }

// TellJobs reports the jobs that have ended since it was done last.
func (c *Conversation) TellJobs(ctx context.Context) {
	c.tellJobs(ctx, c.options.Events, c.jobs.Ended())
}

// endJobs ends the jobs of the conversation, and reports that.
func (c *Conversation) endJobs(ctx context.Context, why string) {
	c.tellJobs(context.WithoutCancel(ctx), c.options.Events, c.jobs.Close(why))
}

// tellJobs reports jobs that have ended. What cannot be shown is not.
func (c *Conversation) tellJobs(ctx context.Context, events event.Scope, ended []event.JobEnded) {
	for _, e := range ended {
		_ = events.Emit(ctx, e)
	}
}

// endedJobs reports jobs that have ended since the last call, and returns a line for each, for the model.
func (t *turn) endedJobs(ctx context.Context) []string {
	var lines []string
	ended := t.c.jobs.Ended()
	t.c.tellJobs(ctx, event.FromContext(ctx), ended)
	for _, e := range ended {
		lines = append(lines, "[The job "+e.String()+"; job__output has what it printed]")
	}
	return lines
}
