package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
)

// keeper is the driver's side of a journal. While the journal cannot be written for a
// moment, what wants to be recorded waits. A journal that cannot be written any more
// does not cost the run its answer: the user is warned once and the run continues, with nothing
// recorded from then on and a note in the journal that says so. Only the loss of the
// lease ends the run, because another process may be running it.
//
// A nil keeper keeps nothing. Its methods may be called from several goroutines.
type keeper struct {
	ctx     context.Context // of the run; its end ends the waiting
	lose    func(error)     // cancels the run
	now     func() time.Time
	journal Journal

	answered []string // see [Options.Answered]

	next   event.Emitter // gets the events after the keeper
	events event.Scope   // leads through the keeper

	patience Patience

	mu   sync.Mutex
	step int           // the last super-step on record
	over bool          // the last event of the run is on record
	gap  *Gap          // what is not on record; nil as long as the journal works
	open []event.Event // questions that were asked and not answered, in order
}

// record returns the keeper as an emitter in front of another one.
func (k *keeper) record(next event.Emitter) event.Emitter {
	k.next = next
	return k
}

// startAt says which super-step is the last one on record.
func (k *keeper) startAt(step int) {
	if k != nil {
		k.step = step
	}
}

// write records something. It returns what is left of its failure for the run. It is not to be
// called while an event is being emitted, because it may warn.
func (k *keeper) write(ctx context.Context, record func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx) // what was done is recorded also if the run is canceled now
	var warnErr error
	err := k.patience.Do(k.ctx, func(note string) error {
		warnErr = k.warn(ctx, note)
		return warnErr
	}, func() error {
		if !k.works() { // before, or since another goroutine has given up
			return errGivenUp
		}
		return record(ctx)
	})
	switch {
	case err == nil || errors.Is(err, errGivenUp):
		return nil
	case errors.Is(err, ErrAnswered):
		return err
	case warnErr != nil:
		return warnErr
	case isLost(err):
		k.lose(err)
		return err
	case errors.Is(err, ErrPassing) && k.ctx.Err() != nil:
		// The run ends here, and its record is as if it had ended a moment before.
		return context.Cause(k.ctx)
	}
	return k.giveUp(ctx, err)
}

// errGivenUp says that nothing is recorded any more.
var errGivenUp = errors.New("the run is not recorded any more")

// isLost reports whether an error of a journal says that the run is another process's.
func isLost(err error) bool {
	_, held := errors.AsType[*LeaseError](err)
	return held || errors.Is(err, ErrLeaseLost)
}

// giveUp lets the run continue without its record.
func (k *keeper) giveUp(ctx context.Context, err error) error {
	k.mu.Lock()
	if k.gap != nil {
		k.mu.Unlock()
		return nil
	}
	k.gap = &Gap{Reason: err.Error(), Since: k.now(), Step: k.step}
	k.mu.Unlock()
	note := fmt.Sprintf("the run cannot be recorded any more: %v. It continues to its answer, but cannot be resumed after an interruption", err)
	if noteErr := k.noteGap(ctx); noteErr != nil {
		note += fmt.Sprintf(". That could not be noted beside the record (%v), so do not resume run %s later", noteErr, k.journal.ID())
	}
	return k.warn(ctx, withHint(note, err))
}

// noteGap notes in the journal what is not on record.
func (k *keeper) noteGap(ctx context.Context) error {
	k.mu.Lock()
	g := *k.gap
	g.Nodes = maps.Clone(g.Nodes)
	k.mu.Unlock()
	err := k.journal.Gap(context.WithoutCancel(ctx), g)
	if isLost(err) {
		k.lose(err)
	}
	return err
}

// warn emits a warning.
func (k *keeper) warn(ctx context.Context, text string) error {
	return k.events.Emit(ctx, event.Warning{Text: text})
}

func (k *keeper) works() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gap == nil
}

// task returns the steps of a node's task.
func (k *keeper) task(step int, node string) steps.Steps {
	if !k.works() {
		return steps.Steps{}
	}
	return steps.New(&taskRecorder{k, k.journal.Task(step, node), step, node})
}

// recordFinished records the result of a task whose super-step continues.
func (k *keeper) recordFinished(ctx context.Context, t TaskRecord) error {
	if !k.works() {
		return nil
	}
	return k.write(ctx, func(ctx context.Context) error { return k.journal.Finished(ctx, t) })
}

// commit keeps the checkpoint after a super-step, or notes that it is not on record.
func (k *keeper) commit(ctx context.Context, c Checkpoint, visits []Visit) error {
	if k == nil {
		return nil
	}
	err := k.write(ctx, func(ctx context.Context) error { return k.journal.Commit(ctx, c, visits) })
	if err != nil {
		return err
	}
	k.mu.Lock()
	if k.gap == nil {
		k.step = c.Step
		k.mu.Unlock()
		return nil
	}
	if k.gap.Nodes == nil && len(visits) > 0 {
		k.gap.Nodes = make(map[string]int)
	}
	for _, v := range visits {
		k.gap.Nodes[v.Node]++
	}
	k.mu.Unlock()
	if err := k.noteGap(ctx); isLost(err) {
		return err
	}
	return nil // the first note was what mattered, and its failure was reported
}

