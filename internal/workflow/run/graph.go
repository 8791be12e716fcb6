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

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process/awake"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/governor"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// Executor does the work of nodes. Its method may be called from several
// goroutines, and each call belongs to one.
type Executor interface {
	// Execute runs the task's node. It reads and writes the state through t.Draft
	// only, and reports a failure in the result's Err. When ctx is canceled it
	// returns soon, with nothing left running. The result's Node and Writes are
	// filled in by the driver.
	Execute(ctx context.Context, t *Task) graph.Result
}

// Task is one node to execute, with everything the work may touch.
type Task struct {
	graph.Task
	Draft   *graph.Draft // the branch's view of the state
	Events  event.Scope  // of the node
	Steps   steps.Steps  // record of the steps made
	Base    string       // beginning of the full keys of all steps of the task
	Secrets *Secrets     // of the state; nil if there are none
	Turn    *Turn        // when its question is put to the user; nil for at once, and for a task that is no question
	Life    int          // of a nested graph that begins anew after it was undone: its number, from 2; 0 in its first one

	Usage   chat.Usage    // tokens used; the executor adds to it
	Retries int           // repeated attempts; the executor counts them
	Limited time.Duration // that calls of models waited for their turn
}

// Graph is the work of a graph: from a checkpoint to an end node. All nodes of a super-step
// are waited for, also when one fails or the run is canceled.
type Graph struct {
	Plan  *graph.Plan
	Nodes Executor

	// Start is where the run begins; see [StartCheckpoint].
	Start Checkpoint

	// Tasks are finished tasks of the super-step after Start. They are not run again, and
	// what they used is charged to the budget; the executor charges the rest.
	Tasks []TaskRecord

	// Set is what the user has set in the state of Start, and Before that state without it.
	Set    []value.Member
	Before graph.State

	// Stops are where a recorded run is suspended, but not at Start if it is Past that.
	Stops Breakpoints
	Past  bool

	// Keep says that the effects of a run that fails or is canceled are not undone. Canceled says that the run is canceled, and
	// continues only to undo its effects.
	Keep, Canceled bool
}

// Started implements Work.
func (g Graph) Started() event.Started {
	def, state := g.Plan.Graph(), g.Start.State
	if len(g.Set) > 0 { // an event of its own
		state = g.Before
	}
	started := event.Started{Graph: def.Name, Node: def.Start, NoSnapshots: !def.Settings.LogStateSnapshots, State: graph.State{}.Changes(state)}
	if g.Start.Step > 0 {
		started.Next = slices.Clone(g.Start.Frontier)
	}
	return started
}

// Do implements Work.
func (g Graph) Do(ctx context.Context, f *Frame) (Outcome, error) {
	settings := g.Plan.Graph().Settings
	d := &driver{
		Graph: g, Frame: f, usage: g.Start.Usage,
		stats: make(map[string]*NodeStats),
		slots: make(chan struct{}, max(1, settings.MaxConcurrency)),
	}
	f.keeper.startAt(g.Start.Step)
	for _, t := range g.Tasks {
		f.Budget.Spend(t.Visit.Usage)
	}
	pr, err := d.start(ctx)
	if err == nil && d.nested != nil {
		err = d.keepSecrets(ctx, d.nested.Steps, graph.State{}.Changes(g.Start.State))
	}
	outer := ctx
	if pr.Undoing != nil {
		f.Budget.Lift()
	} else {
		timed, cancel := f.Budget.Within(ctx, 0)
		defer cancel()
		ctx = timed
	}
	if f.keeper != nil {
		d.visits = g.Plan.VisitCounts(*pr)
	}
	if err == nil {
		err = d.emitSet(ctx, pr)
	}
	if err == nil {
		err = d.stop(pr, nil, 0)
	}
	if err == nil && g.Canceled && pr.Undoing == nil {
		err = d.noteFailure(errCanceled, d.finishedBefore(pr))
	}
	if d.Stops.none() && pr.Undoing == nil {
		d.ahead = newPipeline(ctx, d, *pr)
	}
	for {
		for err == nil && !pr.Done && !pr.Undone() {
			ran := pr.Frontier
			if pr, err = d.superStep(ctx, pr); err == nil {
				err = d.stop(pr, ran, pr.Step-g.Start.Step)
			}
		}
		if d.broken == nil || !d.mayUndo(ctx, pr, err) {
			break
		}
		d.ahead.stop(false) // what is undone begins in its super-step
		d.ahead = nil
		undoing, end := d.undoContext(outer)
		defer end()
		ctx = undoing
		pr, err = d.undo(ctx, pr, err)
	}
	if err == nil && pr.Undone() {
		err = d.undoneError(ctx, pr)
	}
	d.ahead.stop(fault.CodeOf(err) == fault.Suspended)
	return Outcome{
		Output: pr.Output, State: pr.State, Steps: pr.Step, Failures: pr.Failures, Unhandled: pr.Unhandled, Usage: d.usage, Nodes: d.nodeStats(), Undone: undoneOf(pr),
	}, err
}

