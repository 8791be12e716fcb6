package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Graph is the workflow of a run: the loop over the super-steps of its graph. It touches nothing but its arguments and what
// Temporal records, so that a replay of the history leads to the same state.
func Graph(ctx workflow.Context, start Start) (Result, error) {
	x, err := newExecution(ctx, start)
	if err != nil {
		return Result{}, temporal.NewNonRetryableApplicationError(err.Error(), string(fault.CodeOf(err)), nil)
	}
	if err := x.handle(ctx); err != nil {
		return Result{}, err
	}
	return x.drive(ctx)
}

// execution is a run at work. The coroutines of a workflow take turns, so it needs no lock.
type execution struct {
	start Start
	id    string
	plan  *graph.Plan

	pr     graph.Progress
	usage  chat.Usage       // of the super-steps done
	tasks  map[string]*task // of the super-step that is not over
	order  []*task          // the same, ascending by node
	slots  workflow.Semaphore
	room   room
	began  time.Time // since when the run has worked without a rest
	status run.Status
	ended  *Failure // why the run did not come to its end

	letters  []string          // ids of the last letters that were read
	numbered int               // signals that were sent to the run
	signals  []run.Signal      // that no wait has taken yet, in order
	shared   bool              // the budget is kept by the workflow, so that nodes run side by side
	events   []json.RawMessage // the last of them
	kept     int               // bytes of events
	numbers  int               // how many events there were
}

// task is a task of the super-step that is not over.
type task struct {
	OpenTask
	graph.Task

	working  bool // an activity is at work, or is about to be
	answered bool // an answer came that the activity does not know
	until    time.Time
	failure  *Failure

	reserved []Reservation // by the activity, for calls that are under way

	lost   bool // others were faster, see [graph.Plan.Losers]
	cancel workflow.CancelFunc
}

func newExecution(ctx workflow.Context, start Start) (*execution, error) {
	g, err := start.Info.RecordedGraph()
	if err != nil {
		return nil, err
	}
	p := start.Point
	x := &execution{
		start: start, id: workflow.GetInfo(ctx).WorkflowExecution.ID, plan: graph.NewPlan(g), usage: p.Last.Usage,
		began: workflow.Now(ctx), status: run.Running, tasks: make(map[string]*task), events: p.Events, numbers: p.Numbers, letters: p.Letters, signals: p.Signals, numbered: p.Numbered,
	}
	x.pr = p.Last.Progress(x.plan)
	for _, ev := range x.events {
		x.kept += len(ev)
	}
	width := max(1, g.Settings.MaxConcurrency)
	if width > 1 && (g.Settings.Budget.Tokens > 0 || g.Settings.Budget.USD > 0) {
		if workflow.GetVersion(ctx, reserveUpdate, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
			width = 1 // as the run began
		} else {
			x.shared = true
		}
	}
	x.slots = workflow.NewSemaphore(ctx, int64(width))
	return x, nil
}

// handle sets what answers queries and takes what comes from outside.
func (x *execution) handle(ctx workflow.Context) error {
	listen(ctx, stepsSignal, func(_ workflow.Context, b Batch) { x.take(b) })
	listen(ctx, answerSignal, func(ctx workflow.Context, l Letter) {
		if err := x.answer(ctx, l); err != nil {
			x.emit(ctx, event.Source{}, event.Warning{Text: "an answer was not taken: " + err.Error()})
		}
	})
	listen(ctx, signalSignal, func(ctx workflow.Context, s Signal) {
		err := x.admitSignal(ctx, s)
		if err == nil {
			err = x.signal(ctx, s)
		}
		if err != nil {
			x.emit(ctx, event.Source{}, event.Warning{Text: "a signal was not taken: " + err.Error()})
		}
	})
	return errors.Join(
		workflow.SetUpdateHandlerWithOptions(ctx, signalUpdate, x.signal, workflow.UpdateHandlerOptions{Validator: func(ctx workflow.Context, s Signal) error {
			return refusal(x.admitSignal(ctx, s))
		}}),
		workflow.SetUpdateHandler(ctx, reserveUpdate, x.reserve),
		workflow.SetQueryHandler(ctx, statusQuery, x.report),
		workflow.SetQueryHandler(ctx, stepsQuery, x.page),
		workflow.SetQueryHandler(ctx, pointQuery, func() (Start, error) { return x.next(), nil }),
		workflow.SetUpdateHandlerWithOptions(ctx, answerUpdate, x.answer, workflow.UpdateHandlerOptions{Validator: x.validate}),
	)
}

