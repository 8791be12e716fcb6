// Package run drives work that is done once, whatever happens: graphs, and the turns of
// conversations.
//
// [Run] is the frame around a piece of [Work]: it emits the events that open and close it,
// keeps its record in a [Journal] if there is one, gives up when the lease of that is lost,
// and reports how it ended. [Graph] is the work of a graph agent: it asks the pure scheduler
// of package graph for the tasks of a super-step, executes them side by side, each on its own
// draft of the state, waits for all of them and hands the results back. What a node does is
// the [Executor]'s business.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// Work is what a run does.
type Work interface {
	// Started returns what the event says that opens the run.
	Started() event.Started
	// Do does the work and returns how it went, as far as it came also on error. When ctx is
	// canceled it returns soon, with nothing left running. It is called once.
	Do(ctx context.Context, f *Frame) (Outcome, error)
}

// Wrapper is work that has other work done, and adds to it.
type Wrapper interface {
	Work
	Inner() Work
}

// Options configure Run.
type Options struct {
	Work   Work
	Done   func() error // releases what the work holds, before the run is reported as over; its error is a warning; nil for nothing
	Events event.Scope  // where events go, and what they say of their source; the zero Scope drops them
	Now    func() time.Time

	// Resumed says that the run resumes after an interruption.
	Resumed bool

	// Origin is what started the run by itself; nil for a run that a user started.
	Origin *Origin

	// Committed says that the result of work that is one task is on record: the run was
	// interrupted before its end was.
	Committed bool

	// Journal keeps the run so that it can be resumed. It is written, but not closed, and
	// events name its run. Nil keeps nothing.
	Journal Journal

	// Answered are the ids of questions that the user answered to resume the run. Their answers are
	// events again.
	Answered []string

	// Wait is called before the work begins, and returns when it may. Its error ends the run. What
	// bounds the time of the run begins to count then. Nil lets it begin at once.
	Wait func(ctx context.Context) error

	// Budget is charged by the work, and asked at the end whether it was kept. Nil bounds
	// nothing.
	Budget *Budget

	// Secrets are those of the state of a graph that are known from the record; nil for none.
	Secrets *Secrets
}

// Outcome is how a run went. It is filled as far as the run came, also on error.
type Outcome struct {
	Output string
	Usage  chat.Usage
	Stop   chat.StopReason // of the last reply of a turn; empty for a graph

	State     graph.State // of a graph
	Steps     int         // super-steps done
	Failures  int         // tolerated node failures
	Unhandled int         // of these, those of which the definition does not say what happens
	Nodes     []NodeStats // in order of first execution
	Undone    *Undone     // of a graph that failed or was canceled and has effects; nil for any other

	// Run fills in the rest.
	Run      string // id of the run; empty if its events have none
	Duration time.Duration
	Recorded bool // the journal has all of it, so that the run can be resumed
}

// Frame is what a run gives to its work.
type Frame struct {
	Events event.Scope // of the run, which are recorded
	Budget *Budget     // nil bounds nothing

	begin   time.Time
	now     func() time.Time
	keeper  *keeper        // nil keeps nothing
	secrets *Secrets       // of the state of a graph; nil for none
	nested  *NestedOptions // of a nested run, nil of any other
	single  bool           // the work is one task, which the keeper keeps
}

// Steps returns the record of work that is one task, and not a graph. If it succeeds its
// result is committed as the run's only super-step.
func (f *Frame) Steps() steps.Steps {
	if f.nested != nil {
		return f.nested.Steps
	}
	f.single = true
	return f.keeper.task(1, "")
}

// Run does a piece of work. When it returns, nothing of the run is running.
//
// With a journal, a run that did not end can be resumed: from the last super-step
// committed, the tasks finished after it, and the steps recorded within the others.
func Run(ctx context.Context, o Options) (Outcome, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Frame{Events: o.Events, Budget: o.Budget, now: o.Now, begin: o.Now()}
	if o.Journal != nil {
		var lose context.CancelCauseFunc
		ctx, lose = context.WithCancelCause(ctx)
		defer lose(nil)
		lease := o.Journal.Lease()
		defer context.AfterFunc(lease, func() { lose(context.Cause(lease)) })()
		f.keeper = &keeper{ctx: ctx, lose: lose, now: o.Now, journal: o.Journal, answered: o.Answered}
		f.Events = o.Events.With(func(s *event.Source) { s.Run = o.Journal.ID() }).Through(f.keeper.record)
	}
	if f.hide(o.Work, o.Secrets); f.keeper != nil {
		f.keeper.events = f.Events
	}
	out, err := f.do(ctx, o)
	return out, f.close(ctx, out, err)
}

