package cli

import (
	"context"
	"strconv"
	"time"

	"loki/internal/agent/team/job"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
)

// listJobs lists the jobs that are kept.
func (c *command) listJobs(context.Context) error {
	list := job.KeptJobs(c.app.JobsDir())
	return printList(c, list, "no jobs that outlive Loki; in a chat, .jobs keep ID lets a job outlive it", display.List(nil, list, func(r job.Record) []string {
		status := r.Status
		if r.Exit != nil {
			status += " " + strconv.Itoa(*r.Exit)
		}
		return []string{r.ID, status, r.Began.Local().Format(time.DateTime), text.Visible(r.Dir), text.OneLine(r.Command, 60)}
	}))
}

// killJob ends the job of --kill-job.
func (c *command) killJob(ctx context.Context) error {
	r, err := job.KillKept(ctx, c.app.JobsDir(), c.opts.value)
	if err == nil {
		c.note("ended " + r.ID + " (" + text.OneLine(r.Command, 80) + "); what it printed is in " + r.Log)
	}
	return err
}