// listen has take called with each signal of a name, one after the other, until the workflow ends.
func listen[T any](ctx workflow.Context, name string, take func(workflow.Context, T)) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		signals := workflow.GetSignalChannel(ctx, name)
		for {
			var x T
			if !signals.Receive(ctx, &x) {
				return
			}
			take(ctx, x)
		}
	})
}

// drain takes what activities have recorded up to now.
func (x *execution) drain(ctx workflow.Context) {
	signals := workflow.GetSignalChannel(ctx, stepsSignal)
	for {
		var b Batch
		if !signals.ReceiveAsync(&b) {
			return
		}
		x.take(b)
	}
}

// drive takes one super-step after the other.
func (x *execution) drive(ctx workflow.Context) (Result, error) {
	if !x.start.Point.Continued {
		def := x.plan.Graph()
		x.emit(ctx, event.Source{}, event.Started{Graph: def.Name, Node: def.Start, Resumed: x.start.Point.Resumed})
	}
	for !x.pr.Done && !x.pr.Undone() {
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && len(x.order) == 0 {
			next := x.next()
			next.Point.Continued, next.Point.Resumed = true, false
			return Result{}, workflow.NewContinueAsNewError(ctx, WorkflowName, next)
		}
		if err := x.superStep(ctx); err != nil {
			var undoing bool
			if ctx, undoing = x.undo(ctx, err); !undoing {
				return Result{}, x.end(ctx, err)
			}
		}
	}
	if x.pr.Undone() {
		return Result{}, x.end(ctx, run.UndoneErrorOf(x.pr, nil))
	}
	x.status = run.Done
	result := Result{Output: x.pr.Output, Steps: x.pr.Step, Failures: x.pr.Failures, Usage: x.usage}
	fin := event.Finished{Output: x.pr.Output, Steps: x.pr.Step, Failures: x.pr.Failures, Unhandled: x.pr.Unhandled, Usage: x.usage}
	if x.pr.Unhandled > 0 { // the run is done, and has an output all the same
		x.ended = failureOf(run.FailuresError(x.pr.Unhandled, x.pr.State))
		fin.Error, fin.Code = x.ended.Message, string(x.ended.Code)
		result.Failure = x.ended
	}
	x.emit(ctx, event.Source{}, fin)
	return result, nil
}

// end returns the error of a workflow that ends without an output.
func (x *execution) end(ctx workflow.Context, err error) error {
	x.drain(ctx)
	x.status, x.ended = run.Failed, failureOf(err)
	switch {
	case temporal.IsCanceledError(err):
		x.status, x.ended = run.Canceled, &Failure{Code: fault.Canceled, Message: canceledText}
	case x.ended.Code == fault.Canceled: // and undone
		x.status = run.Canceled
	}
	x.emit(ctx, event.Source{}, event.Finished{
		Steps: x.pr.Step, Failures: x.pr.Failures, Usage: x.usageWithout(nil), Error: x.ended.Message, Code: string(x.ended.Code),
	})
	if x.status == run.Canceled {
		return temporal.NewCanceledError()
	}
	return temporal.NewApplicationErrorWithOptions(x.ended.Message, string(x.ended.Code), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{x.ended},
	})
}

const canceledText = "the run was canceled"

