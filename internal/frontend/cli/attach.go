package cli

import (
	"context"
	"os"
	"slices"

	"loki/internal/base/fault"
	"loki/internal/frontend/api/client"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/live"
)

// attach shows the run of --attach from its first event, and what follows as long as it is at work, and asks here what it asks. Ctrl-C
// leaves the run as it is.
func (c *command) attach(ctx context.Context, face *face) error {
	store, err := c.app.OpenRuns()
	if err != nil {
		return err
	}
	defer store.Close()
	info, err := c.attachTarget(ctx, store)
	if err != nil {
		return err
	}
	here := live.User{Asker: c.asker(face, false), Via: event.ViaTerminal, Events: face.emitter, Warn: c.warn}
	answers, err := here.Attach(ctx, store, c.app.LiveDir(), info.ID)
	if err == nil {
		info, err = store.Info(ctx, info.ID)
	}
	if ctx.Err() != nil {
		return c.noteDetached(face, info.ID)
	}
	switch {
	case err != nil:
		return err
	case len(answers) > 0:
		r := run.Resumption{Answers: answers, Via: event.ViaTerminal, Uncanceled: true}
		if r.Continuation, err = c.continuation(face); err != nil {
			return err
		}
		r.ID = info.ID
		_, err = c.app.Runs().Resume(ctx, r)
		return err
	case info.Status == run.Done && info.Error == "":
		return nil
	case info.Status == run.Running: // its process died
		return fault.New(fault.Suspended, "run %s was interrupted", info.ID).WithHint("resume it: loki --resume %s", info.ID)
	}
	err = fault.New(info.Code, "%s", info.Error)
	if info.Status.Resumable() {
		hint := "resume it: loki --resume " + info.ID
		if waiting, failed := store.Pending(ctx, info.ID); failed == nil && len(waiting) > 0 && info.Code == fault.Suspended {
			hint = answerHint("loki", info.ID, waiting[0].ID, len(waiting))
		}
		return fault.Wrap(info.Code, err, "").WithHint("%s", hint)
	}
	return err
}

// attachTarget returns the run of --attach: without an id, the newest of the working directory, one that is at work before all others.
func (c *command) attachTarget(ctx context.Context, store run.Store) (run.Info, error) {
	if c.opts.value != resumeNewest {
		return store.Info(ctx, c.opts.value)
	}
	dir, err := os.Getwd()
	if err != nil {
		return run.Info{}, err
	}
	runs, err := store.Runs(ctx, run.Query{Dir: dir})
	if err != nil {
		return run.Info{}, err
	}
	if len(runs) == 0 {
		return run.Info{}, fault.New(fault.NotFound, "no run was started in %s", dir).WithHint("see all runs: loki --runs; attach to one of them: loki --attach ID")
	}
	i := slices.IndexFunc(runs, func(i run.Info) bool { return i.Active })
	return runs[max(i, 0)], nil
}

// noteDetached says that a run continues without this command.
func (c *command) noteDetached(face *face, id string) error {
	if !c.opts.quiet {
		face.screen.Print("▸ detached from run " + id + ", which stays as it is; loki --attach " + id + " shows it again")
	}
	return nil
}

// attachRemotely is attach for a run of a server.
func (c *command) attachRemotely(ctx context.Context, s *farServer, face *face) error {
	id := c.opts.value
	if id == resumeNewest {
		list, err := s.Runs(ctx, client.RunQuery{Limit: 1})
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return fault.New(fault.NotFound, "%s has no run", s.URL())
		}
		id = list[0].ID
	}
	r, err := s.Run(ctx, id)
	if err != nil {
		return err
	}
	if c.InTerminal {
		s.asker = c.asker(face, false)
	}
	return c.follow(ctx, s, face, r.Run, 0, true)
}
