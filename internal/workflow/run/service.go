package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/engine"
	"loki/internal/llm/engine/governor"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/tool"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
)

// Job is a piece of work that can be run, and what its record begins with. It is filled in
// once, by who knows the agent or the conversation, and handed to a [Service].
type Job struct {
	Info       Info             // of a new run; the store fills in the rest
	Graph      *graph.Graph     // nil unless Info.Kind is GraphRun
	Start      Checkpoint       // of a new run
	Durability graph.Durability // of the record; off and "" keep none
	Limit      graph.Budget     // of tokens and money
	LimitIn    string           // where the limit is set, see [Budget.SetIn]
	Events     event.Scope      // of the request

	// Stops are where the run of a graph is suspended. The record of it does not have them.
	Stops Breakpoints

	// Keep says that the effects of a run that fails or is canceled are not undone.
	Keep bool

	// Diff says in what a definition on record differs from the one of today, one line for each
	// difference. Nil compares the graphs.
	Diff func(recorded []byte) ([]string, error)

	// Make returns the work, as it begins or resumes at a point. Done releases what the work
	// holds; it is called once, before the run is reported as over, and what it returns is a
	// warning. An error has left nothing to release.
	Make func(ctx context.Context, p Point) (w Work, done func() error, err error)

	// Release gives back what a recalled job has to itself until Make takes it over, such as a session. It
	// may be called several times, also after Make; nil for nothing.
	Release func()
}

// BudgetAt returns the budget with which a job, of the run that has an id, begins or resumes at a point; nil if nothing bounds it. The id is
// "" for a run that is not on record.
func (j *Job) BudgetAt(p Point, id string) *Budget {
	var asked graph.Budget
	if t := j.Info.Terms; t != nil {
		asked = j.tighten(t.Budget)
	}
	b := NewBudget(j.Limit, p.Last.Usage).SetIn(j.LimitIn).askedFor(asked, askedIn(asked, id))
	b.Expect(p.Info.Usage.Sub(p.Last.Usage))
	return b
}

// tighten lowers the limit of a job to bounds that a client asked for, where these are lower, and returns those.
func (j *Job) tighten(asked graph.Budget) (lowered graph.Budget) {
	lowered.USD = lower(&j.Limit.USD, asked.USD)
	lowered.Tokens = lower(&j.Limit.Tokens, asked.Tokens)
	lowered.Duration = lower(&j.Limit.Duration, asked.Duration)
	return lowered
}

// lower lowers a bound to another one if that is lower, and returns it then; 0 is no bound.
func lower[T int | float64 | time.Duration](bound *T, to T) (lowered T) {
	if to == 0 || *bound > 0 && *bound <= to {
		return 0
	}
	*bound = to
	return to
}

// release gives back what a job that is not made, or is over, still holds.
func (j Job) release() {
	if j.Release != nil {
		j.Release()
	}
}

// CheckStart returns an error if what a graph begins with does not fit the schema of its state.
func (j Job) CheckStart() error { return j.fits(j.Start.State) }

// fits returns an error if a state of a graph does not fit its schema.
func (j Job) fits(state graph.State) error {
	if j.Graph == nil {
		return nil
	}
	err := j.Graph.Schema.CheckAll(state)
	misfit, ok := errors.AsType[*graph.StateError](err)
	if !ok {
		return err
	}
	return fault.New(fault.Usage, "the state does not fit its schema: key %q: %s", misfit.Key, misfit.What).
		WithHint("give a value that fits what state in %s says of %s", graph.FileName, misfit.Key)
}

// Point is where a job begins or resumes.
type Point struct {
	Recovery                // of a new run only Last, which is the job's Start
	Resumed  bool           // the run resumes after an interruption
	Budget   *Budget        // nil bounds nothing
	Set      []value.Member // what the user has set in the state that the run resumes with
	Stops    Breakpoints
	Past     bool // the run was suspended here, or failed: it does not stop before its next super-step

	Keep, Canceled bool // see [Graph]

	secrets *Secrets // of the state, as the record has them
}

// Service has the verbs of runs that all faces share. It may be used from several
// goroutines.
type Service struct {
	// Open opens the store of runs, whose records survive what d says. The service closes it.
	Open func(d graph.Durability) (Store, error)

	// Recall returns the job of a run on record as it would be today, with which the run will resume
	// from a checkpoint. All that it needs must be there. The service compares it with
	// the record.
	Recall func(ctx context.Context, info Info, from Checkpoint, c Continuation) (Job, error)

	// Always says that each run has a journal, whatever its durability is. That of a run without one may
	// be in memory. Volatile says that all are.
	Always, Volatile bool

	// Recorded says that a run which cannot be recorded does not begin.
	Recorded bool

	// Enter makes the service that of a server. It is called with the journal of a run that is on record and is about to begin or resume, and what the run is. The
	// run has the context it returns, calls wait, which may be nil, before its work begins, and
	// leave once it is over and its lease is given back. If the context has ended by [ErrInterrupted], the lease
	// is given back at once, and nothing is written. Nil lets runs begin at once. Runs without a
	// journal do not enter.
	Enter func(ctx context.Context, j Journal, info Info) (entered context.Context, wait func(context.Context) error, leave func())

	// Spending bounds the runs together. Nil bounds nothing.
	Spending Spending

	// Live lets other processes watch a run that is on record while it is at work, until end is called: the emitter, nil for none,
	// gets its events, with their numbers. Nil: no one watches.
	Live func(id string) (watchers event.Emitter, end func())

	// Beside returns other directories, whose runs count as started in the working directory when the newest one is looked for: those of its
	// worktrees. Nil returns none.
	Beside func(dir string) []string

	// Unrecorded says that nothing is recorded and no recorded run is resumed, as in a dry run.
	Unrecorded bool
}

