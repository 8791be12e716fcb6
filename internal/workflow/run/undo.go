package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// UndoneError is the error of a run that failed or was canceled, and whose effects were undone since. The run is over.
type UndoneError struct {
	Err    error // of the run
	Undone int   // effects that were undone
	Lost   []graph.Lost
	Step   int // the last super-step before the first effect
}

func (e *UndoneError) Error() string { return e.Err.Error() + "; " + e.Summary() }

// Summary returns what was undone and what could not be.
func (e *UndoneError) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "undone: %s", text.Count(e.Undone, "node"))
	for _, l := range e.Lost {
		fmt.Fprintf(&b, "\n  could not be undone: %s", l)
	}
	return b.String()
}

// Unwrap returns the error of the run.
func (e *UndoneError) Unwrap() error { return e.Err }

// Undone is how far the effects of a run are undone that failed or was canceled.
type Undone struct {
	Nodes int `json:"nodes"`          // visits that were undone
	Lost  int `json:"lost,omitempty"` // effects that could not be undone
	Left  int `json:"left,omitempty"` // effects that the run still has to undo when it is resumed
}

// over reports whether a run with a status is over because what it did is undone.
func (u *Undone) over(s Status) bool { return u != nil && u.Left == 0 && s.Over() }

// undoneOf returns how far a run has come that undoes its effects, nil for any other.
func undoneOf(pr *graph.Progress) *Undone {
	if pr.Undoing == nil {
		return nil
	}
	u := &Undone{Lost: len(pr.Undoing.Lost), Left: len(pr.Effects)}
	u.Nodes = pr.Undoing.Total - u.Lost - u.Left
	return u
}

// errCanceled ends a run that is canceled before it resumes, see [Graph.Canceled].
var errCanceled = fault.New(fault.Canceled, "the run was canceled")

// CancelCause returns the cause of the end of the context of a run that is canceled by another caller than that of its Start. With keep, the
// caller only does not wait for it any more, and what it did is not undone.
func CancelCause(keep bool) error {
	if keep {
		return &StopError{Err: fault.New(fault.Canceled, "the request for the run has ended")}
	}
	return errCanceled
}

// noteFailure returns err, by which a run fails, and notes that its effects must be undone. done are the results of the tasks of the super-step.
func (d *driver) noteFailure(err error, done finishedTasks) error {
	d.broken = &brokenStep{done}
	return err
}

// brokenStep is a super-step in which a run failed.
type brokenStep struct{ done finishedTasks }

// finishedBefore returns the tasks of the super-step after pr that were finished before the run was interrupted.
func (d *driver) finishedBefore(pr *graph.Progress) (done finishedTasks) {
	for _, rec := range d.Tasks {
		if rec.Step == pr.Step+1 {
			done.results, done.visits = append(done.results, rec.Result), append(done.visits, rec.Visit)
		}
	}
	return done
}

// mayUndo reports whether the effects of a run that has come to pr and failed with err are to be undone, if there are any.
func (d *driver) mayUndo(ctx context.Context, pr *graph.Progress, err error) bool {
	return pr.Undoing == nil && !d.Keep && undoes(ctx, err)
}

// undo begins to undo the effects of a run that has come to pr and failed with err. Without effects it returns err.
func (d *driver) undo(ctx context.Context, pr *graph.Progress, err error) (*graph.Progress, error) {
	done := d.broken.done
	d.broken = nil
	next, ok := d.Plan.Undo(*pr, done.results, undoingOf(d.Plan, err))
	if !ok {
		return pr, err
	}
	d.cause = err
	d.Budget.Lift()
	if err := d.beginUndo(ctx, pr, &next, done.visits); err != nil {
		return pr, err
	}
	return &next, nil
}

// undoingOf says that a run failed with err.
func undoingOf(p *graph.Plan, err error) graph.Undoing {
	return graph.Undoing{Failure: failureOf(p, err), Error: err.Error(), Code: fault.CodeOf(err), Hint: fault.HintOf(err)}
}

// Undo begins to undo the effects of a run that has come to pr and failed with err, like [graph.Plan.Undo], for a driver outside of this package.
// done are the tasks of the super-step that were finished. ok is false if there is nothing to undo, or the run can resume later.
func Undo(p *graph.Plan, pr graph.Progress, done []TaskRecord, err error) (next graph.Progress, ok bool) {
	if pr.Undoing != nil || !final(err) {
		return pr, false
	}
	results := make([]graph.Result, len(done))
	for i, t := range done {
		results[i] = t.Result
	}
	return p.Undo(pr, results, undoingOf(p, err))
}

// undoes reports whether to undo the effects of a run that ends with err: not if it can resume later, was taken over by another
// process, or ends with its server.
func undoes(ctx context.Context, err error) bool {
	return final(err) && (ctx.Err() == nil || final(context.Cause(ctx)))
}

func final(err error) bool {
	_, stop := errors.AsType[*StopError](err)
	code := fault.CodeOf(err)
	return code != fault.Suspended && code != fault.Limit && !stop && !isLost(err) && !errors.Is(err, ErrInterrupted) && !errors.Is(err, ErrPassing)
}

// failureOf returns what the state says of the error of a run.
func failureOf(p *graph.Plan, err error) graph.Failure {
	e, ok := errors.AsType[*graph.NodeError](err)
	if !ok {
		return graph.Failure{Message: text.Cut(strings.TrimSpace(err.Error()), shortError)}
	}
	f := graph.Failure{Node: e.Node, Message: text.Cut(strings.TrimSpace(e.Err.Error()), shortError)}
	if n := p.Graph().Node(e.Node); n != nil {
		f.Type = n.Type
	}
	return f
}

