package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// NestedOptions configure Nested.
type NestedOptions struct {
	Work   Work
	Done   func() error // as in [Options]
	Events event.Scope  // of the nested run: its source names the child; events of the run that it is in
	Steps  steps.Steps  // its record: a part of that of a task of the run that it is in
	Budget *Budget      // nil bounds nothing
	Now    func() time.Time

	// Resumed says that it resumes after an interruption.
	Resumed bool

	// Opening, if set, completes the event that opens the run, and Ending the one that closes
	// it, which err ended.
	Opening func(*event.Started)
	Ending  func(fin *event.Finished, err error)

	// Within is the name of the node that a subgraph is the work of, empty for other work. The names of the nodes of a subgraph
	// begin with it. Its beginning, its end and its state are no events, but those of the node.
	Within string
	Turn   *Turn // that of the node: its questions are parts of it

	// Secrets are those of the task of the node, which learn those of the subgraph.
	Secrets *Secrets
}

// RunNested does a piece of work inside a run, such as that of a child agent. It has neither a
// journal nor a lease of its own: what it records are steps of the task that it is a part of, and
// if the run resumes after an interruption, the task comes here again and continues where the steps
// end. The work is as in [Run]. Of a nested graph, a finished node is one step, tolerated failures
// included. A nested graph is that of a child agent, or a subgraph.
func RunNested(ctx context.Context, o NestedOptions) (Outcome, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Frame{Events: o.Events, Budget: o.Budget, now: o.Now, begin: o.Now(), nested: &o}
	f.hide(o.Work, o.Secrets)
	out, err := f.do(ctx, Options{Work: o.Work, Done: o.Done, Resumed: o.Resumed})
	return out, f.close(ctx, out, err)
}

// within returns the name of the node that the graph is a subgraph of, empty for none.
func (f *Frame) within() string {
	if f.nested == nil {
		return ""
	}
	return f.nested.Within
}

// turn returns the turn that the questions of the graph are parts of.
func (f *Frame) turn() *Turn {
	if f.nested == nil {
		return nil
	}
	return f.nested.Turn
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

// nestedRecord returns the record of a task of a nested graph that was finished before the run
// was interrupted.
func (f *Frame) nestedRecord(ctx context.Context, t graph.Task) (rec TaskRecord, found bool, err error) {
	s, _ := f.taskSteps(t.Step, t.Node.ID)
	rec, found, err = steps.ReadNote[TaskRecord](ctx, s, doneKey)
	if err != nil || !found {
		return rec, false, err
	}
	rec.Step, rec.Result.Node = t.Step, t.Node.ID // older notes do not have them
	f.Budget.Spend(rec.Visit.Usage)
	f.secrets.add(rec.Result.Writes)
	return rec, true, nil
}

// keepNested records a task of a nested graph that is finished.
func (f *Frame) keepNested(ctx context.Context, t *Task, done finishedTask) error {
	s, _ := f.taskSteps(t.Step, t.Node.ID)
	if err := f.keepSecrets(ctx, s, done.result.Writes); err != nil {
		return err
	}
	return steps.WriteNote(ctx, s, doneKey, done.record(t.Step))
}
