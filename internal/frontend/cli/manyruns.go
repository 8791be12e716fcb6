package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/bulk"
)

// What --all and --cancel mean without a value.
const (
	allUnended = "unfinished" // failed or interrupted
	cancelMany = "those that --where chooses"
)

// resumeMany resumes the runs of --all. What they ask suspends them, and -y answers only how many they are.
func (c *command) resumeMany(ctx context.Context, _ *face) error {
	states := []string{c.opts.resumeAll}
	if c.opts.resumeAll == allUnended {
		states = []string{string(run.Failed), "interrupted"}
	}
	limit, _ := c.opts.limit() // it was checked
	service, end := c.app.ManyRuns()
	err := c.forMany(ctx, "Resume", c.opts.jobs, func(i run.Info) bool { return !i.Active && slices.Contains(states, i.State()) }, func(ctx context.Context, i run.Info) (string, error) {
		out, err := service.Resume(ctx, run.Resumption{Continuation: run.Continuation{
			ID: i.ID, Budget: limit, Force: c.opts.force, Here: c.opts.here, Model: c.opts.model, Keep: c.opts.noCompensate, NoStream: true,
			Events: c.app.Events(event.Discard), Asker: ask.Unavailable{},
		}})
		switch {
		case fault.CodeOf(err) == fault.Suspended:
			return "suspended: " + oneLine(c.app.Hide(err.Error())), nil
		case err != nil:
			return "failed", err
		case out.Failures > 0:
			return fmt.Sprintf("done, %s", text.Count(out.Failures, "failure")), nil
		}
		return "done", nil
	})
	return errors.Join(err, end())
}

// cancelRuns cancels the run of --cancel, or those of --where.
func (c *command) cancelRuns(ctx context.Context) error {
	service, end := c.app.ManyRuns()
	do := func(ctx context.Context, i run.Info) (string, error) { return "canceled", service.Cancel(ctx, i.ID) }
	if c.opts.cancel == cancelMany {
		err := c.forMany(ctx, "Cancel", defaultJobs, func(i run.Info) bool { return !i.Status.Over() }, do)
		return errors.Join(err, end())
	}
	if err := errors.Join(service.Cancel(ctx, c.opts.cancel), end()); err != nil {
		return err
	}
	return c.say("Run %s is canceled.", text.Printable(c.opts.cancel))
}

// cancelRunAt cancels the run of --cancel at a server.
func (c *command) cancelRunAt(ctx context.Context, s *farServer, _ *face) error {
	if _, err := s.Cancel(ctx, c.opts.cancel); err != nil {
		return err
	}
	return c.say("Run %s is canceled.", text.Printable(c.opts.cancel))
}

// forMany does something with all runs of --where that fit, so many at once, after the user has agreed, and prints a line for each. The
// error is that of the first that failed.
func (c *command) forMany(ctx context.Context, verb string, atOnce int, fits func(run.Info) bool, do func(context.Context, run.Info) (string, error)) error {
	filter, err := bulk.ParseFilter(c.opts.where, time.Now())
	if err != nil {
		return err
	}
	var infos []run.Info
	if err := c.withRuns(func(store run.Store) (err error) {
		infos, err = filter.Select(ctx, store, run.Query{Unfinished: true}, 0, fits)
		return err
	}); err != nil {
		return err
	}
	slices.Reverse(infos) // the oldest first
	type line struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Error  string `json:"error,omitempty"`
	}
	lines := []line{}
	report := func(r bulk.Result) error {
		l := line{ID: r.ID, Status: r.Status}
		shown := r.Status
		if r.Err != nil {
			l.Error = c.app.Hide(r.Err.Error())
			shown = "failed: " + oneLine(l.Error)
		}
		lines = append(lines, l)
		if c.opts.output != outputText {
			return nil
		}
		_, err := fmt.Fprintln(c.Out, r.ID, shown)
		return err
	}
	if c.opts.dryRun {
		for _, i := range infos {
			if err := report(bulk.Result{ID: i.ID, Status: i.State()}); err != nil {
				return err
			}
		}
	} else if len(infos) > 0 {
		if agreed, err := c.agrees(ctx, verb+" "+text.Count(len(infos), "run")+"?"); err != nil || !agreed {
			return err
		}
	}
	failed := 0
	if !c.opts.dryRun {
		for _, group := range c.byDirectory(infos) {
			n, ended := bulk.Each(ctx, group, atOnce, do, report)
			if failed += n; ended != nil {
				err = ended
				break
			}
		}
	}
	if c.opts.output != outputText {
		if err := printJSON(c.Out, lines); err != nil {
			return err
		}
	} else if !c.opts.quiet && len(infos) == 0 {
		fmt.Fprintln(c.Err, "no run matches: there is nothing to "+strings.ToLower(verb))
	} else if !c.opts.quiet {
		fmt.Fprintf(c.Err, "%s: %d failed\n", text.Count(len(lines), "run"), failed)
	}
	if err == nil && failed > 0 {
		err = fault.New(fault.Failure, "%d of %s failed", failed, text.Count(len(infos), "run"))
	}
	return err
}

// byDirectory returns runs in groups that can be worked on at once: the process is in one directory at a time, and the first run of a
// group enters it.
func (c *command) byDirectory(infos []run.Info) (groups [][]run.Info) {
	if c.opts.here {
		return [][]run.Info{infos}
	}
	rest := slices.SortedStableFunc(slices.Values(infos), func(a, b run.Info) int { return cmp.Compare(a.Dir, b.Dir) })
	for len(rest) > 0 {
		n := slices.IndexFunc(rest, func(i run.Info) bool { return i.Dir != rest[0].Dir })
		if n < 0 {
			n = len(rest)
		}
		if groups = append(groups, rest[:1]); n > 1 {
			groups = append(groups, rest[1:n])
		}
		rest = rest[n:]
	}
	return groups
}
