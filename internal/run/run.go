// Package run drives graph runs.
//
// The driver asks the pure scheduler of package graph for the tasks of a super-step,
// executes them side by side, each on its own draft of the state, waits for all of
// them and hands the results back. What a node does is the [Executor]'s business.
package run

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/chat"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/steps"
)

// Executor does the work of nodes. Its method may be called from several
// goroutines, and each call belongs to one.
type Executor interface {
	// Execute runs the task's node. It reads and writes the state through t.Draft
	// only, and reports a failure in the result's Err. When ctx is cancelled it
	// returns soon, with nothing left running. The result's Node and Writes are
	// filled in by the driver.
	Execute(ctx context.Context, t *Task) graph.Result
}

// Task is one node to execute, with everything the work may touch.
type Task struct {
	graph.Task
	Draft  *graph.Draft // the branch's view of the state
	Events event.Scope  // of the node
	Steps  steps.Steps  // record of the steps made

	Usage   chat.Usage // tokens used; the executor adds to it
	Retries int        // attempts made again; the executor counts them
}

// Options configure Run.
type Options struct {
	Plan    *graph.Plan
	Nodes   Executor
	Emitter event.Emitter // nil drops events
	Source  event.Source  // run, agent and depth of all events
	Now     func() time.Time

	// Start is where the run begins; see [StartCheckpoint].
	Start Checkpoint

	// Resumed says that the run goes on after an interruption.
	Resumed bool

	// Journal keeps the run so that it can be resumed. It is written, but not closed.
	// Nil keeps nothing.
	Journal Journal

	// Tasks are finished tasks of the super-step after Start. They are not run again.
	Tasks []TaskRecord

	// Budget is charged with what recovered tasks used; the executor charges the rest.
	// Nil bounds nothing.
	Budget *Budget
}

// Outcome is how a run went. It is filled as far as the run came, also on error.
type Outcome struct {
	Run      string // id of the run
	Output   string
	State    graph.State
	Steps    int // super-steps done
	Failures int // tolerated node failures
	Usage    chat.Usage
	Nodes    []NodeStats // in order of first execution
	Duration time.Duration
	Recorded bool // the journal has all of it, so that the run can be resumed
}

// NodeStats sums up the executions of one node.
type NodeStats struct {
	Node     string
	Type     graph.Type
	Visits   int
	Total    time.Duration // work only, without waiting for a slot
	Max      time.Duration
	Failures int // failed visits, tolerated ones included
	Usage    chat.Usage
}

// Run executes a graph from a checkpoint to an end node. All nodes of a super-step are
// waited for, also when one fails or ctx is cancelled: when Run returns, nothing of
// the run is running.
//
// With a journal, a run that did not end can be gone on with: from the last super-step
// committed, the tasks finished after it, and the steps recorded within the others.
func Run(ctx context.Context, o Options) (Outcome, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &driver{
		Options: o,
		begin:   o.Now(),
		usage:   o.Start.Usage,
		stats:   make(map[string]*NodeStats),
		slots:   make(chan struct{}, max(1, o.Plan.Graph().Settings.MaxConcurrency)),
	}
	emitter := o.Emitter
	if o.Journal != nil {
		var lose context.CancelCauseFunc
		ctx, lose = context.WithCancelCause(ctx)
		defer lose(nil)
		lease := o.Journal.Lease()
		defer context.AfterFunc(lease, func() { lose(context.Cause(lease)) })()
		d.keeper = &keeper{
			ctx: ctx, lose: lose, now: o.Now, journal: o.Journal, step: o.Start.Step,
			emitter: o.Emitter, source: o.Source, events: func() event.Scope { return d.events },
		}
		emitter = event.Tee(d.keeper, o.Emitter)
	}
	d.events = event.NewScope(emitter, o.Source, o.Now)
	for _, t := range o.Tasks {
		o.Budget.Spend(t.Visit.Usage)
	}
	if limit := o.Plan.Graph().Settings.Budget.Duration; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fault.New(fault.Limit, "the budget of %s is used up", limit).
			WithHint("raise settings.budget in %s", graph.FileName))
		defer cancel()
	}
	return d.run(ctx, o.Start.progress(o.Plan))
}

// driver is one run in progress. Only the goroutine of Run touches it, except slots,
// events and keeper.
type driver struct {
	Options
	events event.Scope
	keeper *keeper // nil keeps nothing
	begin  time.Time
	slots  chan struct{} // holds a token for every task that is at work
	stats  map[string]*NodeStats
	order  []string // nodes of stats, by first execution
	usage  chat.Usage
}

