package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
)

// Resumption says which run to resume, and how.
type Resumption struct {
	Continuation                   // an empty ID means the newest unfinished run of the working directory
	Answers      map[string]string // to pending questions, by id
	Lists        []string          // ids of Answers that are lists, see [NotLists]
	Answer       *string           // to the only pending question, nil for none
	Typed        []string          // likewise, as users type them: see [TypedAnswers]
	Answered     []string          // questions whose answers came to be on record while the run was at work
	Uncanceled   bool              // a canceled run does not resume: no user asks for it anew
	Canceled     bool              // the run is canceled: it resumes only to undo what it did
	Via          event.Via         // how the answers came; empty means ViaCommand
	By           string            // the subject who gave them; empty on the command line

	// Wait is called before the run waits for a provider that asked to come back later, or for what its nodes wait for. what says
	// that; until is zero for a signal without a time. Nil does not wait: the error is then that of a run that was suspended.
	Wait func(what string, until time.Time)
}

// Resume resumes a run that did not end. Everything that the run needs is checked before an answer
// is recorded, since that uses up the answer. If ctx ends while the
// run waits for a provider, the error is that of ctx and says how to resume it.
func (s *Service) Resume(ctx context.Context, r Resumption) (Outcome, error) {
	for {
		out, err := s.resume(ctx, r)
		at, what, ok := soonest(err)
		if !ok || r.Wait == nil && !Due(err) {
			return out, err
		}
		if r.Wait != nil {
			r.Wait(what, at)
		}
		if ended := s.await(ctx, cmp.Or(out.Run, r.ID), err); ended != nil {
			return out, fault.Wrap(fault.CodeOf(ended), ended, "%s", what).WithHint("%s", fault.HintOf(err))
		}
		r.ID = cmp.Or(out.Run, r.ID)                                  // another run may be the newest one now
		r.Answer, r.Answers, r.Typed, r.Answered = nil, nil, nil, nil // they have been given
		r.Set = nil
		r.Uncanceled = true // a cancel meanwhile is the later decision
	}
}

// answers reports whether there are answers for the run.
func (r Resumption) answers() bool {
	return r.Answer != nil || len(r.Answers) > 0 || len(r.Typed) > 0
}

// TakenError says that answers are on record of a run that another process continues, or has ended with them.
type TakenError struct {
	ID    string
	Owner string // the process that holds the run, and its host; empty if the run has ended
}

func (e *TakenError) Error() string {
	if e.Owner == "" {
		return fmt.Sprintf("the answer is recorded; run %s has ended in another process", e.ID)
	}
	return fmt.Sprintf("the answer is recorded; run %s continues in %s", e.ID, e.Owner)
}

// waitReleased returns what describes a run that comes to rest once no process holds it any more, or after some seconds.
func waitReleased(ctx context.Context, store Store, info Info) (Info, error) {
	for range 250 {
		if err := retry.Sleep(ctx, 20*time.Millisecond); err != nil {
			return info, err
		}
		var err error
		if info, err = store.Info(ctx, info.ID); err != nil || info.Held == nil || info.Status == Running {
			return info, err
		}
	}
	return info, nil
}

