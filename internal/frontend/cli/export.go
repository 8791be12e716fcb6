package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/frontend/command/export"
	"loki/internal/workflow/run"
)

// exportTalk writes the session or the run of --export as a document.
func (c *command) exportTalk(ctx context.Context) error {
	talk, err := c.talk(ctx, c.opts.value)
	if err != nil {
		return err
	}
	o := export.Options{Format: cmp.Or(c.opts.format, export.FormatOf(c.opts.to)), Reasoning: c.opts.verbose > 0, Hide: c.app.Hide}
	doc, err := export.Document(talk, o)
	if err != nil {
		return err
	}
	if c.opts.to == "" {
		_, err = c.Out.Write(doc)
		return err
	}
	if err := export.Write(c.opts.to, doc); err != nil {
		return err
	}
	if !c.opts.quiet {
		fmt.Fprintf(c.Err, "written: %s\n", c.opts.to)
	}
	return nil
}

// talk returns the conversation that name means: a session by its name or id, else a run.
func (c *command) talk(ctx context.Context, name string) (talk export.Talk, err error) {
	scope, err := c.sessionScope()
	if err != nil {
		return talk, err
	}
	id, err := c.app.Conversations().StoredID(ctx, scope, name)
	if err == nil {
		store, err := c.app.Sessions()
		if err != nil {
			return talk, err
		}
		s, err := store.Open(ctx, scope, id)
		if err != nil {
			return talk, err
		}
		return export.Session(s), nil
	}
	if !errors.Is(err, session.ErrNotFound) && fault.CodeOf(err) != fault.Usage { // no run has a name that is not allowed for a session
		return talk, err
	}
	unknown := fault.New(fault.NotFound, "no session and no run is called %q", name).WithHint("see loki --list sessions and loki --runs; a session of an agent needs -a AGENT")
	err = c.withRuns(func(store run.Store) error {
		if talk, err = export.Run(ctx, store, name); fault.CodeOf(err) == fault.NotFound {
			return unknown
		}
		return err
	})
	return talk, err
}
