package conversation

import (
	"context"

	"loki/internal/agent/team/job"
)

// sessionID returns the id of the session, "" for none.
func (c *Conversation) sessionID() string {
	if c.session == nil {
		return ""
	}
	return string(c.session.ID())
}

// Jobs returns the jobs of the conversation, also kept ones, nil if there can be none.
func (c *Conversation) Jobs() *job.List {
	c.jobs.Continue(c.sessionID())
	return c.jobs
}

// TellJobs reports what is new of the jobs: the ones that have ended since the last time.
func (c *Conversation) TellJobs(ctx context.Context) { c.jobs.Tell(ctx, c.options.Events) }

// endJobs ends the jobs of the conversation, and reports that.
func (c *Conversation) endJobs(ctx context.Context, why string) {
	job.Tell(context.WithoutCancel(ctx), c.options.Events, c.jobs.Close(why))
}