// resume resumes once.
func (s *Service) resume(ctx context.Context, r Resumption) (Outcome, error) {
	store, err := s.openWhole()
	if err != nil {
		return Outcome{}, err
	}
	defer func() { store.Close() }()
	info, err := s.findRun(ctx, store, r)
	if err != nil {
		return Outcome{}, err
	}
	if !info.Status.Resumable() {
		if _, err := giveAnswers(ctx, store, info.ID, r); err != nil { // it says who answered before
			return Outcome{}, err
		}
		return Outcome{}, refusal(&EndedError{ID: info.ID, Status: info.Status}, info.Kind)
	}
	ctx = auth.WithOwner(ctx, info.Owner)
	if info.Held != nil && info.Status != Running && r.answers() {
		if info, err = waitReleased(ctx, store, info); err != nil {
			return Outcome{}, err
		}
	}
	if info.Held != nil && r.answers() {
		if _, err := giveAnswers(ctx, store, info.ID, r); err != nil {
			return Outcome{}, err
		}
		held := info.Held
		if info, err = store.Info(ctx, info.ID); err != nil || info.Held != nil || info.Status != Suspended {
			return Outcome{Run: info.ID}, cmp.Or[error](err, &TakenError{info.ID, held.Owner})
		}
		r.Answer, r.Answers, r.Typed = nil, nil, nil // it came to rest meanwhile, perhaps without having seen them
	}
	if info.Gap != nil && !r.Force {
		return Outcome{}, refusal(&GapError{ID: info.ID, Gap: *info.Gap}, info.Kind)
	}
	var unless []Status
	if r.Uncanceled || info.Status != Canceled { // a cancel from now on is the later decision
		unless = []Status{Canceled}
	}
	if slices.Contains(unless, info.Status) {
		return Outcome{}, refusal(&EndedError{ID: info.ID, Status: info.Status}, info.Kind)
	}
	last, err := store.Checkpoint(ctx, info.ID, -1)
	if err != nil {
		return Outcome{}, err
	}
	if last.wasUndone(info.Status) {
		return Outcome{}, UndoneRefusal(info.ID, last)
	}
	r.Command = "loki --resume " + info.ID
	if t := info.Terms; t != nil && s.Enter != nil { // at a terminal the user says it anew
		r.Yes, r.NoStream = r.Yes || t.Yes, r.NoStream || t.NoStream
	}
	job, err := s.JobOf(ctx, info, last, r.Continuation)
	if err != nil {
		return Outcome{}, err
	}
	defer job.release()
	if err := acceptGap(ctx, store, info, job.Events); err != nil {
		return Outcome{}, err
	}
	if len(r.Set) > 0 {
		if err := cmp.Or(job.fits(withSet(graph.State{}, r.Set)), mayBeSet(ctx, store, info.ID, last, nil)); err != nil {
			return Outcome{}, err
		}
	}
	answered, err := giveAnswers(ctx, store, info.ID, r)
	if err != nil {
		return Outcome{}, err
	}
	silent, err := Unheard(ctx, store, info.ID)
	if err != nil {
		return Outcome{}, err
	}
	answered = slices.Concat(answered, r.Answered, silent)
	if job.Durability == graph.DurabilityPower {
		store.Close()
		if store, err = s.Open(job.Durability); err != nil {
			return Outcome{}, err
		}
	}
	var journal Journal
	var found Recovery
	err = patiently(ctx, job.Events, func() (err error) {
		journal, found, err = store.Open(ctx, info.ID, unless...)
		return err
	})
	if r.answers() { // another process may have seen the answers
		if held, ok := errors.AsType[*LeaseError](err); ok {
			return Outcome{Run: info.ID}, &TakenError{info.ID, held.Owner}
		}
		if ended, ok := errors.AsType[*EndedError](err); ok && ended.Status == Done {
			return Outcome{Run: info.ID}, &TakenError{ID: info.ID}
		}
	}
	if err != nil {
		return Outcome{}, refusal(err, info.Kind)
	}
	if err := set(ctx, store, journal, &found, job.Events, r.Set); err != nil {
		return Outcome{}, errors.Join(err, journal.Close())
	}
	if err := raise(ctx, journal, &found.Info, r.Budget); err != nil {
		return Outcome{}, errors.Join(refusal(err, info.Kind), journal.Close())
	}
	ctx, wait, leave := s.enter(WithInbox(ctx, NewInbox(store, info.ID)), journal, found.Info)
	defer leave()
	defer journal.Close()
	job.Info.Origin, job.Info.Admission = found.Info.Origin, found.Info.Admission
	if !r.Canceled { // what it did is undone at once
		gated, through, end := s.guard(ctx, store, info.ID, job, wait, info.Status != Running)
		ctx, wait = gated, through
		defer end()
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrInterrupted) {
		return Outcome{Run: info.ID}, cause
	}
	if job.Info.Terms = found.Info.Terms; s.Enter == nil {
		job.Info.Terms = job.Info.Terms.atTerminal()
	}
	if s.Enter != nil && found.Info.Takeovers > MaxTakeovers {
		return s.giveUp(ctx, job, journal, found)
	}
	secrets, err := SecretsOf(ctx, store, found.Info)
	if err != nil {
		return Outcome{}, err
	}
	began := info.Events > 0 // otherwise it has waited for its turn until now
	return s.execute(ctx, job, Point{Recovery: found, Resumed: began, Set: r.Set, Canceled: r.Canceled, secrets: secrets}, journal, answered, wait)
}

// raise records bounds in place of the ones that a run was begun with.
func raise(ctx context.Context, j Journal, info *Info, bounds graph.Budget) error {
	if bounds == (graph.Budget{}) {
		return nil
	}
	terms := Terms{Budget: bounds}
	if info.Terms != nil {
		terms = *info.Terms
		terms.Budget.USD = cmp.Or(bounds.USD, terms.Budget.USD)
		terms.Budget.Tokens = cmp.Or(bounds.Tokens, terms.Budget.Tokens)
		terms.Budget.Duration = cmp.Or(bounds.Duration, terms.Budget.Duration)
	}
	info.Terms = &terms
	return j.SetTerms(ctx, *info)
}