// Continuation says how a recorded run resumes, as itself or as a fork.
type Continuation struct {
	ID       string // or a beginning of it
	Force    bool   // although the agent has changed, or a part of the run is not on record
	Here     bool   // in the present directory instead of the one the run was started in
	Model    string // instead of the one the user asked for then; "" keeps that
	NoStream bool
	Yes      bool           // whatever tools would ask is answered with yes
	Budget   graph.Budget   // its bounds replace the ones that the run was begun with, and stay; they hold beside the agent's
	Set      []value.Member // state keys of a graph to change before
	Break    []string       // where the run of a graph is suspended, see [ParseBreakpoints]
	Steps    int            // it is suspended after so many super-steps; 0 for no bound
	Keep     bool           // its effects are not undone if it fails or is canceled
	Events   event.Scope
	Asker    ask.Asker

	// Command is what the user asked for, for hints. The service fills it in.
	Command string
}

// Start begins a run. One that cannot be recorded runs all the same, and the user is
// warned. The error is a [*fault.Error] that says how to resume the run.
func (s *Service) Start(ctx context.Context, job Job) (Outcome, error) {
	if err := cmp.Or(s.mayStop(job), job.CheckStart()); err != nil {
		job.release()
		return Outcome{}, err
	}
	if s.Spending != nil {
		if err := s.Spending.Check(ctx, withOwner(ctx, job.Info)); err != nil {
			job.release()
			return Outcome{}, err
		}
	}
	if job.Info.Owner != nil {
		ctx = auth.WithOwner(ctx, job.Info.Owner)
	}
	if len(job.Info.Gates) > 0 && (job.Durability == graph.DurabilityOff || job.Durability == "") {
		job.Durability = graph.DurabilityProcess // others have to know of it
	}
	if s.Unrecorded || !s.Always && (job.Durability == graph.DurabilityOff || job.Durability == "") {
		return s.execute(ctx, job, Point{Recovery: Recovery{Last: job.Start}}, nil, nil, nil)
	}
	store, journal, err := s.create(ctx, job)
	if err != nil && (s.Recorded || job.Info.Parent != "" || len(job.Info.Claims)+len(job.Info.Gates) > 0 || !job.Stops.none() || ctx.Err() != nil) {
		return Outcome{}, err
	}
	if err != nil {
		err = job.Events.Emit(ctx, event.Warning{Text: withHint(fmt.Sprintf("the run is not recorded and cannot be resumed: %v", err), err)})
	}
	if err != nil {
		return Outcome{}, err
	}
	if journal == nil {
		return s.execute(ctx, job, Point{Recovery: Recovery{Last: job.Start}}, nil, nil, nil)
	}
	ctx, wait, leave := s.enter(WithInbox(ctx, NewInbox(store, journal.ID())), journal, job.Info)
	defer leave()
	defer closeRecord(journal, store)
	ctx, wait, end := s.guard(ctx, store, journal.ID(), job, wait, false)
	defer end()
	if cause := context.Cause(ctx); errors.Is(cause, ErrInterrupted) {
		return Outcome{Run: journal.ID()}, cause
	}
	p := Point{Recovery: Recovery{Last: job.Start}}
	if job.Info.Parent != "" {
		of := job.Info
		of.ID = journal.ID()
		if p.secrets, err = SecretsOf(ctx, store, of); err != nil {
			return Outcome{}, err
		}
	}
	return s.execute(ctx, job, p, journal, nil, wait)
}

// withOwner returns what describes a run, with whose work it is also if that is not on record.
func withOwner(ctx context.Context, i Info) Info {
	i.Owner = cmp.Or(i.Owner, auth.OwnerOf(ctx))
	return i
}

// enter calls s.Enter, if there is one.
func (s *Service) enter(ctx context.Context, j Journal, info Info) (entered context.Context, wait func(context.Context) error, leave func()) {
	if s.Enter == nil {
		return ctx, nil, func() {}
	}
	return s.Enter(ctx, j, info)
}