// NodeStats sums up the executions of one node.
type NodeStats struct {
	Node     string
	Type     graph.Type
	Visits   int
	Total    time.Duration // work only, without waiting for a slot
	Max      time.Duration
	Failures int // failed visits, tolerated ones included, and failures inside of visits
	Usage    chat.Usage
}

// driver is a graph at work. Only the goroutine of Do touches it, except slots and the
// frame.
type driver struct {
	Graph
	*Frame
	slots chan struct{} // holds a token for every task that is at work
	stats map[string]*NodeStats
	order []string // nodes of stats, by first execution
	usage chat.Usage

	visits map[string]int // of the checkpoints, by node; nil without a keeper
	ahead  *pipeline      // tasks that begin before their super-step; nil for none

	broken *brokenStep // the super-step in which the run failed; nil if its effects are not to be undone
	cause  error       // why the effects are undone; nil if the record says that
	life   int         // see [Task]
}

func (d *driver) nodeStats() []NodeStats {
	stats := make([]NodeStats, len(d.order))
	for i, id := range d.order {
		stats[i] = *d.stats[id]
	}
	return stats
}

// superStep runs the frontier of pr and returns the progress after it, which is on record.
func (d *driver) superStep(ctx context.Context, pr *graph.Progress) (*graph.Progress, error) {
	next, visits, err := d.advance(ctx, pr)
	if err == nil {
		err = d.commit(ctx, next, visits)
	}
	if err != nil {
		return pr, err
	}
	d.ahead.move(next)
	return next, nil
}

// advance runs the frontier of pr and returns the progress after it, and the visits.
func (d *driver) advance(ctx context.Context, pr *graph.Progress) (*graph.Progress, []Visit, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, nil, d.noteFailure(fmt.Errorf("stopped before super-step %d with %s: %w", pr.Step+1, strings.Join(pr.Frontier, ", "), err), d.finishedBefore(pr))
	}
	tasks, err := NextTasks(d.Plan, *pr, d.now().Sub(d.begin))
	if err != nil {
		return nil, nil, d.noteFailure(err, d.finishedBefore(pr))
	}
	done, err := d.execute(ctx, pr, tasks)
	if err != nil {
		return nil, nil, err
	}
	for i := range done.visits {
		d.count(&done.visits[i])
	}
	err = failure(done.results)
	if pr.Undoing != nil {
		err = unsettledError(ctx, done.results)
	}
	if err != nil {
		if fault.CodeOf(err) == fault.Suspended {
			err = waitingError(d.keeper.suspension(err), done.results)
		}
		return nil, nil, d.noteFailure(err, done)
	}
	next, err := d.Plan.Apply(*pr, done.results)
	if d.secrets != nil {
		d.secrets.add(pr.State.Changes(next.State))
	}
	if err != nil {
		if d.keeper.works() {
			err = cannotMerge(err, d.Events.Run)
		}
		return nil, nil, d.noteFailure(err, done)
	}
	if err := d.warnLost(ctx, pr.Undoing, next.Undoing); err != nil {
		return nil, nil, err
	}
	return &next, done.visits, d.emitStep(ctx, pr, &next, len(tasks))
}

// NextTasks returns the tasks of the next super-step of a run that has worked for a time, unless a limit of its settings is reached.
func NextTasks(p *graph.Plan, pr graph.Progress, worked time.Duration) ([]graph.Task, error) {
	if s := p.Graph().Settings; s.HasTimeout && worked > s.Timeout && pr.Undoing == nil {
		return nil, fault.New(fault.Limit, "the run timed out after %s, before super-step %d with %s", s.Timeout, pr.Step+1, strings.Join(pr.Frontier, ", ")).
			WithHint("raise settings.timeout in %s", graph.FileName)
	}
	tasks, err := p.Next(pr)
	if _, ok := errors.AsType[*graph.LimitError](err); ok {
		return nil, fault.Wrap(fault.Limit, err, "").WithHint("a loop leads back here; raise settings.max_loop_iterations if that is intended")
	}
	return tasks, err
}

