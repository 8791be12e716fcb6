package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/frontend/api/client"
	"loki/internal/frontend/api/summary"
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
	asks := &asking{store: store, run: info.ID, asker: c.asker(face, false), open: make(map[string]context.CancelCauseFunc), warn: c.warn}
	defer asks.end()
	for w, err := range live.Watch(ctx, store, c.app.LiveDir(), info.ID) {
		switch {
		case ctx.Err() != nil:
			return c.noteDetached(face, info.ID)
		case err != nil:
			return err
		case w.Now:
			err = asks.look(ctx)
		default:
			err = face.emitter.Emit(ctx, asks.markOwnAnswer(w.Event))
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	asks.end()
	if info, err = store.Info(ctx, info.ID); err != nil {
		return err
	}
	answers, err := c.answersAtRest(ctx, asks)
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
		return fault.Wrap(info.Code, err, "").WithHint("resume it: loki --resume %s", info.ID)
	}
	return err
}

// attachTarget returns the run of --attach: without an id, the newest of the working directory, one that is at work before all others.
func (c *command) attachTarget(ctx context.Context, store run.Store) (run.Info, error) {
	if c.opts.attach != resumeNewest {
		return store.Info(ctx, c.opts.attach)
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

// answersAtRest asks the questions of a run that is not at work. There are no answers if no user can be asked, or if another place answered first.
func (c *command) answersAtRest(ctx context.Context, asks *asking) (map[string]string, error) {
	info, err := asks.store.Info(ctx, asks.run)
	if err != nil || info.Status == run.Canceled { // which closed its questions
		return nil, err
	}
	pending, err := asks.store.Pending(ctx, asks.run)
	answers := make(map[string]string)
	for _, p := range pending {
		answer, err := asks.ask(ctx, p)
		if errors.Is(err, ask.ErrUnavailable) || errors.Is(err, ask.ErrElsewhere) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		answers[p.ID] = answer
	}
	return answers, err
}

// asking asks here what a run asks that is at work in another process.
type asking struct {
	store run.Store
	run   string
	asker ask.Asker
	warn  func(string)

	open    map[string]context.CancelCauseFunc // by question
	given   sync.Map                           // texts of answers that were given here, by question
	working sync.WaitGroup
}

// look asks new questions and withdraws the ones that have an answer.
func (a *asking) look(ctx context.Context) error {
	pending, err := a.store.Pending(ctx, a.run)
	if err != nil {
		return err
	}
	waits := make(map[string]bool)
	for _, p := range pending {
		if waits[p.ID] = true; a.open[p.ID] != nil {
			continue
		}
		ctx, cancel := context.WithCancelCause(ctx)
		a.open[p.ID] = cancel
		a.working.Go(func() { // ends with the answer, or with ctx
			answer, err := a.ask(ctx, p)
			if err == nil {
				a.given.Store(p.ID, answer)
				err = run.AnswerOnRecord(ctx, a.store, a.run, map[string]string{p.ID: answer}, run.Reply{Via: event.ViaTerminal})
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, ask.ErrUnavailable) {
				a.warn(err.Error())
			}
		})
	}
	for id, withdraw := range a.open {
		if !waits[id] {
			withdraw(ask.ErrElsewhere)
			delete(a.open, id)
		}
	}
	return nil
}

// markOwnAnswer returns an event that says of an answer whether it was given here.
func (a *asking) markOwnAnswer(ev event.Event) event.Event {
	if b, ok := ev.Body.(event.Answer); ok {
		given, here := a.given.Load(b.ID)
		b.Here = here && given == b.Text
		ev.Body = b
	}
	return ev
}

// ask asks a question that waits.
func (a *asking) ask(ctx context.Context, p run.Pending) (string, error) {
	q := questionOf(summary.Questions(run.Info{ID: a.run}, []run.Pending{p})[0])
	return a.asker.Ask(ctx, q)
}

// end withdraws all questions.
func (a *asking) end() {
	for id, withdraw := range a.open {
		withdraw(ask.ErrElsewhere)
		delete(a.open, id)
	}
	a.working.Wait()
}

// attachRemotely is attach for a run of a server.
func (c *command) attachRemotely(ctx context.Context, s *farServer, face *face) error {
	id := c.opts.attach
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