// create begins the record of a run.
func (s *Service) create(ctx context.Context, job Job) (store Store, journal Journal, err error) {
	if store, err = s.Open(job.Durability); err != nil {
		return nil, nil, err
	}
	if job.Info.Priority == "" && governor.PriorityOf(ctx) == governor.Low {
		job.Info.Priority = gate.Low
	}
	if job.Info.Served = s.Enter != nil; !job.Info.Served {
		job.Info.Terms = job.Info.Terms.atTerminal()
	}
	err = patiently(ctx, job.Events, func() (err error) {
		journal, err = createGated(ctx, store, job.Info, job.Start)
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return store, journal, nil
}

// closeRecord gives the lease of a run back. What fails here was reported before, or costs
// no more than the time until the lease expires.
func closeRecord(j Journal, s Store) {
	_ = j.Close()
	_ = s.Close()
}

// execute drives a job. A nil journal records nothing. Answered are the questions that were
// answered to resume it. The work begins when wait, which may be nil, returns.
func (s *Service) execute(ctx context.Context, job Job, p Point, journal Journal, answered []string, wait func(context.Context) error) (Outcome, error) {
	id := ""
	if journal != nil {
		id = journal.ID()
	}
	ctx = job.Info.withPriority(ctx)
	if p.Budget = job.BudgetAt(p, id); s.Spending != nil {
		p.Budget = p.Budget.Under(&Budget{elsewhere: s.Spending.Reserver(withOwner(ctx, job.Info))})
	}
	p.Stops, p.Past, p.Keep = job.Stops, p.Resumed && p.Info.Status != Running, job.Keep
	if t := job.Info.Terms; t != nil {
		p.Keep, ctx = job.Keep || t.NoCompensate, tool.AtDepth(ctx, t.Depth)
	}
	work, done, err := job.Make(ctx, p)
	if err != nil {
		return Outcome{}, err
	}
	events := job.Events
	if journal == nil && job.Info.Kind != ChatRun {
		events = events.With(func(src *event.Source) { src.Run = NewID() })
	}
	if journal != nil && s.Live != nil {
		watchers, end := s.Live(id)
		defer end()
		events = events.Through(func(next event.Emitter) event.Emitter { return event.Tee(next, watchers) })
	}
	out, err := Run(ctx, Options{
		Work: work, Done: done, Events: events, Resumed: p.Resumed, Origin: job.Info.Origin, Committed: p.Last.Done, Journal: journal, Answered: answered, Budget: p.Budget, Wait: wait, Secrets: p.secrets,
	})
	if err == nil {
		return out, nil
	}
	if s.Volatile || job.Durability == graph.DurabilityOff || job.Durability == "" {
		out.Recorded = false // for long enough to resume
	}
	what := ""
	code := fault.CodeOf(err)
	if job.Info.Kind == GraphRun && out.Unhandled > 0 && isFinal(err) {
		what = fmt.Sprintf("agent %s completed with failures", job.Info.Agent)
	} else if job.Info.Kind == GraphRun && code != fault.Suspended && code != fault.Canceled {
		what = fmt.Sprintf("graph execution failed for agent %s", job.Info.Agent)
	}
	return out, fault.Wrap(code, err, "%s", what).WithHint("%s", resumeHint(err, out, job.Info.Kind))
}

// askedIn says how bounds that a client asked for are raised. Bounds of time begin anew when the run resumes.
func askedIn(asked graph.Budget, id string) string {
	const place = "the budget of the request"
	if id == "" || asked.Duration > 0 {
		return place
	}
	return place + ": loki --resume " + id + " --budget AMOUNT"
}

// resumeHint is the way on after a run stopped. What its cause says to do comes first.
func resumeHint(err error, out Outcome, kind Kind) string {
	hint := fault.HintOf(err)
	undone, over := errors.AsType[*UndoneError](err)
	switch {
	case errors.Is(err, ErrLeaseLost) || isFinal(err):
		return hint
	case over && !out.Recorded:
		return ""
	case over:
		again := fmt.Sprintf("begin anew: loki --fork %s@%d", out.Run, undone.Step)
		if hint == "" || strings.Contains(hint, "loki --resume") {
			return again
		}
		return hint + "\nthen " + again
	case !out.Recorded && kind != ChatRun && fault.CodeOf(err) == fault.Suspended:
		return "the run is not recorded, so run it again: in a terminal, with the answers piped in, one a line, or with --yes if a tool asks"
	case !out.Recorded || strings.Contains(hint, "loki --resume"):
		return hint
	case hint != "":
		return hint + "\nthen resume it where it stopped: loki --resume " + out.Run
	}
	if _, ok := errors.AsType[*engine.LaterError](err); ok {
		return "wait for it and resume it where it stopped: loki --resume " + out.Run + " --wait"
	}
	return "resume it where it stopped: loki --resume " + out.Run
}

// patiently calls write, again and again as long as the store of runs cannot be written
// in passing.
func patiently(ctx context.Context, events event.Scope, write func() error) error {
	var p Patience
	return p.Do(ctx, func(text string) error { return events.Emit(ctx, event.Warning{Text: text}) }, write)
}

// withHint returns text and, if err has one, its hint.
func withHint(text string, err error) string {
	if hint := fault.HintOf(err); hint != "" {
		text += "; " + hint
	}
	return text
}