// cannotMerge returns the error of results that cannot be merged and are on record, so that the same would come of them.
func cannotMerge(err error, id string) error {
	return fault.Wrap(fault.CodeOf(err), err, "").
		WithHint("fix %s so that they can be merged, and resume: loki --resume %s --force", graph.FileName, id)
}

// Fold returns the progress after a super-step whose tasks were finished, and are on record, in a run with an id.
func Fold(p *graph.Plan, pr graph.Progress, tasks []TaskRecord, id string) (graph.Progress, error) {
	results := make([]graph.Result, len(tasks))
	for i, t := range tasks {
		results[i] = t.Result
	}
	next, err := p.Apply(pr, results)
	if err != nil {
		return pr, cannotMerge(err, id)
	}
	return next, nil
}

// failure returns the error of the first node that failed, or else of the first that
// waits for a human: a failure weighs more, because no answer corrects it.
func failure(results []graph.Result) error {
	var waits error
	for _, r := range results {
		switch {
		case r.Err == nil:
		case fault.CodeOf(r.Err) != fault.Suspended:
			return &graph.NodeError{Node: r.Node, Err: r.Err}
		case waits == nil:
			waits = suspension(r.Err) // it names its node
		}
	}
	return waits
}

// suspension returns the innermost error with code Suspended in err's chain: the user is
// shown what waits, and not what it is a part of.
func suspension(err error) error {
	inner := err
	for e, ok := errors.AsType[*fault.Error](err); ok; e, ok = errors.AsType[*fault.Error](e.Err) {
		if e.Code == fault.Suspended {
			inner = e
		}
	}
	return inner
}

// emitStep emits what a finished super-step changed.
func (d *driver) emitStep(ctx context.Context, pr, next *graph.Progress, width int) error {
	if d.Events.Silent() {
		return nil
	}
	step := next.Step
	events := d.Events.With(func(s *event.Source) { s.Step = step })
	if changed := pr.State.Changes(next.State); len(changed) > 0 && d.within() == "" {
		if err := events.Emit(ctx, event.StateUpdated{Values: changed}); err != nil {
			return err
		}
	}
	if width < 2 || next.Done {
		return nil
	}
	return events.Emit(ctx, event.StepFinished{Next: d.names(next.Frontier)})
}

// names returns the names of nodes in events.
func (d *driver) names(ids []string) []string {
	if d.within() == "" {
		return slices.Clone(ids)
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = graph.InnerName(d.within(), id)
	}
	return names
}

// emitSet emits what the user has set in the state.
func (d *driver) emitSet(ctx context.Context, pr *graph.Progress) error {
	if len(d.Set) == 0 || d.Events.Silent() {
		return nil
	}
	set := graph.State{}.Changes(withSet(graph.State{}, d.Set))
	return d.Events.With(func(s *event.Source) { s.Step = pr.Step }).Emit(ctx, event.StateUpdated{Set: true, Values: set})
}

// finishedTasks are the results of the tasks of a super-step, in their order.
type finishedTasks struct {
	results []graph.Result
	visits  []Visit
}

func newFinishedTasks(n int) finishedTasks {
	return finishedTasks{make([]graph.Result, n), make([]Visit, n)}
}

func (f finishedTasks) at(i int) finishedTask { return finishedTask{&f.results[i], &f.visits[i]} }

// finishedTask is where the result of a task is stored.
type finishedTask struct {
	result *graph.Result
	visit  *Visit
}

func (f finishedTask) store(rec TaskRecord) { *f.result, *f.visit = rec.Result, rec.Visit }

// record returns the record of a task of a super-step.
func (f finishedTask) record(step int) TaskRecord {
	return TaskRecord{Step: step, Result: *f.result, Visit: *f.visit}
}

// execute runs the tasks of a super-step and waits for all of them.
func (d *driver) execute(ctx context.Context, pr *graph.Progress, tasks []graph.Task) (finishedTasks, error) {
	done := newFinishedTasks(len(tasks))
	if len(tasks) > 1 {
		return done, d.executeAll(ctx, pr, tasks, done)
	}
	return done, d.executeAlone(ctx, pr.State, tasks[0], done.at(0))
}

