package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"loki/internal/ask"
	"loki/internal/chat"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/run"
	"loki/internal/value"
)

// Continuation says how a recorded run is gone on with, as itself or as a fork.
type Continuation struct {
	ID       string // or a beginning of it
	Force    bool   // although the agent has changed
	Here     bool   // in the present directory instead of the one the run was started in
	Model    string // instead of the one the user asked for then; "" keeps that
	NoStream bool
	Yes      bool // whatever tools would ask is answered with yes
	Emitter  event.Emitter
	Asker    ask.Asker
}

// ResumeRun is what it takes to go on with a run.
type ResumeRun struct {
	Continuation                   // an empty ID means the newest unfinished run of this directory
	Answers      map[string]string // to pending questions, by id
	Answer       *string           // to the only pending question, nil for none
}

// Resume goes on with a run that did not end. Whatever the run needs is looked at
// before an answer is recorded, since an answer is used up by that.
func (a *App) Resume(ctx context.Context, r ResumeRun) (run.Outcome, error) {
	if a.dryRun {
		return run.Outcome{}, errDryResume()
	}
	store, err := a.wholeRuns(graph.DurabilityProcess)
	if err != nil {
		return run.Outcome{}, err
	}
	defer func() { store.Close() }()
	info, err := findRun(ctx, store, r)
	if err != nil {
		return run.Outcome{}, err
	}
	if !info.Status.Resumable() {
		return run.Outcome{}, resumeError(&run.EndedError{ID: info.ID, Status: info.Status})
	}
	if info.Gap != nil && !r.Force {
		return run.Outcome{}, acceptGap(ctx, store, info, false, r.Emitter)
	}
	last, err := store.Checkpoint(ctx, info.ID, -1)
	if err != nil {
		return run.Outcome{}, err
	}
	resumed, err := a.recordedRun(ctx, "loki --resume "+info.ID, info, last, r.Continuation)
	if err != nil {
		return run.Outcome{}, err
	}
	if err := acceptGap(ctx, store, info, r.Force, r.Emitter); err != nil {
		return run.Outcome{}, err
	}
	if resumed.answered, err = giveAnswers(ctx, store, info.ID, resumed.Graph, r); err != nil {
		return run.Outcome{}, err
	}
	if d := resumed.Graph.Settings.Durability; d == graph.DurabilityPower {
		store.Close()
		if store, err = a.wholeRuns(d); err != nil {
			return run.Outcome{}, err
		}
	}
	var journal run.Journal
	var found run.Recovery
	err = patiently(ctx, info.Agent, r.Emitter, func() (err error) {
		journal, found, err = store.Open(ctx, info.ID)
		return err
	})
	if err != nil {
		return run.Outcome{}, resumeError(err)
	}
	defer journal.Close()
	return a.execute(ctx, resumed, graph.NewPlan(resumed.Graph), found, journal, true)
}

// errDryResume refuses to mix what was really answered with what was not.
func errDryResume() error {
	return fault.New(fault.Usage, "a recorded run cannot go on as a dry run").
		WithHint("leave out --dry-run, and set dry_run: false in config.yaml")
}

func resumeError(err error) error {
	if lease, ok := errors.AsType[*run.LeaseError](err); ok {
		return leaseError(lease)
	}
	if gap, ok := errors.AsType[*run.GapError](err); ok {
		return gapError(gap)
	}
	if ended, ok := errors.AsType[*run.EndedError](err); ok {
		return fault.Wrap(fault.Usage, ended, "").
			WithHint("its output: loki --run %s; its steps again as a new run: loki --fork %s@STEP", ended.ID, ended.ID)
	}
	return err
}

