package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// Types of the errors of an activity whose task is executed again.
const (
	stoppedType = "stopped" // the worker was stopped
	lostType    = "lost"    // the task is another execution's
)

// Client is what an activity needs of a client of the server.
type Client interface {
	SignalWorkflow(ctx context.Context, workflowID, runID, signal string, arg any) error
	RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error
	QueryWorkflow(ctx context.Context, workflowID, runID, query string, args ...any) (converter.EncodedValue, error)
	UpdateWorkflow(ctx context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error)
}

// Nodes executes nodes. It has the activity of a worker.
type Nodes struct {
	App    *app.App
	Client Client
}

// Execute executes a node. Its argument is a [Task], and its result an [Outcome], both sealed.
func (n *Nodes) Execute(ctx context.Context, sealed json.RawMessage) (json.RawMessage, error) {
	var t Task
	if err := json.Unmarshal([]byte(n.App.Unseal(string(sealed))), &t); err != nil {
		return nil, fmt.Errorf("reading the task: %w", err)
	}
	info := activity.GetInfo(ctx)
	t.Info.ID = info.WorkflowExecution.ID
	stop := activity.GetWorkerStopChannel(ctx)
	ctx, end := context.WithCancelCause(ctx)
	p := &pulse{
		beat:  func(ctx context.Context) error { return n.Client.RecordActivityHeartbeat(ctx, info.TaskToken) },
		final: isOver, limit: t.Heartbeat, end: end, last: time.Now().Add(-t.Heartbeat / 2),
	}
	var beside sync.WaitGroup // ends with ctx
	defer beside.Wait()
	defer end(nil)
	beside.Go(func() { p.keep(ctx) })
	if err := n.further(ctx, info.WorkflowExecution, &t); err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), lostType, nil)
	}
	r := newRecorder(t, p, func(ctx context.Context, b Batch) error {
		data, err := n.seal(b)
		if err != nil {
			return err
		}
		return n.Client.SignalWorkflow(ctx, info.WorkflowExecution.ID, info.WorkflowExecution.RunID, stepsSignal, data)
	})
	beside.Go(func() {
		select {
		case <-stop:
			end(run.ErrInterrupted)
		case <-ctx.Done():
		}
	})
	out := n.outcome(ctx, t, r, info.WorkflowExecution)
	cause := context.Cause(ctx)
	switch {
	case cause != nil && fault.CodeOf(cause) == fault.Limit: // a step is too large for the record
		out = Outcome{Failure: failureOf(cause)}
	case cause != nil:
		return nil, interruptedError(cause)
	}
	out.Events = r.rest()
	return n.sealOutcome(t, out)
}

// further gets the steps of a task that did not fit into it.
func (n *Nodes) further(ctx context.Context, of workflow.Execution, t *Task) error {
	for len(t.Steps) < t.Further {
		reply, err := n.Client.QueryWorkflow(ctx, of.ID, of.RunID, stepsQuery, Page{Node: t.Node, Attempt: t.Attempt, From: len(t.Steps)})
		if err != nil {
			return fmt.Errorf("reading the steps on record: %w", err)
		}
		var sealed json.RawMessage
		if err := reply.Get(&sealed); err != nil {
			return fmt.Errorf("reading the steps on record: %w", err)
		}
		var page []Step
		if err := json.Unmarshal([]byte(n.App.Unseal(string(sealed))), &page); err != nil {
			return fmt.Errorf("reading the steps on record: %w", err)
		}
		t.Steps = append(t.Steps, page...)
	}
	return nil
}

