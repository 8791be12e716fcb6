package run

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/steps"
)

// keeper is the driver's side of a journal. A journal that cannot be written any more
// does not cost the run its answer: the user is warned once and the run goes on, with
// nothing kept from then on. Only the loss of the lease ends the run, because somebody
// else may be running it.
//
// A nil keeper keeps nothing. Its methods may be called from several goroutines.
type keeper struct {
	journal Journal
	emitter event.Emitter // the user's, nil for none
	events  func() event.Scope
	source  event.Source

	mu     sync.Mutex
	broken bool
}

// failed takes an error of the journal and returns what is left of it for the run.
func (k *keeper) failed(ctx context.Context, err error) error {
	return k.failedWith(ctx, err, k.outside)
}

// failedWith is failed with a way to warn.
func (k *keeper) failedWith(ctx context.Context, err error, warn func(context.Context, event.Warning) error) error {
	if err == nil {
		return nil
	}
	if _, held := errors.AsType[*LeaseError](err); held || errors.Is(err, ErrLeaseLost) {
		return err
	}
	k.mu.Lock()
	first := !k.broken
	k.broken = true
	k.mu.Unlock()
	if !first {
		return nil
	}
	text := fmt.Sprintf("the run cannot be recorded any more and will not be resumable: %v", err)
	if hint := fault.HintOf(err); hint != "" {
		text += "; " + hint
	}
	return warn(ctx, event.Warning{Text: text})
}

// outside emits a warning while no event is being emitted.
func (k *keeper) outside(ctx context.Context, w event.Warning) error {
	return k.events().Emit(ctx, w)
}

func (k *keeper) works() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.broken
}

// task returns the steps of a node's task.
func (k *keeper) task(step int, node string) steps.Steps {
	if !k.works() {
		return steps.Steps{}
	}
	return steps.New(&taskRecorder{k, k.journal.Task(step, node)})
}

// finished keeps the result of a task whose super-step goes on.
func (k *keeper) finished(ctx context.Context, t TaskRecord) error {
	if !k.works() {
		return nil
	}
	return k.failed(ctx, k.journal.Finished(context.WithoutCancel(ctx), t))
}

func (k *keeper) commit(ctx context.Context, c Checkpoint, visits []Visit) error {
	if !k.works() {
		return nil
	}
	return k.failed(ctx, k.journal.Commit(context.WithoutCancel(ctx), c, visits))
}

func (k *keeper) end(ctx context.Context, e Ending) error {
	if k == nil {
		return nil
	}
	// Also tried when the journal failed before, so that a run which ended is not taken
	// for one that can be resumed.
	return k.failed(ctx, k.journal.End(context.WithoutCancel(ctx), e))
}

// Emit keeps an event. Pieces of model text are left out, because the reply has them
// all, and changes of the state, which the checkpoints have. A question is kept as one
// that waits.
func (k *keeper) Emit(ctx context.Context, ev event.Event) error {
	if !k.works() {
		return nil
	}
	switch b := ev.Body.(type) {
	case event.Delta, event.Reasoning, event.MapProgress, event.StateUpdated:
		return nil
	case event.Question:
		if err := k.journal.Asked(context.WithoutCancel(ctx), Pending{
			ID: b.ID, Step: ev.Step, Node: ev.Node, Key: b.Key, Text: b.Text,
			Options: b.Options, Default: b.Default, Asked: ev.Time, Deadline: b.Deadline,
		}); err != nil {
			// This is inside an Emit: the warning must not wait for its turn.
			return k.failedWith(ctx, err, func(ctx context.Context, w event.Warning) error {
				if k.emitter == nil {
					return nil
				}
				return k.emitter.Emit(ctx, event.Event{Time: ev.Time, Source: k.source, Body: w})
			})
		}
	}
	k.journal.Event(ev)
	return nil
}

// taskRecorder is the record of one task, which grows for as long as the journal
// can be written.
type taskRecorder struct {
	k   *keeper
	rec steps.Recorder
}

func (t *taskRecorder) Lookup(ctx context.Context, key string) (steps.Record, error) {
	// What is on record counts also when nothing can be added to it, and a record that
	// cannot be read is not one that is not there.
	return t.rec.Lookup(context.WithoutCancel(ctx), key)
}

func (t *taskRecorder) Begin(ctx context.Context, key string, s steps.Step) error {
	if !t.k.works() {
		return nil
	}
	return t.k.failed(ctx, t.rec.Begin(ctx, key, s))
}

func (t *taskRecorder) Forget(ctx context.Context, key string) error {
	if !t.k.works() {
		return nil
	}
	return t.k.failed(ctx, t.rec.Forget(ctx, key))
}

func (t *taskRecorder) Record(ctx context.Context, key string, s steps.Step, result []byte) error {
	if !t.k.works() {
		return nil
	}
	return t.k.failed(ctx, t.rec.Record(ctx, key, s, result))
}

// checkpoint is pr as it is stored.
func checkpoint(p *graph.Plan, pr graph.Progress) Checkpoint {
	return Checkpoint{
		Step: pr.Step, State: pr.State, Frontier: pr.Frontier, Waiting: pr.Waiting,
		Visits: p.VisitCounts(pr), Failures: pr.Failures, Done: pr.Done, Output: pr.Output,
	}
}

// StartCheckpoint is the checkpoint before the first super-step of a run.
func StartCheckpoint(p *graph.Plan, state graph.State) Checkpoint {
	return checkpoint(p, p.Begin(state))
}

// progress is the inverse of checkpoint.
func (c Checkpoint) progress(p *graph.Plan) graph.Progress {
	return p.Restore(graph.Progress{
		Step: c.Step, State: c.State, Frontier: c.Frontier, Waiting: c.Waiting,
		Failures: c.Failures, Done: c.Done, Output: c.Output,
	}, c.Visits)
}