// findRun returns the run to go on with: the one that the id means, or else the newest
// unfinished run that was started in this directory, of those that wait for an answer
// if one is given. While a newer one is being run, the user has to say which is meant.
func findRun(ctx context.Context, store run.Store, r ResumeRun) (run.Info, error) {
	if r.ID != "" {
		h, err := store.History(ctx, r.ID)
		return h.Info, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return run.Info{}, err
	}
	runs, err := store.Runs(ctx, run.Query{Dir: dir, Unfinished: true})
	if err != nil {
		return run.Info{}, err
	}
	answers := r.Answer != nil || len(r.Answers) > 0
	var active, idle *run.Info // the newest of each
	for _, info := range runs {
		if info.Damaged { // any other can go on
			continue
		}
		if info.Active {
			if active == nil {
				active = &info
			}
			continue
		}
		if idle == nil {
			idle = &info
		}
		if answers {
			h, err := store.History(ctx, info.ID)
			if err != nil {
				return run.Info{}, err
			}
			if len(h.Pending) == 0 {
				continue
			}
		}
		if active != nil {
			return run.Info{}, fault.New(fault.Failure, "run %s, which was started later in %s, is being run by another process", active.ID, dir).
				WithHint("wait until it ends there, or go on with the one before it: loki --resume %s", info.ID)
		}
		h, err := store.History(ctx, info.ID) // a list has the beginnings of texts only
		return h.Info, err
	}
	switch {
	case active != nil:
		return run.Info{}, leaseError(active.Held)
	case idle != nil:
		return run.Info{}, fault.New(fault.Usage, "no run that was started in %s waits for an answer", dir).
			WithHint("go on with the newest unfinished one: loki --resume %s", idle.ID)
	}
	return run.Info{}, fault.New(fault.NotFound, "no unfinished run was started in %s", dir).
		WithHint("see all runs: loki --runs; resume any of them: loki --resume ID")
}

// giveAnswers records the answers the user gave on the command line, and returns the
// questions they are to.
func giveAnswers(ctx context.Context, store run.Store, id string, g *graph.Graph, r ResumeRun) (questions []string, err error) {
	if r.Answer == nil && len(r.Answers) == 0 {
		return nil, nil
	}
	h, err := store.History(ctx, id)
	if err != nil {
		return nil, err
	}
	var waiting []string
	for _, p := range h.Pending {
		waiting = append(waiting, p.ID)
	}
	answers := r.Answers
	switch {
	case len(waiting) == 0:
		return nil, noQuestion(h.Info)
	case r.Answer != nil && len(waiting) > 1:
		return nil, fault.New(fault.Usage, "%d questions of run %s wait: %s", len(waiting), id, strings.Join(waiting, ", ")).
			WithHint("answer them with --answers FILE, a YAML file with a line for each: %s: ANSWER", waiting[0])
	case r.Answer != nil:
		answers = map[string]string{waiting[0]: *r.Answer}
	}
	for question := range answers {
		if !slices.Contains(waiting, question) {
			return nil, fault.New(fault.Usage, "run %s has no waiting question %q", id, question).
				WithHint("waiting: %s", strings.Join(waiting, ", "))
		}
	}
	// A recorded answer cannot be changed, so all are looked at before one is recorded.
	accepted := make(map[string]string, len(answers))
	for _, p := range h.Pending {
		text, ok := answers[p.ID]
		if !ok {
			continue
		}
		if err := inTime(h.Info.ID, p); err != nil {
			return nil, err
		}
		if accepted[p.ID], err = accept(g.Node(p.Node), p, text); err != nil {
			return nil, fault.Wrap(fault.Usage, err, "the answer to %s cannot be taken", p.ID)
		}
	}
	for _, p := range h.Pending {
		if text, ok := accepted[p.ID]; ok {
			err := patiently(ctx, h.Info.Agent, r.Emitter, func() error { return store.Answer(ctx, id, p.ID, text) })
			if errors.Is(err, run.ErrAnswered) {
				return nil, noQuestion(h.Info)
			} else if err != nil {
				return nil, resumeError(err)
			}
			questions = append(questions, p.ID)
		}
	}
	return questions, nil
}

// noQuestion is the failure of an answer that came too late, or to a run that asked
// nothing.
func noQuestion(i run.Info) error {
	err := fault.New(fault.Usage, "run %s waits for no answer: its questions are answered already, or it asked none", i.ID)
	if i.Active {
		return err.WithHint("another process is running it; see how far it has come: loki --run %s", i.ID)
	}
	return err.WithHint("go on with it: loki --resume %s", i.ID)
}