// isOver reports whether the server says that an execution must not continue.
func isOver(err error) bool {
	var gone *serviceerror.NotFound
	return errors.As(err, &gone) || temporal.IsCanceledError(err) || errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

// interruptedError returns the error of an execution that was ended from outside.
func interruptedError(cause error) error {
	switch {
	case errors.Is(cause, run.ErrInterrupted):
		return temporal.NewNonRetryableApplicationError("the worker was stopped", stoppedType, nil)
	case temporal.IsCanceledError(cause):
		return temporal.NewCanceledError()
	case errors.Is(cause, activity.ErrActivityPaused), errors.Is(cause, activity.ErrActivityReset):
		return cause
	}
	return temporal.NewNonRetryableApplicationError(cause.Error(), lostType, nil)
}

// seal returns x in JSON without secrets.
func (n *Nodes) seal(x any) (json.RawMessage, error) {
	data, err := json.Marshal(x)
	return json.RawMessage(n.App.Seal(string(data))), err
}

// sealOutcome returns the result of the activity.
func (n *Nodes) sealOutcome(t Task, out Outcome) (json.RawMessage, error) {
	data, err := n.seal(out)
	if err != nil {
		return nil, err
	}
	if err := checkSize(fmt.Sprintf("the result of node %q", t.Node), len(data)); err != nil {
		return n.seal(Outcome{Failure: failureOf(err)})
	}
	return data, nil
}

// outcome executes the node of a task.
func (n *Nodes) outcome(ctx context.Context, t Task, r *recorder, of workflow.Execution) Outcome {
	events := n.App.Events(r).With(func(s *event.Source) { s.Run, s.Agent = t.Info.ID, t.Info.Agent })
	ctx = event.NewContext(ctx, events)
	done, err := n.execute(ctx, t, r, events, of)
	if err == nil {
		err = done.Result.Err
	}
	if err != nil {
		f := failureOf(err)
		if later, ok := errors.AsType[*engine.LaterError](err); ok {
			f.Until = later.At
		}
		return Outcome{Failure: f}
	}
	return Outcome{Done: &done}
}

// reserver asks the workflow of a run for what calls may use of its budget.
func (n *Nodes) reserver(of workflow.Execution, t Task, r *recorder) run.Reserver {
	return func(ctx context.Context, c run.Call) (func(chat.Usage), error) {
		res := Reservation{ID: run.NewID(), Node: t.Node, Attempt: t.Attempt, Call: c}
		h, err := n.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			UpdateID: res.ID, WorkflowID: of.ID, RunID: of.RunID, UpdateName: reserveUpdate, Args: []any{res}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = h.Get(ctx, nil)
		}
		if err != nil {
			var f Failure
			if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.HasDetails() && app.Details(&f) == nil && f.Message != "" {
				return nil, f.Err()
			}
			return nil, r.pulse.lose(fmt.Errorf("the budget of the run cannot be asked: %w", err))
		}
		return func(used chat.Usage) { r.settle(context.WithoutCancel(ctx), res.ID, used) }, nil
	}
}

func (n *Nodes) execute(ctx context.Context, t Task, r *recorder, events event.Scope, of workflow.Execution) (done run.TaskRecord, err error) {
	point := run.Point{Recovery: run.Recovery{Info: t.Info, Last: t.From}, Resumed: t.Attempt > 1 || t.From.Step > 0}
	point.Info.Usage = t.From.Usage
	for _, s := range t.Steps {
		point.Info.Usage = point.Info.Usage.Add(s.used())
	}
	runs := n.App.Runs()
	job, err := runs.JobOf(ctx, point.Info, t.From, run.Continuation{
		ID: t.Info.ID, Force: t.Terms.Force, Here: true, NoStream: true, Yes: t.Terms.Yes, Events: events, Asker: ask.Unavailable{},
		Command: "loki-temporal --resume " + t.Info.ID,
	})
	if err != nil {
		return done, err
	}
	point.Budget = job.BudgetAt(point, "")
	if t.Reserves {
		point.Budget.Elsewhere(n.reserver(of, t, r))
	}
	work, release, err := job.Make(ctx, point)
	if err != nil {
		if job.Release != nil {
			job.Release()
		}
		return done, err
	}
	defer func() {
		if releaseErr := release(); releaseErr != nil && err == nil {
			err = job.Events.Emit(context.WithoutCancel(ctx), event.Warning{Text: releaseErr.Error()})
		}
	}()
	g, ok := work.(run.Graph)
	if !ok {
		return done, fault.New(fault.Config, "agent %s is not a graph any more", t.Info.Agent)
	}
	return run.Execute(ctx, run.Execution{
		Graph: g, Node: t.Node, Step: t.Step, Visit: t.Visit, Parallel: t.Parallel,
		Record: r, Events: job.Events, Budget: point.Budget, Worked: t.Worked,
	})
}
