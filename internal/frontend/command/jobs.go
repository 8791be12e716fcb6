package command

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/agent/team/job"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
)

func jobCommands() []Command {
	return []Command{{
		Name: ".jobs", Args: "[ID|kill ID|keep ID]", Help: "List jobs; show, end or keep one", Group: Tools, Offered: always, do: (*Console).jobs, complete: completeJobs,
	}}
}

// jobs is for .jobs.
func (c *Console) jobs(ctx context.Context, args string) error {
	list := c.conv.Jobs()
	words := strings.Fields(args)
	switch {
	case list == nil:
		return fault.New(fault.Usage, "there are no jobs here").WithHint("jobs: {max: 8} in config.yaml allows them")
	case len(words) == 0:
		return c.printUnless(nil, jobTable(list.All()))
	case len(words) == 1 && words[0] != "kill" && words[0] != "keep":
		output, err := list.Output(words[0])
		return withJobHint(c.printUnless(err, output))
	case len(words) == 2 && words[0] == "kill":
		return withJobHint(list.Kill(words[1], "you killed it"))
	case len(words) == 2 && words[0] == "keep":
		return withJobHint(c.keepJob(ctx, list, words[1]))
	}
	return fault.New(fault.Usage, ".jobs takes nothing, an ID, kill ID or keep ID, not %q", args).WithHint(".jobs lists the jobs with their ids")
}

// keepJob has a job outlive this program, once the user has consented. Only one that is started by its keeper can, so it is started again.
func (c *Console) keepJob(ctx context.Context, list *job.List, id string) error {
	if _, err := list.Output(id); err != nil {
		return err
	}
	answer, err := c.Asker.Ask(ctx, ask.Question{
		Kind: ask.Select, Text: "A job that outlives Loki is started by a process of its own. So " + id + " ends now and its command is run again.\n\nKeep it?", Options: []string{"no", "yes"}, Consent: true,
	})
	if err != nil || answer != "yes" {
		return err
	}
	kept, err := list.Keep(ctx, id)
	if err == nil {
		c.Out.Note(kept + " continues when Loki has ended; loki --kill-job " + kept + " ends it")
	}
	return err
}

func withJobHint(err error) error {
	if fault.CodeOf(err) == fault.NotFound {
		return fault.Wrap(fault.NotFound, err, "").WithHint(".jobs lists the jobs with their ids")
	}
	return err
}

// jobTable shows jobs.
func jobTable(jobs []job.Info) string {
	table := display.List(nil, jobs, func(j job.Info) []string {
		status := j.Status
		if j.Exit != nil {
			status += " " + strconv.Itoa(*j.Exit)
		}
		var ports []string
		for _, port := range j.Ports {
			ports = append(ports, ":"+strconv.Itoa(port))
		}
		return []string{j.ID, status, j.Ran.Round(time.Second).String(), strings.Join(ports, " "), text.OneLine(j.Command, 60)}
	})
	return cmp.Or(table, "no jobs in this conversation")
}

// completeJobs completes the id of a job, and what is done with one that runs.
func completeJobs(c *Console, _ context.Context, words []string) (found []Candidate) {
	runs := len(words) == 2 && (words[0] == "kill" || words[0] == "keep")
	if len(words) > 1 && !runs {
		return nil
	}
	if !runs {
		found = append(found, Candidate{Value: "kill", Description: "end a job", Space: true}, Candidate{Value: "keep", Description: "have a job outlive Loki", Space: true})
	}
	for _, j := range slices.Backward(c.conv.Jobs().All()) {
		if !runs || j.Status == job.Running {
			found = append(found, Candidate{Value: j.ID, Description: text.OneLine(j.Command, 60)})
		}
	}
	return found
}
