package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"loki/internal/event"
	"loki/internal/graph"
	"loki/internal/steps"
	"loki/internal/value"
)

// NestedOptions configure Nested.
type NestedOptions struct {
	Work   Work
	Done   func() error // as in [Options]
	Events event.Scope  // of the nested run: its source names the child; events of the run that it is in
	Steps  steps.Steps  // its record: a part of that of a task of the run that it is in
	Budget *Budget      // nil bounds nothing
	Now    func() time.Time

	// Resumed says that it goes on after an interruption.
	Resumed bool

	// Opening, if set, completes the event that opens the run, and Ending the one that closes
	// it, which err ended.
	Opening func(*event.Started)
	Ending  func(fin *event.Finished, err error)
}

// Nested does a piece of work inside a run, such as that of a child agent. It has neither a
// journal nor a lease of its own: what it records are steps of the task that it is a part of, and
// if the run goes on after an interruption the task comes here again, and goes on where the steps
// end. The work is as in [Run]. Of a nested graph, a finished node is one step, tolerated failures
// included.
func Nested(ctx context.Context, o NestedOptions) (Outcome, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Frame{Events: o.Events, Budget: o.Budget, now: o.Now, begin: o.Now(), nested: &o}
	out, err := f.do(ctx, Options{Work: o.Work, Done: o.Done, Resumed: o.Resumed})
	return out, f.close(ctx, out, err)
}

// doneKey is the note of a finished node of a nested graph.
const doneKey = "done"

// escapeNode makes the id of a node a part of a key.
var escapeNode = strings.NewReplacer("%", "%25", "/", "%2F")

// taskSteps returns the steps of a node's task, and the beginning of their keys that the task has
// been given.
func (f *Frame) taskSteps(step int, node string) (s steps.Steps, base string) {
	if f.nested == nil {
		return f.keeper.task(step, node), ""
	}
	s = f.nested.Steps.At(fmt.Sprintf("s%d/%s", step, escapeNode.Replace(node)))
	return s, s.Key("")
}

// nestedTask is a finished task of a nested graph as it is recorded.
type nestedTask struct {
	Writes  value.Value    `json:"writes"`
	Targets []string       `json:"targets,omitempty"`
	Ended   bool           `json:"ended,omitempty"`
	Output  string         `json:"output,omitempty"`
	Failure *graph.Failure `json:"failure,omitempty"`
	Visit   Visit          `json:"visit"`
	Took    time.Duration  `json:"took"`
}

// nestedRecord returns the record of a task of a nested graph that was finished before the run
// was interrupted.
func (f *Frame) nestedRecord(ctx context.Context, t graph.Task) (rec TaskRecord, found bool, err error) {
	s, _ := f.taskSteps(t.Step, t.Node.ID)
	n, found, err := steps.ReadNote[nestedTask](ctx, s, doneKey)
	if err != nil || !found {
		return rec, false, err
	}
	rec = TaskRecord{Step: t.Step, Visit: n.Visit, Result: graph.Result{
		Node: t.Node.ID, Targets: n.Targets, Ended: n.Ended, Output: n.Output, Failure: n.Failure,
	}}
	rec.Visit.Duration = n.Took
	for name, v := range n.Writes.AsObject().All() {
		rec.Result.Writes = append(rec.Result.Writes, value.Member{Name: name, Value: v})
	}
	f.Budget.Spend(rec.Visit.Usage)
	return rec, true, nil
}

// keepNested records a task of a nested graph that is finished.
func (f *Frame) keepNested(ctx context.Context, t *Task, done finishedTask) error {
	s, _ := f.taskSteps(t.Step, t.Node.ID)
	r := done.result
	return steps.WriteNote(ctx, s, doneKey, nestedTask{
		Writes: value.ObjectOf(r.Writes...).Value(), Targets: r.Targets, Ended: r.Ended, Output: r.Output, Failure: r.Failure,
		Visit: done.visit, Took: done.visit.Duration,
	})
}