// executeAlone runs the only task of a super-step.
func (d *driver) executeAlone(ctx context.Context, state graph.State, t graph.Task, done finishedTask) error {
	if early := d.ahead.take(t); early != nil {
		return early.wait(done)
	}
	work, err := d.prepare(ctx, state, t, false, done)
	if err != nil || work == nil {
		return err
	}
	work.Turn = d.turn()
	return d.executeOne(ctx, work, done, false, nil)
}

// prepare announces a task, and returns what it works with. If the task was finished before the run was interrupted, it stores the result
// in done and returns nil.
func (d *driver) prepare(ctx context.Context, state graph.State, t graph.Task, parallel bool, done finishedTask) (*Task, error) {
	rec, found, err := d.record(ctx, t)
	if err != nil {
		return nil, err
	}
	if found {
		done.store(rec)
		return nil, nil
	}
	work := d.task(state, t)
	work.Steps, work.Base = d.taskSteps(t.Step, t.Node.ID)
	return work, work.announce(ctx, parallel)
}

// executeAll runs tasks side by side, waits for all of them and stores their results in done.
func (d *driver) executeAll(ctx context.Context, pr *graph.Progress, tasks []graph.Task, done finishedTasks) error {
	if !d.Events.Silent() {
		step := d.Events.With(func(s *event.Source) { s.Step = tasks[0].Step })
		if err := step.Emit(ctx, event.StepStarted{Nodes: slices.Clone(pr.Frontier)}); err != nil {
			return err
		}
	}
	errs := make([]error, len(tasks))
	work := make([]*Task, len(tasks)) // nil for tasks that were finished before, or have begun already; goroutine i writes done.at(i) and errs[i] only
	race := newRace(d.Plan, *pr)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i, t := range tasks {
		if early := d.ahead.take(t); early != nil {
			wg.Go(func() { errs[i] = early.wait(done.at(i)) })
			continue
		}
		var err error
		if work[i], err = d.prepare(ctx, pr.State, t, true, done.at(i)); err != nil {
			return err
		}
		if work[i] == nil {
			race.noteFinished(done.results[i])
			d.ahead.add(t.Step, done.results[i])
		}
	}
	d.turn().giveTurns(d.Plan.Graph(), work)
	for i := range work {
		if work[i] == nil {
			continue
		}
		wg.Go(func() {
			if turn := work[i].Turn; turn != nil { // a question keeps no other work from beginning
				defer turn.End()
			} else {
				d.slots <- struct{}{}
				defer func() { <-d.slots }()
			}
			ctx, cancel := race.enter(ctx, tasks[i].Node.ID)
			defer cancel()
			if errs[i] = d.executeOne(ctx, work[i], done.at(i), true, race); errs[i] == nil {
				d.ahead.add(tasks[i].Step, done.results[i])
			}
		})
	}
	wg.Wait()
	for i := range work {
		if errs[i] == nil && race.loses(done.results[i]) {
			done.results[i] = graph.Result{Node: tasks[i].Node.ID, Canceled: true}
			errs[i] = d.close(ctx, work[i], done.at(i), true)
		}
	}
	return errors.Join(errs...)
}

// task returns what a task works with, without its steps.
func (d *driver) task(state graph.State, t graph.Task) *Task {
	if t.Undoes != nil {
		state = state.With(value.Member{Name: graph.CompensatesKey, Value: t.Undoes.Value()})
	}
	return &Task{
		Secrets: d.secrets,
		Task:    t, Draft: graph.NewDraft(state).WithLoop(t.Loop), Life: d.life,
		Events: d.Events.With(func(s *event.Source) {
			s.Step, s.Node, s.Within = t.Step, graph.InnerName(d.within(), t.Node.ID), d.within()
		}),
	}
}

// announce emits that the task is about to begin.
func (t *Task) announce(ctx context.Context, parallel bool) error {
	if t.Events.Silent() {
		return nil
	}
	started := event.NodeStarted{NodeType: string(t.Node.Type), Visit: t.Visit, Parallel: parallel}
	if t.Undoes != nil {
		started.Undoes = t.Undoes.Node
	}
	return t.Events.Emit(ctx, started)
}