// do opens the run and does its work.
func (f *Frame) do(ctx context.Context, o Options) (Outcome, error) {
	var out Outcome
	var err error
	if !f.Events.Silent() && f.within() == "" {
		started := o.Work.Started()
		started.Resumed = o.Resumed
		if o.Origin != nil {
			started.Origin, started.Late = o.Origin.String(), o.Origin.LateSeconds
		}
		if f.nested != nil && f.nested.Opening != nil {
			f.nested.Opening(&started)
		}
		err = f.Events.Emit(ctx, started)
	}
	if err == nil && o.Wait != nil {
		err = o.Wait(ctx)
		f.begin = f.now()
	}
	if err == nil {
		out, err = do(ctx, o.Work, f)
	}
	if err == nil && out.Unhandled > 0 && f.within() == "" {
		err = &FinalError{FailuresError(out.Unhandled, out.State)}
	}
	if f.single && fault.CodeOf(err) == fault.Suspended {
		err = f.keeper.suspension(suspension(err))
	}
	if o.Done != nil {
		if doneErr := o.Done(); doneErr != nil {
			err = cmp.Or(err, f.Events.Emit(context.WithoutCancel(ctx), event.Warning{Text: doneErr.Error()}))
		}
	}
	if f.single && err == nil && !o.Committed {
		err = f.keeper.commit(ctx, Checkpoint{Step: 1, Position: Position{Done: true, Output: out.Output, Usage: out.Usage}}, nil)
	}
	out.Run, out.Duration, out.Recorded = f.Events.Run, f.now().Sub(f.begin), f.keeper.works()
	return out, err
}

// close emits how the run ended and keeps it. It returns the error of the run: err, or what
// failed after it.
func (f *Frame) close(ctx context.Context, out Outcome, err error) error {
	if fault.CodeOf(err) == fault.Canceled && errors.Is(context.Cause(ctx), ErrInterrupted) {
		return err // its record is that of a run whose process was killed
	}
	fin := event.Finished{
		Output: out.Output, Duration: out.Duration, Steps: out.Steps, Failures: out.Failures, Unhandled: out.Unhandled, Usage: out.Usage, Stop: out.Stop,
	}
	if err != nil {
		fin.Error, fin.Code = err.Error(), string(fault.CodeOf(err))
		if w, ok := errors.AsType[*waitError](err); ok {
			fin.Reason = w.reason
		}
	}
	if f.nested != nil && f.nested.Ending != nil {
		f.nested.Ending(&fin, err)
	}
	live := context.WithoutCancel(ctx) // the end is reported also if the run was canceled
	if over := f.Budget.Overrun(); over != "" {
		if emitErr := f.Events.Emit(live, event.Warning{Text: over}); err == nil {
			err = emitErr
		}
	}
	if f.within() != "" {
		return err
	}
	if emitErr := f.Events.Emit(live, fin); err == nil {
		err = emitErr
	}
	if endErr := f.keeper.end(ctx, ending(out, err)); err == nil {
		err = endErr
	}
	return err
}

// ending is how the journal remembers the end of an execution.
func ending(out Outcome, err error) Ending {
	e := Ending{Status: Done, Output: out.Output}
	if err == nil {
		return e
	}
	e.Status, e.Error, e.Code, e.Undone = Failed, err.Error(), fault.CodeOf(err), out.Undone
	switch e.Code {
	case fault.Canceled:
		e.Status = Canceled
	case fault.Suspended, fault.Limit:
		e.Status = Suspended
		e.Until, _, _ = soonest(err)
		if at, ok := errors.AsType[*BreakError](err); ok {
			e.Breakpoint = at.Place
		}
	}
	if isFinal(err) {
		e.Status = Done
	}
	return e
}

// ErrInterrupted is the cause of the end of a context that does not end the run: neither its record
// nor its events say that it is over, and it can resume like one whose process was killed.
var ErrInterrupted = fmt.Errorf("the run is interrupted and resumes later: %w", context.Canceled)

// FinalError is a failure that the record itself leads to, such as that of an answer which
// is not what was asked for. The run is over: resuming would lead to the same failure.
type FinalError struct{ Err error }

func (e *FinalError) Error() string { return e.Err.Error() }

func isFinal(err error) bool {
	_, ok := errors.AsType[*FinalError](err)
	return ok
}

// Unwrap returns the failure.
func (e *FinalError) Unwrap() error { return e.Err }

// FailuresError returns the error of a run that came to its end in a state although some nodes failed, n times in all, and its
// definition does not say what happens then. The run is over, and has an output.
func FailuresError(n int, state graph.State) error {
	last, _ := state.Get(graph.LastErrorKey)
	named, _ := last.AsObject().Get("node")
	message, _ := last.AsObject().Get("message")
	node, known := named.AsString()
	what := text.Count(n, "node") + " failed and the run continued"
	if known && n == 1 {
		what = fmt.Sprintf("node %q failed and the run continued: %s", node, message.Text())
	} else if known {
		what += fmt.Sprintf("; the last failure is that of node %q: %s", node, message.Text())
	}
	return fault.New(fault.Tool, "%s", what).WithHint("say in %s what a failure does: settings: {on_failure: fail}, or continue to accept the output; or give the node a fallback", graph.FileName)
}

// do does a piece of work, and turns a panic into a failure of the run: other runs of the process continue.
func do(ctx context.Context, w Work, f *Frame) (out Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return w.Do(ctx, f)
}