func (d *driver) run(ctx context.Context, pr graph.Progress) (Outcome, error) {
	g := d.Plan.Graph()
	err := d.events.Emit(ctx, event.Started{Graph: g.Name, Node: g.Start, Resumed: d.Resumed, NoSnapshots: !g.Settings.LogStateSnapshots})
	for err == nil && !pr.Done {
		pr, err = d.superStep(ctx, pr)
	}
	out := Outcome{
		Run: d.Source.Run, Output: pr.Output, State: pr.State, Steps: pr.Step, Failures: pr.Failures,
		Usage: d.usage, Nodes: d.nodeStats(), Duration: d.Now().Sub(d.begin),
		Recorded: d.keeper.works(),
	}
	fin := event.Finished{Output: out.Output, Duration: out.Duration, Steps: out.Steps, Failures: out.Failures, Usage: out.Usage}
	if err != nil {
		fin.Error, fin.Code = err.Error(), string(fault.CodeOf(err))
	}
	if over := d.Budget.Overrun(); over != "" {
		if emitErr := d.events.Emit(context.WithoutCancel(ctx), event.Warning{Text: over}); err == nil {
			err = emitErr
		}
	}
	// The end is told even when the run was cancelled.
	if emitErr := d.events.Emit(context.WithoutCancel(ctx), fin); err == nil {
		err = emitErr
	}
	if endErr := d.keeper.end(ctx, ending(out, err)); err == nil {
		err = endErr
	}
	return out, err
}

// ending is how the journal remembers the end of an execution.
func ending(out Outcome, err error) Ending {
	e := Ending{Status: Done, Output: out.Output}
	if err == nil {
		return e
	}
	e.Status, e.Error, e.Code = Failed, err.Error(), fault.CodeOf(err)
	switch e.Code {
	case fault.Canceled:
		e.Status = Canceled
	case fault.Suspended, fault.Limit:
		e.Status = Suspended
	}
	return e
}

func (d *driver) nodeStats() []NodeStats {
	stats := make([]NodeStats, len(d.order))
	for i, id := range d.order {
		stats[i] = *d.stats[id]
	}
	return stats
}

// superStep runs the frontier of pr and returns the progress after it.
func (d *driver) superStep(ctx context.Context, pr graph.Progress) (graph.Progress, error) {
	if err := context.Cause(ctx); err != nil {
		return pr, fmt.Errorf("stopped before super-step %d with %s: %w", pr.Step+1, strings.Join(pr.Frontier, ", "), err)
	}
	if s := d.Plan.Graph().Settings; s.HasTimeout && d.Now().Sub(d.begin) > s.Timeout {
		return pr, fault.New(fault.Limit, "the run timed out after %s, before super-step %d with %s", s.Timeout, pr.Step+1, strings.Join(pr.Frontier, ", ")).
			WithHint("raise settings.timeout in %s", graph.FileName)
	}
	tasks, err := d.Plan.Next(pr)
	if err != nil {
		if _, ok := errors.AsType[*graph.LimitError](err); ok {
			return pr, fault.Wrap(fault.Limit, err, "").WithHint("a script's _next leads back here; raise settings.max_loop_iterations if that is intended")
		}
		return pr, err
	}
	done, err := d.execute(ctx, pr, tasks)
	if err != nil {
		return pr, err
	}
	results := make([]graph.Result, len(done))
	visits := make([]Visit, len(done))
	for i := range done {
		d.count(&done[i])
		results[i], visits[i] = done[i].result, done[i].visit
	}
	if err := failure(results); err != nil {
		if fault.CodeOf(err) == fault.Suspended {
			err = d.keeper.waiting(err)
		}
		return pr, err
	}
	next, err := d.Plan.Apply(pr, results)
	if err != nil {
		if d.keeper.works() { // the results are on record, so that the same would come of them
			err = fault.Wrap(fault.CodeOf(err), err, "").
				WithHint("mend %s so that they can be merged, and go on with: loki --resume %s --force", graph.FileName, d.Source.Run)
		}
		return pr, err
	}
	if err := d.tellStep(ctx, pr, next, len(tasks)); err != nil {
		return pr, err
	}
	if d.keeper != nil {
		c := checkpoint(d.Plan, next)
		c.Usage = d.usage
		if err := d.keeper.commit(ctx, c, visits); err != nil {
			return pr, err
		}
	}
	return next, nil
}

// failure returns the error of the first node that failed, or else of the first that
// waits for a human: a failure weighs more, because no answer mends it.
func failure(results []graph.Result) error {
	var waits error
	for _, r := range results {
		switch {
		case r.Err == nil:
		case fault.CodeOf(r.Err) != fault.Suspended:
			return &graph.NodeError{Node: r.Node, Err: r.Err}
		case waits == nil:
			waits = waiting(r.Err) // it names its node
		}
	}
	return waits
}

// waiting returns the innermost error with code Suspended in err's chain: what waits is
// worth telling, and not what it is a part of.
func waiting(err error) error {
	inner := err
	for e, ok := errors.AsType[*fault.Error](err); ok; e, ok = errors.AsType[*fault.Error](e.Err) {
		if e.Code == fault.Suspended {
			inner = e
		}
	}
	return inner
}

// tellStep emits what a finished super-step changed.
func (d *driver) tellStep(ctx context.Context, pr, next graph.Progress, width int) error {
	if d.events.Silent() {
		return nil
	}
	events := d.events.With(func(s *event.Source) { s.Step = next.Step })
	if changed := pr.State.Changes(next.State); len(changed) > 0 {
		if err := events.Emit(ctx, event.StateUpdated{Values: changed}); err != nil {
			return err
		}
	}
	if width < 2 || next.Done {
		return nil
	}
	return events.Emit(ctx, event.StepFinished{Next: slices.Clone(next.Frontier)})
}

