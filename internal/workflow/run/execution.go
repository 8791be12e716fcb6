package run

import (
	"context"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// Execution is one task of a graph whose super-steps are not those of [Graph.Do]: a driver outside of this package asks the
// plan for the tasks, has each executed somewhere, and hands their records to [Fold].
type Execution struct {
	Graph // Start is the checkpoint before the super-step of the task
	Node  string
	Step  int // number of the super-step, from 1
	Visit int // of the node's visits, from 1

	Parallel bool // other tasks belong to the same super-step

	Record steps.Recorder // of the task's steps; with questions that wait it is a [QuestionRecorder]
	Events event.Scope    // of the run
	Budget *Budget        // nil bounds nothing
	Worked time.Duration  // of the budget's time, what is over
}

// Execute executes one task, and returns its record. Result.Err is the failure of the node; one with code
// [fault.Suspended] says that it waits for an answer. The error is that of an emitter, or says that the graph
// does not have the node.
func Execute(ctx context.Context, e Execution) (TaskRecord, error) {
	d := &driver{Graph: e.Graph, Frame: &Frame{Events: e.Events, Budget: e.Budget, now: time.Now, begin: time.Now()}}
	d.hide(e.Graph, nil)
	n := e.Plan.Graph().Node(e.Node)
	if n == nil {
		return TaskRecord{}, fault.New(fault.Config, "the graph %s does not have the node %q", e.Plan.Graph().Name, e.Node)
	}
	pr := e.Start.Progress(e.Plan)
	task := graph.Task{Node: n, Step: e.Step, Visit: e.Visit, Loop: e.Plan.Loop(pr, e.Node), Short: e.Plan.Short(pr, e.Node)}
	if pr.Undoing == nil {
		timed, cancel := e.Budget.Within(ctx, e.Worked)
		defer cancel()
		ctx = timed
	} else {
		e.Budget.Lift()
		tasks, err := e.Plan.Next(pr)
		if err != nil {
			return TaskRecord{}, err
		}
		task.Undoes = tasks[0].Undoes
	}
	t := d.task(e.Start.State, task)
	t.Steps = steps.New(e.Record)
	if err := t.announce(ctx, e.Parallel); err != nil {
		return TaskRecord{}, err
	}
	done := newFinishedTasks(1).at(0)
	err := d.executeOne(ctx, t, done, e.Parallel, nil)
	if fault.CodeOf(done.result.Err) == fault.Suspended {
		done.result.Err = suspension(done.result.Err)
	}
	return done.record(e.Step), err
}