// undo begins to undo the effects of a run that has failed with err or was canceled. It returns the context in which that is done. The result is false if there
// is nothing to undo.
func (x *execution) undo(ctx workflow.Context, err error) (workflow.Context, bool) {
	x.drain(ctx)
	canceled := temporal.IsCanceledError(err)
	if canceled {
		err = fault.New(fault.Canceled, canceledText)
	}
	var done []run.TaskRecord
	for _, t := range x.order {
		if t.Done != nil {
			done = append(done, *t.Done)
		}
	}
	next, ok := run.Undo(x.plan, x.pr, done, err)
	if !ok {
		return ctx, false
	}
	if canceled {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	var nodes []string
	for _, e := range slices.Backward(next.Effects) {
		nodes = append(nodes, e.Node)
	}
	x.emit(ctx, event.Source{Step: next.Step}, event.Undoing{Nodes: nodes, Error: next.Undoing.Error})
	x.usage = x.usageWithout(nil)
	x.pr, x.tasks, x.order = next, make(map[string]*task), nil
	return ctx, true
}

// failureOf returns what an error says to the user.
func failureOf(err error) *Failure {
	return &Failure{Code: fault.CodeOf(err), Message: err.Error(), Hint: Hint(fault.HintOf(err))}
}

// superStep runs the frontier.
func (x *execution) superStep(ctx workflow.Context) error {
	tasks, err := run.NextTasks(x.plan, x.pr, workflow.Now(ctx).Sub(x.began))
	if err != nil {
		return err
	}
	parallel := len(tasks) > 1
	if parallel {
		x.emit(ctx, event.Source{Step: x.pr.Step + 1}, event.StepStarted{Nodes: x.pr.Frontier})
	}
	x.open(tasks)
	x.race()
	done := workflow.NewWaitGroup(ctx)
	for _, t := range x.order {
		done.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer done.Done()
			ctx, t.cancel = workflow.WithCancel(ctx)
			defer t.cancel()
			if !t.lost {
				x.execute(ctx, t, parallel)
			}
			if t.lost {
				x.lose(ctx, t, parallel)
			} else if t.Done != nil {
				x.race()
			}
		})
	}
	done.Wait(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	records := make([]run.TaskRecord, len(x.order))
	for i, t := range x.order {
		if t.failure != nil && x.pr.Undoing != nil && !slices.Contains([]fault.Code{fault.Suspended, fault.Limit, fault.Canceled}, t.failure.Code) {
			t.Done = x.failedRecord(ctx, t) // the next compensation follows
		} else if t.failure != nil && t.failure.Code != fault.Suspended {
			return fault.Wrap(t.failure.Code, &graph.NodeError{Node: t.OpenTask.Node, Err: t.failure.Err()}, "").WithHint("%s", t.failure.Hint)
		}
		if t.Done != nil {
			records[i] = *t.Done
		}
	}
	next, err := run.Fold(x.plan, x.pr, records, x.id)
	if err != nil {
		return err
	}
	for _, r := range records {
		x.usage = x.usage.Add(r.Visit.Usage)
	}
	if before := x.pr.Undoing; before != nil && len(next.Undoing.Lost) > len(before.Lost) {
		x.emit(ctx, event.Source{Step: next.Step}, event.Warning{Text: "could not be undone: " + next.Undoing.Lost[len(next.Undoing.Lost)-1].String()})
	}
	x.pr, x.tasks, x.order = next, make(map[string]*task), nil
	if parallel && !next.Done {
		x.emit(ctx, event.Source{Step: next.Step}, event.StepFinished{Next: next.Frontier})
	}
	return nil
}

// open sets the tasks of a super-step to the ones that are not over, with what is known of them.
func (x *execution) open(tasks []graph.Task) {
	known := x.start.Point.Open
	x.start.Point.Open = nil
	for _, g := range tasks {
		t := &task{Task: g, OpenTask: OpenTask{Node: g.Node.ID}}
		if i := slices.IndexFunc(known, func(o OpenTask) bool { return o.Node == g.Node.ID }); i >= 0 {
			t.OpenTask = known[i]
		}
		t.working = t.Done == nil
		x.tasks[t.OpenTask.Node], x.order = t, append(x.order, t)
	}
}