// keepFinished keeps a task whose super-step is not over.
func (d *driver) keepFinished(ctx context.Context, t *Task, done finishedTask) error {
	switch {
	case d.nested != nil:
		return d.keepNested(context.WithoutCancel(ctx), t, done)
	case d.keeper == nil:
		return nil
	}
	return d.keeper.recordFinished(context.WithoutCancel(ctx), done.record(t.Step))
}

// record returns the record of a task that was finished before the run was
// interrupted.
func (d *driver) record(ctx context.Context, t graph.Task) (rec TaskRecord, found bool, err error) {
	if d.nested != nil {
		return d.nestedRecord(ctx, t)
	}
	for _, rec := range d.Tasks {
		if rec.Step == t.Step && rec.Result.Node == t.Node.ID {
			return rec, true, nil
		}
	}
	return rec, false, nil
}

// executeOne runs one task, stores its result in done, and records it, unless a checkpoint follows at once. The error is that of an emitter
// or of the record; the node's own is in the result.
func (d *driver) executeOne(ctx context.Context, t *Task, done finishedTask, parallel bool, race *race) (err error) {
	start := d.now()
	res, v := done.result, done.visit
	d.protect(ctx, t, res)
	res.Node = t.Node.ID
	if d.secrets != nil {
		d.secrets.add(t.Draft.Writes())
		*res = d.secrets.result(*res)
	}
	if res.Err == nil {
		res.Writes = t.Draft.Writes()
	}
	v.Step, v.Node, v.Type, v.Number = t.Step, t.Node.ID, t.Node.Type, t.Visit
	v.Started, v.Duration, v.Usage, v.Retries = start, d.now().Sub(start), t.Usage, t.Retries
	if race == nil {
		return d.close(ctx, t, done, parallel)
	}
	race.settle(*res, func(settled graph.Result) bool {
		*res = settled
		err = d.close(ctx, t, done, parallel)
		return err == nil && settled.Err == nil
	})
	return err
}

// waits reports whether the result is that of a task that waits.
func waits(res graph.Result) bool { return fault.CodeOf(res.Err) == fault.Suspended }

// close completes the visit of a task that is over or waits, emits how it ended and keeps its result.
func (d *driver) close(ctx context.Context, t *Task, done finishedTask, parallel bool) error {
	res, v := done.result, done.visit
	v.Targets, v.Canceled, v.Tolerated = res.Targets, res.Canceled, res.Inner.Failures
	waiting := waits(*res)
	switch {
	case waiting:
	case fault.CodeOf(res.Err) == fault.Canceled:
		v.Failed, v.Error = true, event.Interrupted
	case res.Err != nil:
		v.Failed, v.Error = true, res.Err.Error()
	case res.Failure != nil:
		v.Failed, v.Error = true, res.Failure.Message
	}
	if !t.Events.Silent() {
		if err := t.Events.Emit(context.WithoutCancel(ctx), event.NodeFinished{
			NodeType: string(t.Node.Type), Duration: v.Duration, Targets: d.names(res.Targets), Edges: res.Taken, End: res.Ended, Waiting: waiting,
			Error: v.Error, Tolerated: v.Tolerated, Limited: t.Limited.Milliseconds(), Canceled: res.Canceled, Parallel: parallel,
		}); err != nil {
			return err
		}
	}
	if res.Err != nil || !parallel && d.nested == nil { // else its checkpoint follows at once
		return nil
	}
	return d.keepFinished(ctx, t, done)
}

// protect executes t, stores its result, and turns a panic into a failure of the node.
func (d *driver) protect(ctx context.Context, t *Task, res *graph.Result) {
	if res.Err = context.Cause(ctx); res.Err != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			*res = graph.Result{Err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	work, paused := awake.WithMeter(governor.AtMost(ctx, governor.Normal))
	defer func() { t.Limited = paused() }()
	if d.secrets != nil {
		work = d.secrets.known.In(work)
	}
	*res = d.Nodes.Execute(work, t)
	if res.Err != nil && ctx.Err() != nil {
		// Why the run stops says more than what a node made of it.
		res.Err = context.Cause(ctx)
	}
}

func (d *driver) count(v *Visit) {
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
	if s.Failures += v.Tolerated; v.Failed {
		s.Failures++
	}
	d.usage = d.usage.Add(v.Usage)
}