// inTime refuses the answer to a question whose time is over.
func inTime(id string, p run.Pending) error {
	if p.Deadline.IsZero() || time.Now().Before(p.Deadline) {
		return nil
	}
	err := fault.New(fault.Usage, "the answer to %s comes too late: its time was over at %s", p.ID, p.Deadline.Local().Format(time.DateTime))
	if p.Default == nil {
		return err.WithHint("the question has no default, so the run ends without an answer: loki --resume %s", id)
	}
	return err.WithHint("go on with the default, %q: loki --resume %s", *p.Default, id)
}

// accept returns what a text means as the answer to a question of node n, which may
// be gone.
func accept(n *graph.Node, p run.Pending, text string) (string, error) {
	q := ask.Question{Kind: ask.Text, Options: p.Options}
	if len(p.Options) > 0 {
		q.Kind = ask.Choice
	}
	if p.Default != nil {
		q.Default, q.HasDefault = *p.Default, true
	}
	answer, err := q.Match(text)
	if err != nil {
		return "", err
	}
	switch {
	case n != nil && n.Approval != nil:
		return answer, nil // any answer is one: there is on_other
	case len(p.Options) > 0 && !slices.Contains(p.Options, answer):
		return "", fmt.Errorf("it has to be one of %s", strings.Join(p.Options, ", "))
	case n == nil || n.Input == nil || n.Input.Validation == "" || text == "" && q.HasDefault:
		return answer, nil
	}
	valid, err := graph.ParsePredicate(n.Input.Validation)
	if err == nil && !valid.Holds(answer) {
		err = fmt.Errorf("it has to satisfy %s", n.Input.Validation)
	}
	return answer, err
}

// ForkRun is what it takes to begin a new run from an old one's step.
type ForkRun struct {
	Continuation
	Step int            // of the old run, 0 for its start, -1 for the last committed
	Set  []value.Member // state keys to change
}

// Fork begins a new run with the state and the frontier that an old one had after a
// super-step. The old run is left as it is.
func (a *App) Fork(ctx context.Context, f ForkRun) (run.Outcome, error) {
	if a.dryRun {
		return run.Outcome{}, errDryResume()
	}
	info, start, err := a.forkPoint(ctx, f.ID, f.Step)
	if err != nil {
		return run.Outcome{}, err
	}
	if start.Done {
		return run.Outcome{}, fault.New(fault.Usage, "run %s ended with step %d, so there is nothing to run after it", info.ID, start.Step).
			WithHint("fork an earlier step: loki --fork %s@%d", info.ID, max(0, start.Step-1))
	}
	origin := fmt.Sprintf("%s@%d", info.ID, start.Step)
	r, err := a.recordedRun(ctx, "loki --fork "+origin, info, start, f.Continuation)
	if err != nil {
		return run.Outcome{}, err
	}
	start.State = start.State.With(lastOfEach(f.Set)...)
	start.Usage, start.Failures = chat.Usage{}, 0
	return a.start(ctx, r, graph.NewPlan(r.Graph), start, origin)
}

// lastOfEach leaves the last of the members with the same name.
func lastOfEach(members []value.Member) []value.Member {
	var kept []value.Member
	for name, v := range value.ObjectOf(members...).All() {
		kept = append(kept, value.Member{Name: name, Value: v})
	}
	return kept
}

func (a *App) forkPoint(ctx context.Context, id string, step int) (run.Info, run.Checkpoint, error) {
	store, err := a.wholeRuns(graph.DurabilityProcess)
	if err != nil {
		return run.Info{}, run.Checkpoint{}, err
	}
	defer store.Close()
	h, err := store.History(ctx, id)
	if err != nil {
		return run.Info{}, run.Checkpoint{}, err
	}
	c, err := store.Checkpoint(ctx, h.Info.ID, step)
	return h.Info, c, err
}