// race cancels the tasks that have lost, as far as others are finished by now.
func (x *execution) race() {
	var finished []graph.Result
	for _, t := range x.order {
		if t.Done != nil {
			finished = append(finished, t.Done.Result)
		}
	}
	for _, node := range x.plan.Losers(x.pr, finished) {
		t := x.tasks[node]
		t.lost = true
		if t.cancel != nil {
			t.cancel()
		}
	}
}

// visit returns the visit of a task that has no result.
func (t *task) visit(ctx workflow.Context) run.Visit {
	v := run.Visit{Step: t.Step, Node: t.OpenTask.Node, Type: t.Task.Node.Type, Number: t.Visit, Started: workflow.Now(ctx)}
	for _, s := range t.Steps {
		v.Usage = v.Usage.Add(s.used())
	}
	return v
}

// failedRecord returns the record of a compensation that failed.
func (x *execution) failedRecord(ctx workflow.Context, t *task) *run.TaskRecord {
	v := t.visit(ctx)
	v.Failed, v.Error = true, t.failure.Message
	return &run.TaskRecord{Step: t.Step, Result: graph.Result{Node: v.Node, Err: t.failure.Err()}, Visit: v}
}

// lose ends a task that has lost.
func (x *execution) lose(ctx workflow.Context, t *task, parallel bool) {
	v := t.visit(ctx)
	v.Canceled = true
	t.Done = &run.TaskRecord{Step: t.Step, Result: graph.Result{Node: v.Node, Canceled: true}, Visit: v}
	t.failure, t.Waits = nil, nil
	x.emit(ctx, event.Source{Step: t.Step, Node: v.Node}, event.NodeFinished{NodeType: string(v.Type), Canceled: true, Parallel: parallel})
}

// execute has activities execute a task until it is finished or has failed. It also returns if the task waits and
// another one has failed.
func (x *execution) execute(ctx workflow.Context, t *task, parallel bool) {
	if t.Done != nil {
		return
	}
	defer func() { t.working = false }()
	for lost := 0; ; {
		before := len(t.Steps)
		out, err := x.attempt(ctx, t, parallel)
		x.drain(ctx)
		t.reserved = nil
		for _, ev := range out.Events {
			x.keep(ev)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if t.failure = whyFailed(err); t.failure != nil {
				return
			}
			// The worker stopped or died. What it recorded is a part of the next input.
			if lost++; len(t.Steps) > before {
				lost = 1
			}
			if workflow.Sleep(ctx, pause(lost)) != nil {
				return
			}
		case out.Failure == nil:
			t.Done, t.Waits = out.Done, nil
			return
		case out.Failure.Code != fault.Suspended:
			t.failure = out.Failure
			return
		case len(t.Waits) == 0 && !t.answered && out.Failure.Until.IsZero():
			t.failure = out.Failure // it waits for nothing that could come
			t.failure.Code = fault.Failure
			return
		default:
			if lost = 0; !x.wait(ctx, t, out.Failure.Until) {
				t.failure = out.Failure
				return
			}
		}
	}
}

// pause returns for how long a task waits that has lost its worker several times in a row without a new step.
func pause(lost int) time.Duration {
	if lost < 3 {
		return 0
	}
	return min(time.Second<<min(lost-3, 10), time.Minute)
}

// whyFailed returns why an activity failed for good, nil if it must be executed again.
func whyFailed(err error) *Failure {
	var timeout *temporal.TimeoutError
	var app *temporal.ApplicationError
	switch {
	case errors.As(err, &timeout):
		return nil
	case errors.As(err, &app) && (app.Type() == stoppedType || app.Type() == lostType):
		return nil
	}
	return failureOf(err)
}

