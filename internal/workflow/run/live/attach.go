package live

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"loki/internal/base/ask"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// User sees a run that is perhaps at work in another process, and is asked what it asks.
type User struct {
	Asker  ask.Asker
	Via    event.Via // how the answers come
	Events event.Emitter
	Warn   func(text string) // says why an answer does not count
}

// Attach shows the run called id, see [Watch], and asks the user its questions, until it rests. A question that is answered in another place is
// withdrawn. What it returns are the answers, by question, to what the run asks when it rests: the caller resumes it with them. There are none if
// no user can be asked, or if another place answered first.
func (u User) Attach(ctx context.Context, store run.Store, dir, id string) (answers map[string]string, err error) {
	a := &attached{User: u, store: store, run: id, open: make(map[string]context.CancelCauseFunc)}
	defer a.end()
	for {
		for w, err := range Watch(ctx, store, dir, id) {
			switch {
			case err != nil:
				return nil, err
			case w.Now:
				err = a.look(ctx)
			default:
				err = a.show(ctx, w.Event)
			}
			if err != nil {
				return nil, err
			}
		}
		a.end()
		if answers, err = a.atRest(ctx); !errors.Is(err, ask.ErrElsewhere) {
			return answers, err
		}
	}
}

// attached is the work of [User.Attach].
type attached struct {
	User
	store run.Store
	run   string
	shown int // number of the last event that was shown

	open    map[string]context.CancelCauseFunc // by question
	given   sync.Map                           // texts of answers that were given here, by question
	working sync.WaitGroup
}

// look asks new questions and withdraws the ones that have an answer.
func (a *attached) look(ctx context.Context) error {
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
			answer, err := a.Asker.Ask(ctx, p.Question())
			if err == nil {
				a.given.Store(p.ID, answer)
				err = run.AnswerOnRecord(ctx, a.store, a.run, map[string]string{p.ID: answer}, run.Reply{Via: a.Via})
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, ask.ErrUnavailable) {
				a.Warn(err.Error())
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

// show shows an event once. Of an answer, it says whether it was given here.
func (a *attached) show(ctx context.Context, ev event.Event) error {
	if ev.Number > 0 && ev.Number <= a.shown {
		return nil
	}
	a.shown = max(a.shown, ev.Number)
	if b, ok := ev.Body.(event.Answer); ok {
		given, here := a.given.Load(b.ID)
		b.Here = here && given == b.Text
		ev.Body = b
	}
	return a.Events.Emit(ctx, ev)
}

// atRest asks the questions of a run that is not at work. The error is [ask.ErrElsewhere] if another place answers first.
func (a *attached) atRest(ctx context.Context) (map[string]string, error) {
	info, err := a.store.Info(ctx, a.run)
	if err != nil || info.Status == run.Canceled { // which closed its questions
		return nil, err
	}
	pending, err := a.store.Pending(ctx, a.run)
	answers := make(map[string]string)
	for _, p := range pending {
		waiting, stop := run.WhileOpen(ctx, a.store, a.run, p.ID)
		answer, err := a.Asker.Ask(waiting, p.Question())
		elsewhere := waiting.Err() != nil && ctx.Err() == nil
		stop()
		switch {
		case elsewhere && len(answers) > 0:
			return nil, cmp.Or(run.AnswerOnRecord(ctx, a.store, a.run, answers, run.Reply{Via: a.Via}), ask.ErrElsewhere)
		case elsewhere:
			return nil, ask.ErrElsewhere
		case errors.Is(err, ask.ErrUnavailable):
			return nil, nil
		case err != nil:
			return nil, err
		}
		answers[p.ID] = answer
	}
	return answers, err
}

// end withdraws all questions.
func (a *attached) end() {
	for id, withdraw := range a.open {
		withdraw(ask.ErrElsewhere)
		delete(a.open, id)
	}
	a.working.Wait()
}
