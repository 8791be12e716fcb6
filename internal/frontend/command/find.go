package command

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/conversation/session/search"
	"loki/internal/frontend/api/summary"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
	"loki/internal/workflow/run"
)

func findCommands() []Command {
	return []Command{
		{Name: ".search", Args: "TEXT", Help: `Find words or "a phrase" in all sessions and runs`, Group: Runs, Offered: always, do: (*Console).search},
		{
			Name: ".runs", Args: "[AGENT]", Help: "List the runs of this directory, or of an agent", Group: Runs, Offered: always,
			do:       (*Console).runs,
			complete: namesOf(func(c *Console, _ context.Context) ([]string, error) { return c.App.Agents.Names() }),
		},
		{
			Name: ".resume", Args: "[ID]", Help: "Resume run ID, or the newest that did not end", Group: Runs, Offered: always,
			do: (*Console).resume, complete: first(completeRun),
		},
		{Name: ".usage", Help: "Show tokens and costs of answer, session and day", Group: Runs, Offered: always, do: (*Console).showUsage},
		{Name: ".queue", Args: "[drop N|clear]", Help: "List the lines that wait, or drop some", Group: Runs, Offered: always, do: (*Console).queue},
	}
}

// queue is for .queue.
func (c *Console) queue(_ context.Context, args string) error {
	if c.Queue == nil {
		return fault.New(fault.Usage, "nothing is queued here")
	}
	text, err := c.Queue(args)
	return c.printUnless(err, text)
}

// How many results and runs are shown.
const (
	mostFound = 10
	mostRuns  = 20
)

// search shows the sessions and runs in which a text is found.
func (c *Console) search(ctx context.Context, args string) error {
	done := c.Busy("Searching")
	list, of, err := c.App.Search().Find(ctx, args, mostFound)
	done()
	if err != nil {
		return err
	}
	for i, f := range list {
		list[i].Open = c.openCommands(f)
	}
	mark := display.Brackets
	if c.Interactive && render.ColorEnabled(c.App.Env.Get, true) {
		mark = display.Bold
	}
	if len(list) > 0 {
		c.Out.Colored(strings.TrimRight(display.Fit(display.FoundText(list, mark), c.width()), "\n"))
	}
	if note := display.FoundNote(len(list), of); note != "" {
		c.Out.Note(note)
	}
	return nil
}

// openCommands returns the commands that open what was found, from what is in force.
func (c *Console) openCommands(f search.Hit) string {
	if f.Kind != search.FoundSession {
		return "!loki --run " + f.ID
	}
	agent := ""
	if of, ok := c.conv.Agent(); ok {
		agent = of.Name
	}
	s := c.conv.Session()
	open, leave := ".session "+f.Name, ""
	switch {
	case agent == f.Agent && s != nil && string(s.ID()) == f.ID:
		return "in use now"
	case agent != "" && agent != f.Agent:
		leave = ".exit agent"
	case s != nil && !c.mode().Unnamed:
		leave = ".exit session"
	}
	if f.Agent != "" && agent != f.Agent {
		open = ".agent " + text.Word(f.Agent) + " " + text.Word(f.Name)
	}
	if leave != "" {
		return leave + ", then " + open
	}
	return open
}

// withRuns opens the store of runs for work.
func (c *Console) withRuns(work func(run.Store) error) error {
	store, err := c.App.OpenRuns()
	if err != nil {
		return err
	}
	return errors.Join(work(store), store.Close())
}

// lineWidth is how many columns the texts of commands have at most.
const lineWidth = 80

// width returns the columns of lists, 0 if a program reads them.
func (c *Console) width() int {
	switch {
	case !c.Interactive:
		return 0
	case c.Columns == nil:
		return lineWidth
	}
	return min(cmp.Or(c.Columns(), lineWidth), lineWidth)
}

// runs lists the runs of the present directory or of an agent, the newest first.
func (c *Console) runs(ctx context.Context, args string) error {
	return c.withRuns(func(store run.Store) error {
		q := run.Query{Limit: mostRuns}
		if args != "" {
			q.Agent = args
			if ref, err := c.App.Agents.Find(args); err == nil {
				q.Agent = ref.Name
			}
		} else {
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			q.Dir = dir
		}
		infos, err := store.Runs(ctx, q)
		if err != nil {
			return err
		}
		if len(infos) == 0 {
			c.Out.Note("no run is on record here")
			return nil
		}
		c.Out.Print(strings.TrimRight(display.Runs(summary.List(infos), c.width()), "\n"))
		return nil
	})
}

// resume resumes a run that did not end. What it asks is asked here.
func (c *Console) resume(ctx context.Context, args string) error {
	_, err := c.App.Resume(ctx, run.Resumption{Continuation: run.Continuation{ID: args, Events: c.Scope, Asker: c.Asker}})
	return err
}

// completeRun completes a word to the id of a run of the present directory that can be resumed.
func completeRun(c *Console, ctx context.Context, _ []string) (found []Candidate) {
	_ = c.withRuns(func(store run.Store) error { // without them there are no candidates
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		infos, err := store.Runs(ctx, run.Query{Dir: dir, Unfinished: true, Limit: mostRuns})
		for _, i := range infos {
			if !i.Active && !i.Damaged {
				found = append(found, Candidate{Value: i.ID, Description: i.Agent + ", " + display.RunStatus(summary.Of(i)) + ": " + text.OneLine(i.Prompt, display.PromptLength)})
			}
		}
		return err
	})
	return found
}

// showUsage shows what the last answer, the conversation and all processes used.
func (c *Console) showUsage(context.Context, string) error {
	turn, all := c.conv.Spending()
	name := "conversation"
	if s := c.conv.Session(); s != nil && !c.mode().Unnamed {
		name = "session " + s.Name()
	}
	today, days, note, err := c.App.Models.UsageSums()
	if err != nil {
		return err
	}
	if note != "" {
		c.Out.Note(note)
	}
	c.Out.Print(trimEnd(display.Usage([]display.Spent{
		{Name: "last answer", Usage: turn},
		{Name: name, Usage: all},
		{Name: "today", Calls: today.Calls, Usage: today.Usage},
		{Name: "7 days", Calls: days.Calls, Usage: days.Usage},
	}, days.Models)))
	return nil
}
