package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/workflow/run"
)

// Runs starts runs on a server, shows and answers them.
type Runs struct {
	Client    client.Client
	App       *app.App
	Queue     string                  // task queue of the workers
	Heartbeat time.Duration           // see [Start]
	Converter converter.DataConverter // of Client; nil for the default
}

// stopTime is for how long a worker that is stopped waits for its nodes.
const stopTime = 10 * time.Second

// NewWorker returns a worker that has not been started.
func (r *Runs) NewWorker() worker.Worker {
	w := worker.New(r.Client, r.Queue, worker.Options{
		WorkerStopTimeout:        stopTime,
		DeadlockDetectionTimeout: stopTime, // a large state takes its time on a busy machine
	})
	Register(w, &Nodes{App: r.App, Client: r.Client})
	return w
}

// Register makes the workflow and the activity known to a worker.
func Register(w worker.Registry, n *Nodes) {
	w.RegisterWorkflowWithOptions(Graph, workflow.RegisterOptions{Name: WorkflowName})
	w.RegisterActivityWithOptions(n.Execute, activity.RegisterOptions{Name: ActivityName})
}

// Start begins a run of a graph agent and returns its id.
func (r *Runs) Start(ctx context.Context, job run.Job, t Terms) (id string, err error) {
	data, err := r.input(job, t)
	if err != nil {
		return "", err
	}
	id = run.NewID()
	return id, r.execute(ctx, id, job.Info.Agent, data, enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
}

// begin starts a workflow.
func (r *Runs) begin(ctx context.Context, id string, s Start, policy enums.WorkflowIdReusePolicy) error {
	data, err := r.seal(s)
	if err != nil {
		return err
	}
	return r.execute(ctx, id, s.Info.Agent, data, policy)
}

// execute starts a workflow with its input.
func (r *Runs) execute(ctx context.Context, id, agent string, data json.RawMessage, policy enums.WorkflowIdReusePolicy) error {
	_, err := r.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: r.Queue, WorkflowIDReusePolicy: policy, WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary: "agent " + agent,
	}, WorkflowName, data)
	return r.explain(id, err)
}

// Status returns how a run stands. Secrets in it are marks.
func (r *Runs) Status(ctx context.Context, id string, of Request) (Status, error) {
	s, err := r.ask(ctx, id, of)
	if err != nil || s.Status.Over() {
		return s, err
	}
	// The server may have closed the workflow since, or by force: then it cannot say so itself.
	d, err := r.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return s, r.explain(id, err)
	}
	if d.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return s, nil
	}
	if s, err = r.ask(ctx, id, of); err == nil && !s.Status.Over() {
		s.Status, s.Waits = run.Canceled, nil
		s.Failure = &Failure{Code: fault.Canceled, Message: "the workflow of the run was ended at the server"}
	}
	return s, err
}

// ask asks the workflow of a run how it stands.
func (r *Runs) ask(ctx context.Context, id string, of Request) (Status, error) {
	var s Status
	data, err := r.query(ctx, id, statusQuery, of)
	if err == nil {
		err = json.Unmarshal([]byte(r.App.DisplaySealed(string(data))), &s)
	}
	return s, err
}

func (r *Runs) query(ctx context.Context, id, name string, args ...any) (json.RawMessage, error) {
	reply, err := r.Client.QueryWorkflow(ctx, id, "", name, args...)
	if err != nil {
		return nil, r.explain(id, err)
	}
	var data json.RawMessage
	return data, reply.Get(&data)
}

// answerTime is how long an answer waits for a worker that says whether it can be taken.
const answerTime = 5 * time.Second

// Answer answers questions of a run: with the answers of a letter, whose id it fills in. If no worker is there to
// look at them, they are on record nevertheless, and unchecked is true.
func (r *Runs) Answer(ctx context.Context, id string, l Letter) (unchecked bool, err error) {
	l.ID = run.NewID()
	return r.send(ctx, id, l.ID, answerUpdate, answerSignal, l)
}

// Signal gives a run a signal, whose id it fills in. If no worker is there to look at it, it is on record nevertheless, and unchecked is true.
func (r *Runs) Signal(ctx context.Context, id string, s Signal) (unchecked bool, err error) {
	s.ID = run.NewID()
	return r.send(ctx, id, s.ID, signalUpdate, signalSignal, s)
}