// shortError bounds the text of an error in the state, in bytes.
const shortError = 600

// undoContext returns the context in which effects are undone, for a run that had ctx: it does not end with a run that was canceled, but
// when the lease is lost.
func (d *driver) undoContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return context.WithCancel(ctx)
	}
	undoing, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := func() bool { return true }
	if d.keeper != nil {
		lease := d.keeper.journal.Lease()
		stop = context.AfterFunc(lease, func() { lose(context.Cause(lease)) })
		d.keeper.ctx, d.keeper.lose = undoing, lose
	}
	return undoing, func() { stop(); lose(nil) }
}

// beginUndo reports and records that the effects of next are undone from now on.
func (d *driver) beginUndo(ctx context.Context, pr, next *graph.Progress, visits []Visit) error {
	var nodes []string
	for _, e := range slices.Backward(next.Effects) {
		nodes = append(nodes, e.Node)
	}
	events := d.Events.With(func(s *event.Source) { s.Step = next.Step })
	if err := events.Emit(ctx, event.Undoing{Nodes: nodes, Error: next.Undoing.Error}); err != nil {
		return err
	}
	if err := d.emitStep(ctx, pr, next, 1); err != nil {
		return err
	}
	if d.nested != nil {
		return d.keepUndo(ctx, next)
	}
	return d.commit(ctx, next, visits)
}

// commit records the checkpoint at pr, after the visits.
func (d *driver) commit(ctx context.Context, pr *graph.Progress, visits []Visit) error {
	if d.keeper == nil {
		return nil
	}
	for _, v := range visits {
		d.visits[v.Node] = d.Plan.Visits(*pr, v.Node)
	}
	c := checkpoint(d.Plan, *pr, d.visits)
	c.Usage = d.usage
	return d.keeper.commit(ctx, c, visits)
}

// unsettledError returns the error of a compensation that must be executed again, nil if it is over, also by a failure.
func unsettledError(ctx context.Context, results []graph.Result) error {
	err := failure(results)
	if err == nil || ctx.Err() == nil && !isLost(err) && !slices.Contains([]fault.Code{fault.Suspended, fault.Limit, fault.Canceled}, fault.CodeOf(err)) {
		return nil
	}
	return err
}

// warnLost reports an effect that the step between two states of undoing could not undo. Both are nil if nothing is undone.
func (d *driver) warnLost(ctx context.Context, before, after *graph.Undoing) error {
	if before == nil || len(after.Lost) == len(before.Lost) {
		return nil
	}
	lost := after.Lost[len(after.Lost)-1]
	return d.Events.Emit(ctx, event.Warning{Text: "could not be undone: " + lost.String()})
}

// undoneError returns the error of a run whose effects are undone.
func (d *driver) undoneError(ctx context.Context, pr *graph.Progress) error {
	if d.nested != nil {
		if err := steps.WriteNote(ctx, d.nested.Steps, undoneKey, true); err != nil {
			return err
		}
	}
	return UndoneErrorOf(*pr, d.cause)
}

// UndoneErrorOf returns the error of a run that has come to pr, where all is undone, because of cause; nil is what the record says of it.
func UndoneErrorOf(pr graph.Progress, cause error) error {
	why := pr.Undoing
	if cause == nil {
		cause = fault.New(why.Code, "%s", why.Error).WithHint("%s", why.Hint)
	}
	return &UndoneError{Err: cause, Undone: undoneOf(&pr).Nodes, Lost: why.Lost, Step: why.Before}
}

// wasUndone reports whether a run with a status, whose last checkpoint is c, is over because its effects are undone.
func (c Checkpoint) wasUndone(status Status) bool {
	return c.Undoing != nil && len(c.Effects) == 0 && status.Over()
}

// UndoneRefusal is how a run is refused whose effects are undone, or a fork of a checkpoint on the way there.
func UndoneRefusal(id string, c Checkpoint) error {
	ended := "failed"
	if c.Undoing.Code == fault.Canceled {
		ended = "was canceled"
	}
	return &RefusedError{fault.New(fault.Usage, "run %s %s, and what it did was undone, so it cannot resume: %s", id, ended, text.OneLine(c.Undoing.Error, 200)).
		WithHint("begin anew: loki --fork %s@%d", id, c.Undoing.Before)}
}

// Notes of a nested graph: its checkpoint when it began to undo its effects, and that they are undone.
const (
	undoKey   = "undo/begun"
	undoneKey = "undo/done"
)

// keepUndo notes that a nested graph undoes its effects from pr on.
func (d *driver) keepUndo(ctx context.Context, pr *graph.Progress) error {
	return steps.WriteNote(ctx, d.nested.Steps, undoKey, CheckpointOf(d.Plan, *pr, d.usage))
}

// start returns where the run begins. A nested graph that was interrupted while it undid its effects continues with that. One that is
// started again after that, because the run that it is in resumes, begins anew.
func (d *driver) start(ctx context.Context) (*graph.Progress, error) {
	start := d.Start.Progress(d.Plan)
	if d.nested == nil || !d.Plan.Compensates() {
		return &start, nil
	}
	first := d.nested.Steps
	for life := 2; ; life++ {
		_, over, err := steps.ReadNote[bool](ctx, d.nested.Steps, undoneKey)
		if err != nil {
			return &start, err
		}
		if !over {
			break
		}
		d.nested.Steps, d.life = first.At(fmt.Sprintf("again/%d", life)), life
	}
	c, found, err := steps.ReadNote[Checkpoint](ctx, d.nested.Steps, undoKey)
	if err != nil || !found {
		return &start, err
	}
	d.usage = c.Usage
	d.Budget.Spend(c.Usage)
	begun := c.Progress(d.Plan)
	return &begun, nil
}