// attempt executes a task once. The error is that of the activity, and not of the node.
func (x *execution) attempt(ctx workflow.Context, t *task, parallel bool) (out Outcome, err error) {
	t.working = true
	if err := x.slots.Acquire(ctx, 1); err != nil {
		return out, err
	}
	defer x.slots.Release(1)
	t.Attempt++
	t.answered = false
	beat := x.start.Heartbeat
	if beat <= 0 {
		beat = DefaultHeartbeat
	}
	from := run.CheckpointOf(x.plan, x.pr, x.usageWithout(t))
	in := Task{
		Info: x.start.Info, From: from, Node: t.OpenTask.Node, Step: t.Step, Visit: t.Visit, Attempt: t.Attempt, Parallel: parallel,
		Steps: t.Steps, Worked: workflow.Now(ctx).Sub(x.began), Terms: x.start.Terms, Heartbeat: beat,
		Reserves: x.shared && parallel,
	}
	n, err := size(in)
	if n > maxPayload {
		in.Steps, in.Further = nil, len(t.Steps)
		n, err = size(in)
	}
	if err == nil {
		err = checkSize(fmt.Sprintf("the state before node %q", in.Node), n)
	}
	if err != nil {
		return Outcome{Failure: failureOf(err)}, nil
	}
	if err := x.room.take(ctx, n); err != nil {
		return out, err
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * 365 * 24 * time.Hour, // what bounds a node is its own timeout
		HeartbeatTimeout:    beat,
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1}, // another execution gets the steps of this one
		Summary:             in.Node,
	})
	err = workflow.ExecuteActivity(ctx, ActivityName, in).Get(ctx, &out)
	return out, err
}

// page answers a query of an activity for steps of its task: as many as fit into one message, at least one.
func (x *execution) page(p Page) ([]Step, error) {
	t := x.tasks[p.Node]
	if t == nil || t.Attempt != p.Attempt || p.From < 0 || p.From >= len(t.Steps) {
		return nil, fmt.Errorf("there is no step %d of execution %d of node %q", p.From, p.Attempt, p.Node)
	}
	end, room := p.From, maxPayload
	for end < len(t.Steps) {
		n, err := size(t.Steps[end])
		if err != nil {
			return nil, err
		}
		if room -= n + 1; room < 0 && end > p.From {
			break
		}
		end++
	}
	return t.Steps[p.From:end], nil
}

// maxCommands bounds what a workflow sends at once, in bytes: servers accept 4 MiB.
const maxCommands = 3_000_000

// room is what a workflow may still send before it hears of the server again.
type room struct {
	at   time.Time // when it last sent something; the time of a workflow stands still until it hears of the server
	sent int       // bytes then
}