// send sends a message as an update, or as a signal if no worker is there.
func (r *Runs) send(ctx context.Context, id, message, update, signal string, x any) (unchecked bool, err error) {
	data, err := json.Marshal(x)
	if err != nil {
		return false, err
	}
	sealed := json.RawMessage(r.App.Seal(string(data)))
	soon, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	h, err := r.Client.UpdateWorkflow(soon, client.UpdateWorkflowOptions{
		UpdateID: message, WorkflowID: id, UpdateName: update, Args: []any{sealed}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(soon, nil)
	}
	var late *client.WorkflowUpdateServiceTimeoutOrCanceledError // it may come before the time is over here
	if ctx.Err() == nil && (err != nil && soon.Err() != nil || errors.As(err, &late)) {
		return true, r.explain(id, r.Client.SignalWorkflow(ctx, id, "", signal, sealed))
	}
	return false, r.explain(id, err)
}

// Resume resumes a run that is over without an output, where it stopped. One that is not over is left as it is.
func (r *Runs) Resume(ctx context.Context, id string, t Terms, c run.Continuation) error {
	s, err := r.Status(ctx, id, Request{After: -1})
	switch {
	case err != nil || !s.Status.Over():
		return err
	case s.Status == run.Done:
		return fault.New(fault.Usage, "run %s is done", id).WithHint("its output: loki-temporal --run %s", id)
	}
	data, err := r.query(ctx, id, pointQuery)
	if err != nil {
		return err
	}
	var start Start
	if err := json.Unmarshal([]byte(r.App.Unseal(string(data))), &start); err != nil {
		return fmt.Errorf("reading the record of run %s: %w", id, err)
	}
	start.Info.ID = id
	if last := start.Point.Last; last.Undoing != nil && len(last.Effects) == 0 {
		return withHint(run.UndoneRefusal(id, last))
	}
	c.ID, c.Force, c.Yes, c.Here, c.Command = id, t.Force, t.Yes, true, "loki-temporal --resume "+id
	job, err := r.App.Runs().JobOf(ctx, start.Info, start.Point.Last, c)
	if err != nil {
		return err
	}
	if job.Release != nil {
		job.Release()
	}
	start.Info.Definition, start.Info.Fingerprint, start.Info.Files = job.Info.Definition, job.Info.Fingerprint, job.Info.Files
	start.Terms, start.Heartbeat = t, r.Heartbeat
	return r.begin(ctx, id, start, enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY)
}

// withHint returns an error of the engine with the commands of this program.
func withHint(err error) error {
	return fault.Wrap(fault.CodeOf(err), err, "").WithHint("%s", Hint(fault.HintOf(err)))
}

// Fork begins a new run from the state and the frontier that another one had after a super-step, -1 for the last one, and returns its id.
func (r *Runs) Fork(ctx context.Context, id string, step int, t Terms, c run.Continuation) (string, error) {
	data, err := r.query(ctx, id, pointQuery)
	if err != nil {
		return "", err
	}
	var old Start
	if err := r.unseal(data, &old); err != nil {
		return "", fmt.Errorf("reading the record of run %s: %w", id, err)
	}
	from := old.Point.Last
	if step >= 0 && step != from.Step {
		if from, err = r.checkpoint(ctx, id, step); err != nil {
			return "", err
		}
		if old.Point.Last.Undoing != nil && from.Undoing == nil {
			from.Effects = nil // they are undone, or are about to be
		}
	}
	old.Info.ID = id
	c.Force, c.Yes, c.Here = t.Force, t.Yes, true
	job, err := r.App.Runs().ForkJob(ctx, old.Info, from, run.Fork{Continuation: c})
	if err != nil {
		return "", withHint(err)
	}
	if job.Release != nil {
		job.Release()
	}
	fork := run.NewID()
	return fork, r.begin(ctx, fork, Start{Info: job.Info, Terms: t, Heartbeat: r.Heartbeat, Point: Point{Last: job.Start}}, enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
}

// unseal reads a message that was sealed.
func (r *Runs) unseal(data json.RawMessage, x any) error {
	return json.Unmarshal([]byte(r.App.Unseal(string(data))), x)
}

// checkpoint finds the checkpoint after a super-step in the history of a run: the tasks of the next one began with it.
func (r *Runs) checkpoint(ctx context.Context, id string, step int) (run.Checkpoint, error) {
	read := r.Converter
	if read == nil {
		read = converter.GetDefaultDataConverter()
	}
	input := func(p *common.Payloads, x any) error {
		var sealed json.RawMessage
		if err := read.FromPayloads(p, &sealed); err != nil {
			return fmt.Errorf("reading the history of run %s: %w", id, err)
		}
		return r.unseal(sealed, x)
	}
	for part := ""; ; { // a long run is several workflows
		before := ""
		events := r.Client.GetWorkflowHistory(ctx, id, part, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			ev, err := events.Next()
			if err != nil {
				return run.Checkpoint{}, r.explain(id, err)
			}
			if a := ev.GetWorkflowExecutionStartedEventAttributes(); a != nil {
				var s Start
				if err := input(a.GetInput(), &s); err != nil || s.Point.Last.Step == step {
					return s.Point.Last, err
				}
				if s.Point.Last.Step > step {
					before = a.GetContinuedExecutionRunId()
					break
				}
			}
			if a := ev.GetActivityTaskScheduledEventAttributes(); a != nil {
				var t Task
				if err := input(a.GetInput(), &t); err != nil || t.From.Step == step {
					return t.From, err
				}
			}
		}
		if before == "" {
			return run.Checkpoint{}, fault.New(fault.NotFound, "the history of run %s has no super-step %d", id, step).
				WithHint("fork the last one: loki-temporal --fork %s", id)
		}
		part = before
	}
}

// Cancel ends a run. Its nodes stop, and what it did is undone if its graph has compensations; without them it can be resumed.
func (r *Runs) Cancel(ctx context.Context, id string) error {
	return r.explain(id, r.Client.CancelWorkflow(ctx, id, ""))
}

const (
	pollTime     = 500 * time.Millisecond // between two questions how a run stands
	patienceTime = time.Minute            // without a worker that answers them
)

// waitsForSignal reports whether the run resumes with a signal alone.
func (s *Status) waitsForSignal() bool {
	return len(s.Others) > 0 && !slices.ContainsFunc(s.Others, func(q Question) bool { return q.Wait != run.ForSignal || !q.Deadline.IsZero() }) && s.Until.IsZero()
}

// Wait returns how a run stands once it is over or rests, that is, waits for answers or signals, and not for a time. It passes on the events. The error is
// that of Status once no worker has answered for a minute.
func (r *Runs) Wait(ctx context.Context, id string, show func(json.RawMessage) error) (Status, error) {
	answered := time.Now()
	for after := 0; ; {
		s, err := r.Status(ctx, id, Request{After: after})
		if noWorker(err) && time.Since(answered) < patienceTime && retry.Sleep(ctx, pollTime) == nil {
			continue
		}
		if err != nil {
			return s, err
		}
		answered = time.Now()
		for _, ev := range s.Events {
			if err := show(ev); err != nil {
				return s, err
			}
		}
		after = s.Next
		if s.Status != run.Running && (s.Status != run.Suspended || len(s.Waits) > 0 || s.waitsForSignal()) {
			return s, nil
		}
		if err := retry.Sleep(ctx, pollTime); err != nil {
			return s, err
		}
	}
}

// noWorker reports whether an error of the server says that no worker answered a question.
func noWorker(err error) bool {
	var idle *serviceerror.FailedPrecondition
	var late *serviceerror.DeadlineExceeded
	return errors.As(err, &idle) || errors.As(err, &late) || errors.Is(err, context.DeadlineExceeded)
}

// explain returns an error of the server as one for the user.
func (r *Runs) explain(id string, err error) error {
	if err == nil {
		return nil
	}
	var app *temporal.ApplicationError
	var gone *serviceerror.NotFound
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &app):
		var f Failure
		if app.HasDetails() && app.Details(&f) == nil && f.Message != "" {
			return f.Err()
		}
		return fault.New(fault.Failure, "%s", app.Message())
	case errors.As(err, &gone):
		return fault.Wrap(fault.NotFound, err, "run %s", id).WithHint("its id may be wrong, or it is over and the server has forgotten it")
	case errors.As(err, &started):
		return fault.New(fault.Usage, "run %s is at work, or done", id).WithHint("see how it stands: loki-temporal --run %s", id)
	case noWorker(err):
		return fault.Wrap(fault.Failure, err, "run %s: no worker answers", id).
			WithHint("start one where the agent is installed: loki-temporal --worker")
	}
	return fault.Wrap(fault.CodeOf(err), err, "run %s", id)
}
