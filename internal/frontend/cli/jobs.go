package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"loki/internal/agent/team/job"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
)

// listJobs lists the jobs that are kept.
func (c *command) listJobs(context.Context) error {
	list := job.KeptJobs(c.app.JobsDir())
	if c.opts.output != outputText {
		return printJSON(c.Out, list)
	}
	if len(list) == 0 {
		fmt.Fprintln(c.Err, "no jobs that outlive Loki; in a chat, .jobs keep ID lets a job outlive it")
		return nil
	}
	var rows [][]string
	for _, r := range list {
		status := r.Status
		if r.Exit != nil {
			status += " " + strconv.Itoa(*r.Exit)
		}
		rows = append(rows, []string{r.ID, status, r.Began.Local().Format(time.DateTime), text.Visible(r.Dir), text.OneLine(r.Command, 60)})
	}
	_, err := io.WriteString(c.Out, display.Table(rows))
	return err
}

// killJob ends the job of --kill-job.
func (c *command) killJob(ctx context.Context) error {
	r, err := job.KillKept(ctx, c.app.JobsDir(), c.opts.worktrees.job)
	if err == nil {
		c.note("ended " + r.ID + " (" + text.OneLine(r.Command, 80) + "); what it printed is in " + r.Log)
	}
	return err
}