// take returns when n bytes can be sent with what is sent together with them.
func (r *room) take(ctx workflow.Context, n int) error {
	for {
		if now := workflow.Now(ctx); !now.Equal(r.at) {
			r.at, r.sent = now, 0
		}
		if r.sent == 0 || r.sent+n <= maxCommands {
			r.sent += n
			return nil
		}
		if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// usageWithout returns what the run has used without the recorded steps of a task.
func (x *execution) usageWithout(of *task) chat.Usage {
	used := x.usage
	for _, t := range x.order {
		switch {
		case t == of:
		case t.Done != nil:
			used = used.Add(t.Done.Visit.Usage)
		default:
			for _, s := range t.Steps {
				used = used.Add(s.used())
			}
		}
	}
	return used
}

// wait returns when a task that waits can resume: with an answer, at the deadline of a question, or at a time. It returns
// false if the run ends instead.
func (x *execution) wait(ctx workflow.Context, t *task, until time.Time) bool {
	t.working, t.until = false, until
	if x.rests() {
		x.status = run.Suspended
	}
	for _, q := range t.Waits {
		if !q.Deadline.IsZero() && (until.IsZero() || q.Deadline.Before(until)) {
			until = q.Deadline
		}
	}
	ready := func() bool { return t.answered || x.arrived(ctx, t) || x.fails() }
	var err error
	if until.IsZero() {
		err = workflow.Await(ctx, ready)
	} else {
		// A worker whose clock is slow must not come back at once again and again.
		_, err = workflow.AwaitWithTimeout(ctx, max(until.Sub(workflow.Now(ctx)), time.Second), ready)
	}
	if err != nil {
		return false
	}
	delivered, err := x.deliver(ctx, t)
	if err != nil || !t.answered && !delivered && x.fails() {
		return false
	}
	for _, q := range slices.Clone(t.Waits) {
		if now := workflow.Now(ctx); q.Default != nil && !q.Deadline.IsZero() && !now.Before(q.Deadline) {
			if x.settle(ctx, t, q, *q.Default) != nil {
				return false
			}
		}
	}
	if x.status == run.Suspended {
		x.status, x.began = run.Running, workflow.Now(ctx)
	}
	t.working, t.until = true, time.Time{}
	return true
}

// deliver ends a wait of a task that is over: with the first signal for it, or because its time has come. It reports whether there was one.
func (x *execution) deliver(ctx workflow.Context, t *task) (bool, error) {
	for _, q := range t.Waits {
		if q.Wait == run.ForAnswer {
			continue
		}
		var taken *run.Signal
		if s, ok := run.FirstOf(x.signals, q.Signal, q.Key, q.Deadline); ok && q.Wait == run.ForSignal {
			taken = &s
			x.signals = slices.DeleteFunc(x.signals, func(other run.Signal) bool { return other.Number == s.Number })
		} else if q.Deadline.IsZero() || workflow.Now(ctx).Before(q.Deadline) {
			continue
		}
		step, body, err := q.Over(taken)
		if err != nil {
			return false, err
		}
		t.record(Step{Key: q.Key, Kind: step.Kind, Name: step.Name, Result: body})
		if taken != nil {
			v, err := value.ParseJSON(taken.Value)
			if err != nil {
				return false, err
			}
			x.emit(ctx, event.Source{Step: t.Step, Node: t.OpenTask.Node}, event.Signal{ID: q.ID, Name: q.Signal, Value: v})
		}
		return true, nil
	}
	return false, nil
}

// arrived reports whether a wait of a task is over.
func (x *execution) arrived(ctx workflow.Context, t *task) bool {
	return slices.ContainsFunc(t.Waits, func(q Question) bool { return q.Wait != run.ForAnswer && q.Arrived(x.signals, workflow.Now(ctx)) })
}

// maxSignals bounds how many signals a run may have that no wait has taken.
const maxSignals = 1000

// admitSignal returns why the run does not take a signal.
func (x *execution) admitSignal(_ workflow.Context, s Signal) error {
	h := run.History{Info: x.start.Info}
	h.Info.ID, h.Info.Status = x.id, x.status
	for _, t := range x.order {
		for _, q := range t.Waits {
			h.Waiting = append(h.Waiting, q.Pending)
		}
	}
	if err := h.AcceptSignal(s.Name, s.Value); err != nil {
		return err
	}
	if len(x.signals) >= maxSignals {
		return fault.New(fault.Limit, "run %s has %d signals that were not taken", x.id, maxSignals)
	}
	return nil
}

// signal keeps a signal until a wait takes it.
func (x *execution) signal(ctx workflow.Context, s Signal) error {
	if s.ID != "" {
		if slices.Contains(x.letters, s.ID) {
			return nil
		}
		x.remember(s.ID)
	}
	x.numbered++
	x.signals = append(x.signals, run.Signal{Number: x.numbered, Name: s.Name, Value: s.Value.AppendJSON(nil), At: workflow.Now(ctx)})
	return nil
}

// remember notes that a letter was read.
func (x *execution) remember(letter string) {
	if x.letters = append(x.letters, letter); len(x.letters) > rememberedLetters {
		x.letters = x.letters[1:]
	}
}

// reserve answers an activity that asks for room in the budget: once there is some, or with the error that there is none.
func (x *execution) reserve(ctx workflow.Context, r Reservation) error {
	var wait bool
	var refused error
	decided := func() bool {
		t := x.tasks[r.Node]
		if t == nil || t.Attempt != r.Attempt || t.Done != nil || !t.working {
			wait, refused = false, temporal.NewNonRetryableApplicationError("the execution is over", lostType, nil)
			return true
		}
		var underWay []run.Call
		for _, o := range x.order {
			for _, held := range o.reserved {
				underWay = append(underWay, held.Call)
			}
		}
		if wait, refused = run.Admit(x.plan.Graph().Settings.Budget, x.usageWithout(nil), underWay, r.Call); !wait && refused == nil {
			t.reserved = append(t.reserved, r)
		}
		return !wait
	}
	if err := workflow.Await(ctx, decided); err != nil {
		return err
	}
	return refusal(refused)
}

// rests reports whether no task is at work.
func (x *execution) rests() bool {
	return !slices.ContainsFunc(x.order, func(t *task) bool { return t.working })
}

// fails reports whether a task has failed and no other one is at work: the run is over, and no answer mends it.
func (x *execution) fails() bool {
	return x.rests() && slices.ContainsFunc(x.order, func(t *task) bool { return t.failure != nil && t.failure.Code != fault.Suspended })
}

// take records what an activity sent, unless another execution of the task has begun since: what that one knows is not
// to change.
func (x *execution) take(b Batch) {
	t := x.tasks[b.Node]
	if t == nil || t.Step != b.Step || t.Attempt != b.Attempt || t.Done != nil {
		return
	}
	for _, c := range b.Changes {
		t.change(c)
	}
	for _, ev := range b.Events {
		x.keep(ev)
	}
}

func (t *task) change(c Change) {
	switch {
	case c.Begin != nil:
		if t.step(c.Begin.Key) < 0 {
			s := *c.Begin
			s.Begun = true
			t.Steps = append(t.Steps, s)
		}
	case c.Record != nil:
		t.record(*c.Record)
	case c.Question != nil:
		q := *c.Question
		q.Step, q.Node = t.Step, t.OpenTask.Node
		if t.step(q.Key) < 0 && !slices.ContainsFunc(t.Waits, func(w Question) bool { return w.ID == q.ID }) {
			t.Waits = append(t.Waits, q)
		}
	case c.Settle != "":
		t.reserved = slices.DeleteFunc(t.reserved, func(r Reservation) bool { return r.ID == c.Settle })
	default:
		if i := t.step(c.Forget); i >= 0 && t.Steps[i].Result == nil {
			t.Steps = slices.Delete(t.Steps, i, i+1)
		}
	}
}

// step returns the index of the step with a key, -1 for none.
func (t *task) step(key string) int {
	return slices.IndexFunc(t.Steps, func(s Step) bool { return s.Key == key })
}

// record keeps the result of a step, unless there is one.
func (t *task) record(s Step) {
	t.Waits = slices.DeleteFunc(t.Waits, func(q Question) bool { return q.Key == s.Key })
	switch i := t.step(s.Key); {
	case i < 0:
		t.Steps = append(t.Steps, s)
	case t.Steps[i].Result == nil:
		t.Steps[i] = s
	}
}

// openWaits returns the questions and the other waits of the run.
func (x *execution) openWaits() (questions, others []Question) {
	for _, t := range x.order {
		for _, q := range t.Waits {
			if q.Wait == run.ForAnswer {
				questions = append(questions, q)
			} else {
				others = append(others, q)
			}
		}
	}
	return questions, others
}

// validate refuses a letter of which one answer is not one to a question that waits.
func (x *execution) validate(ctx workflow.Context, l Letter) error {
	_, err := x.accept(ctx, l)
	return refusal(err)
}

// refusal returns an error of an update as one that the client can show.
func refusal(err error) error {
	if err == nil || temporal.IsApplicationError(err) {
		return err
	}
	f := failureOf(err)
	return temporal.NewApplicationErrorWithOptions(f.Message, string(f.Code), temporal.ApplicationErrorOptions{Details: []any{*f}})
}

// accept returns what a letter means, by the names of the questions. One that was read before means nothing.
func (x *execution) accept(ctx workflow.Context, l Letter) (map[string]string, error) {
	if slices.Contains(x.letters, l.ID) {
		return nil, nil
	}
	h := run.History{Info: x.start.Info}
	h.Info.ID, h.Info.Active = x.id, x.status == run.Running
	questions, _ := x.openWaits()
	for _, q := range questions {
		h.Pending = append(h.Pending, q.Pending)
	}
	for _, t := range x.order {
		for _, s := range t.Steps {
			h.Steps = append(h.Steps, run.StepRecord{Kind: s.Kind, Name: s.Name})
		}
	}
	if len(l.Typed) > 0 {
		return h.AcceptTyped(l.Typed, workflow.Now(ctx))
	}
	if err := run.NotLists(h.Pending, l.Lists); err != nil {
		return nil, err
	}
	return h.Accept(l.Answers, workflow.Now(ctx))
}

// rememberedLetters bounds how many letters a workflow remembers.
const rememberedLetters = 100

// answer records the answers of a letter.
func (x *execution) answer(ctx workflow.Context, l Letter) error {
	accepted, err := x.accept(ctx, l)
	if err != nil {
		return err
	}
	x.remember(l.ID)
	for _, t := range x.order {
		for _, q := range slices.Clone(t.Waits) {
			text, ok := accepted[q.ID]
			if !ok {
				continue
			}
			if err := x.settle(ctx, t, q, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle records the answer to a question.
func (x *execution) settle(ctx workflow.Context, t *task, q Question, text string) error {
	result, err := value.Marshal(text)
	if err != nil {
		return err
	}
	t.record(Step{Key: q.Key, Kind: steps.Question, Name: q.ID, Result: result})
	t.answered = true
	x.emit(ctx, event.Source{Step: t.Step, Node: t.OpenTask.Node}, event.Answer{ID: q.ID, Text: text})
	return nil
}

// keptEvents bounds the events that a workflow has, in bytes. Those before are in its history only.
const keptEvents = 256 << 10

// emit makes something that the scheduler does an event of the run.
func (x *execution) emit(ctx workflow.Context, from event.Source, body event.Body) {
	from.Run, from.Agent = x.id, x.start.Info.Agent
	text, err := event.Event{Time: workflow.Now(ctx), Source: from, Body: body}.MarshalJSON()
	if err == nil { // all bodies can be marshalled
		x.keep(text)
	}
}

// keep adds an event to those of the run.
func (x *execution) keep(ev json.RawMessage) {
	x.events = append(x.events, ev)
	x.numbers++
	for x.kept += len(ev); x.kept > keptEvents && len(x.events) > 1; x.events = x.events[1:] {
		x.kept -= len(x.events[0])
	}
}

// report answers a query for the status of the run.
func (x *execution) report(r Request) (Status, error) {
	s := Status{
		Agent: x.start.Info.Agent, Status: x.status, Step: x.pr.Step, Frontier: x.pr.Frontier, Failures: x.pr.Failures,
		Usage: x.usageWithout(nil), Output: x.pr.Output, Failure: x.ended, Next: x.numbers,
	}
	s.Waits, s.Others = x.openWaits()
	for _, t := range x.order {
		if !t.until.IsZero() && (s.Until.IsZero() || t.until.Before(s.Until)) {
			s.Until = t.until
		}
	}
	if r.State {
		state := x.pr.State.Object().Value()
		s.State = &state
	}
	if first := x.numbers - len(x.events); r.After >= 0 && r.After < x.numbers {
		s.Events = x.events[max(0, r.After-first):]
	}
	return s, nil
}

// next returns what another workflow continues with from here.
func (x *execution) next() Start {
	s := x.start
	s.Point = Point{Last: run.CheckpointOf(x.plan, x.pr, x.usage), Events: x.events, Numbers: x.numbers, Letters: x.letters, Signals: x.signals, Numbered: x.numbered, Resumed: true}
	for _, t := range x.order {
		s.Point.Open = append(s.Point.Open, t.OpenTask)
	}
	return s
}