// executed is a finished task.
type executed struct {
	result graph.Result
	visit  Visit
}

// execute runs tasks side by side and waits for all of them.
func (d *driver) execute(ctx context.Context, pr graph.Progress, tasks []graph.Task) ([]executed, error) {
	parallel := len(tasks) > 1
	if parallel && !d.events.Silent() {
		step := d.events.With(func(s *event.Source) { s.Step = tasks[0].Step })
		if err := step.Emit(ctx, event.StepStarted{Nodes: slices.Clone(pr.Frontier)}); err != nil {
			return nil, err
		}
	}
	done := make([]executed, len(tasks)) // goroutine i writes done[i] and errs[i] only
	errs := make([]error, len(tasks))
	work := make([]*Task, len(tasks)) // nil for tasks that were finished before
	for i, t := range tasks {
		if rec, ok := d.recovered(t); ok {
			done[i] = executed{rec.Result, rec.Visit}
			continue
		}
		work[i] = &Task{
			Task: t, Draft: graph.NewDraft(pr.State), Steps: d.keeper.task(t.Step, t.Node.ID),
			Events: d.events.With(func(s *event.Source) { s.Step, s.Node = t.Step, t.Node.ID }),
		}
		if d.events.Silent() {
			continue
		}
		if err := work[i].Events.Emit(ctx, event.NodeStarted{NodeType: string(t.Node.Type), Visit: t.Visit, Parallel: parallel}); err != nil {
			return nil, err
		}
	}
	if !parallel {
		if work[0] != nil {
			done[0], errs[0] = d.executeOne(ctx, work[0], parallel)
		}
		return done, errs[0]
	}
	var wg sync.WaitGroup
	for i := range work {
		if work[i] == nil {
			continue
		}
		wg.Go(func() {
			d.slots <- struct{}{}
			defer func() { <-d.slots }()
			if done[i], errs[i] = d.executeOne(ctx, work[i], parallel); errs[i] == nil && done[i].result.Err == nil {
				errs[i] = d.keeper.finished(ctx, TaskRecord{Step: work[i].Step, Result: done[i].result, Visit: done[i].visit})
			}
		})
	}
	wg.Wait()
	return done, errors.Join(errs...)
}

// recovered returns the record of a task that was finished before the run was
// interrupted.
func (d *driver) recovered(t graph.Task) (TaskRecord, bool) {
	for _, rec := range d.Tasks {
		if rec.Step == t.Step && rec.Result.Node == t.Node.ID {
			return rec, true
		}
	}
	return TaskRecord{}, false
}

// executeOne runs one task. The error is that of an emitter; the node's own is in
// the result.
func (d *driver) executeOne(ctx context.Context, t *Task, parallel bool) (executed, error) {
	start := d.Now()
	res := d.guarded(ctx, t)
	res.Node = t.Node.ID
	if res.Err == nil {
		res.Writes = t.Draft.Diff()
	}
	e := executed{result: res, visit: Visit{
		Step: t.Step, Node: t.Node.ID, Type: t.Node.Type, Number: t.Visit, Started: start, Duration: d.Now().Sub(start),
		Targets: res.Targets, Usage: t.Usage, Retries: t.Retries,
	}}
	waits := fault.CodeOf(res.Err) == fault.Suspended
	switch {
	case waits:
	case fault.CodeOf(res.Err) == fault.Canceled:
		e.visit.Failed, e.visit.Error = true, "interrupted"
	case res.Err != nil:
		e.visit.Failed, e.visit.Error = true, res.Err.Error()
	case res.Failure != nil:
		e.visit.Failed, e.visit.Error = true, res.Failure.Message
	}
	if t.Events.Silent() {
		return e, nil
	}
	return e, t.Events.Emit(context.WithoutCancel(ctx), event.NodeFinished{
		NodeType: string(t.Node.Type), Duration: e.visit.Duration, Targets: res.Targets, End: res.Ended, Waiting: waits, Error: e.visit.Error, Parallel: parallel,
	})
}

// guarded executes t and turns a panic into a failure of the node.
func (d *driver) guarded(ctx context.Context, t *Task) (res graph.Result) {
	if err := context.Cause(ctx); err != nil {
		return graph.Result{Err: err}
	}
	defer func() {
		if p := recover(); p != nil {
			res = graph.Result{Err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	res = d.Nodes.Execute(ctx, t)
	if res.Err != nil && ctx.Err() != nil {
		// Why the run stops says more than what a node made of it.
		res.Err = context.Cause(ctx)
	}
	return res
}

func (d *driver) count(e *executed) {
	v := &e.visit
	s := d.stats[v.Node]
	if s == nil {
		s = &NodeStats{Node: v.Node, Type: v.Type}
		d.stats[s.Node] = s
		d.order = append(d.order, s.Node)
	}
	s.Visits++
	s.Total += v.Duration
	s.Max = max(s.Max, v.Duration)
	s.Usage = s.Usage.Add(v.Usage)
	if v.Failed {
		s.Failures++
	}
	d.usage = d.usage.Add(v.Usage)
}