// MaxTakeovers is how many times in a row a run of a server is taken over from a process that died at work on it, without anything new
// on record.
const MaxTakeovers = 5

// giveUp ends a run as failed that was taken over more often than that: its work may be what ends the processes.
func (s *Service) giveUp(ctx context.Context, job Job, journal Journal, found Recovery) (Outcome, error) {
	job.Make = func(context.Context, Point) (Work, func() error, error) {
		return deadly{found.Info}, func() error { return nil }, nil
	}
	return s.execute(ctx, job, Point{Recovery: found, Resumed: true}, journal, nil, nil)
}

// deadly is the work of a run at which process after process died. It is not done.
type deadly struct{ Info }

// Started implements Work.
func (d deadly) Started() event.Started { return event.Started{Graph: d.Graph} }

// Do implements Work.
func (d deadly) Do(context.Context, *Frame) (Outcome, error) {
	err := fault.New(fault.Failure, "%d processes in a row died at work on the run, with nothing new on record, so it may be what ends them: no server resumes it by itself", d.Takeovers).
		WithHint("see where it stands: loki --run %s", d.ID)
	return Outcome{Steps: d.Steps, Usage: d.Usage, Failures: d.Failures}, err
}

// openWhole opens the store to resume a run of it.
func (s *Service) openWhole() (Store, error) {
	if s.Unrecorded {
		// What was really answered is not mixed with what was not.
		return nil, fault.New(fault.Usage, "a recorded run cannot resume as a dry run").
			WithHint("leave out --dry-run, and set dry_run: false in config.yaml")
	}
	return s.Open(graph.DurabilityProcess)
}

// findRun returns the run to resume: the one that the id means, or else the newest unfinished run
// that was started in this directory or beside it, see [Service.Beside], and waits for an answer if one is given. While a newer one is
// being run, the user has to say which is meant.
func (s *Service) findRun(ctx context.Context, store Store, r Resumption) (Info, error) {
	if r.ID != "" {
		return store.Info(ctx, r.ID)
	}
	dir, err := os.Getwd()
	if err != nil {
		return Info{}, err
	}
	dirs := []string{dir}
	if s.Beside != nil {
		dirs = append(dirs, s.Beside(dir)...)
	}
	var runs []Info
	for _, from := range dirs {
		there, err := store.Runs(ctx, Query{Dir: from, Unfinished: true})
		if err != nil {
			return Info{}, err
		}
		runs = append(runs, there...)
	}
	slices.SortStableFunc(runs, func(a, b Info) int { return b.Started.Compare(a.Started) })
	var active, idle *Info // the newest of each
	var canceled string    // id of the newest that was canceled at a question
	for _, info := range runs {
		if info.Damaged || info.Undone.over(info.Status) { // any other can resume
			continue
		}
		if info.Active && r.answers() {
			if h, err := store.History(ctx, info.ID); err != nil || len(h.Pending) > 0 {
				return h.Info, err
			}
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
		if r.answers() {
			h, err := store.History(ctx, info.ID)
			if err != nil {
				return Info{}, err
			}
			if info.Status == Canceled && len(h.Pending) > 0 && canceled == "" {
				canceled = info.ID // the user names it
			}
			if len(h.Pending) == 0 || info.Status == Canceled {
				continue
			}
		}
		if active != nil {
			return Info{}, fault.New(fault.Failure, "run %s, which was started later in %s, is being run by another process", active.ID, active.Dir).
				WithHint("wait until it ends there, or resume the one before it: loki --resume %s", info.ID)
		}
		h, err := store.History(ctx, info.ID) // a list has the beginnings of texts only
		return h.Info, err
	}
	switch {
	case active != nil:
		return Info{}, leaseRefusal(active.Held)
	case canceled != "":
		return Info{}, fault.New(fault.Usage, "run %s was canceled at its question, and no other run that was started in %s waits for an answer", canceled, dir).
			WithHint("answer it by its id: loki --resume %s --answer TEXT", canceled)
	case idle != nil:
		return Info{}, fault.New(fault.Usage, "no run that was started in %s waits for an answer", dir).
			WithHint("resume the newest unfinished one: loki --resume %s", idle.ID)
	}
	return Info{}, fault.New(fault.NotFound, "no unfinished run was started in %s", dir).
		WithHint("see all runs: loki --runs; resume any of them: loki --resume ID")
}