// end keeps how the run ended. All it did is on record by then, or in the note about
// what is not.
func (k *keeper) end(ctx context.Context, e Ending) error {
	if k == nil {
		return nil
	}
	if !k.works() {
		k.mu.Lock()
		k.gap.Status, k.gap.Error = e.Status, e.Error
		k.mu.Unlock()
		if err := k.noteGap(ctx); isLost(err) {
			return err
		}
		return nil
	}
	k.mu.Lock()
	k.over = true // warnings are shown from here on, but not kept behind the end
	k.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	warn := func(note string) error { return k.warn(ctx, note) }
	err := k.patience.Do(k.ctx, warn, func() error { return k.journal.End(ctx, e) })
	if err == nil || isLost(err) {
		return err
	}
	return warn(withHint(fmt.Sprintf("the end of the run could not be recorded: %v", err), err))
}

// Kept reports whether an event is one for the record. Pieces of model text are not, because the reply has
// them all, nor are changes that nodes make to the state, which the checkpoints have, and progress.
func Kept(b event.Body) bool {
	if updated, ok := b.(event.StateUpdated); ok {
		return updated.Set
	}
	return !event.IsTransient(b)
}

// Emit keeps an event and passes it on.
func (k *keeper) Emit(ctx context.Context, ev event.Event) error {
	k.mu.Lock()
	kept := k.gap == nil && !k.over
	k.mu.Unlock()
	if kept {
		k.countQuestion(ev)
		if Kept(ev.Body) {
			ev.Number = k.journal.Event(ev)
		}
	}
	return k.next.Emit(ctx, ev)
}

// taskRecorder is the record of one task, which grows for as long as the journal
// can be written.
type taskRecorder struct {
	k    *keeper
	rec  steps.Recorder
	step int
	node string
}

func (t *taskRecorder) Lookup(ctx context.Context, key string, s steps.Step) (steps.Record, error) {
	if t.k.works() {
		if err := t.k.write(ctx, t.k.journal.Confirm); err != nil {
			return steps.Record{}, err
		}
	}
	// What is on record counts also when nothing can be added to it, and a record that
	// cannot be read is not one that is not there.
	var known steps.Record
	live := context.WithoutCancel(ctx)
	err := t.k.patience.Do(t.k.ctx, func(note string) error { return t.k.warn(live, note) }, func() (err error) {
		known, err = t.rec.Lookup(live, key, s)
		return err
	})
	if _, stop := errors.AsType[*StopError](err); stop || errors.Is(err, ErrPassing) {
		t.k.lose(err)
	}
	return known, err
}

// Fail implements [steps.FailureRecorder] for journals that keep failures.
func (t *taskRecorder) Fail(ctx context.Context, key string, s steps.Step, failure error) {
	if f, ok := t.rec.(steps.FailureRecorder); ok {
		f.Fail(ctx, key, s, failure)
	}
}

func (t *taskRecorder) Begin(ctx context.Context, key string, s steps.Step) error {
	return t.k.write(ctx, func(ctx context.Context) error { return t.rec.Begin(ctx, key, s) })
}

func (t *taskRecorder) Forget(ctx context.Context, key string) error {
	return t.k.write(ctx, func(ctx context.Context) error { return t.rec.Forget(ctx, key) })
}

func (t *taskRecorder) Record(ctx context.Context, key string, s steps.Step, result []byte) error {
	return t.k.write(ctx, func(ctx context.Context) error { return t.rec.Record(ctx, key, s, result) })
}

// Asked implements [QuestionRecorder].
func (t *taskRecorder) Asked(ctx context.Context, p Pending) error {
	p.Step, p.Node = t.step, t.node
	return t.k.write(ctx, func(ctx context.Context) error { return t.k.journal.Asked(ctx, p) })
}

// Replied implements [QuestionRecorder].
func (t *taskRecorder) Replied(ctx context.Context, key string) bool {
	known, err := t.rec.Lookup(ctx, key, steps.Step{Kind: steps.Question, Key: key})
	return err == nil && known.Done
}

// Answered implements [QuestionRecorder].
func (t *taskRecorder) Answered(question string) bool { return slices.Contains(t.k.answered, question) }

// countQuestion keeps count of the questions that are open.
func (k *keeper) countQuestion(ev event.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch b := ev.Body.(type) {
	case event.Question:
		k.open = append(k.open, ev)
	case event.Answer:
		k.open = slices.DeleteFunc(k.open, func(q event.Event) bool { return q.Body.(event.Question).ID == b.ID })
	case event.NodeFinished:
		if b.Canceled { // what it asked is withdrawn
			k.open = slices.DeleteFunc(k.open, func(q event.Event) bool { return q.Node == ev.Node && q.AgentID == ev.AgentID })
		}
	}
}

// suspension returns the error of a run that waits for answers: err, which is about one of
// them, or one that names all.
func (k *keeper) suspension(err error) error {
	if !k.works() {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.open) < 2 {
		return err
	}
	lines, ids := make([]string, len(k.open)), make([]string, len(k.open))
	for i, ev := range k.open {
		q := ev.Body.(event.Question)
		ids[i] = q.ID
		lines[i] = fmt.Sprintf("\n  %s: %s", q.ID, oneLine(q.Text))
	}
	count := fmt.Sprintf("%d questions wait for answers", len(lines))
	return fault.Wrap(fault.Suspended, &waitError{count + ":" + strings.Join(lines, ""), count + ": " + strings.Join(ids, ", ")}, "").
		WithHint("answer them: loki --resume %s --answers FILE, a YAML file with a line for each: %s: ANSWER; or one of them: --answer %[2]s=TEXT", k.journal.ID(), ids[0])
}

// lineLength bounds a question's text in an error, in bytes.
const lineLength = 200

// oneLine returns text on one line, cut.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= lineLength {
		return text
	}
	return strings.ToValidUTF8(text[:lineLength], "") + "…"
}
