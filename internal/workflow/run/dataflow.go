package run

import (
	"context"
	"slices"
	"strings"
	"sync"

	"loki/internal/workflow/graph"
)

// pipeline runs tasks before their super-step, see [graph.Plan.Ahead]. The super-steps take over what it has run, and are what
// makes checkpoints. A nil pipeline runs nothing. Its methods may be called from several goroutines.
type pipeline struct {
	d    *driver
	ctx  context.Context // of the run
	work sync.WaitGroup

	mu       sync.Mutex
	pr       graph.Progress         // after the last super-step that is over
	finished map[int][]graph.Result // of the super-steps after it, ascending by node
	early    map[earlyKey]*earlyTask
	stopped  bool
}

type earlyKey struct {
	step int
	node string
}

// earlyTask is a task of the pipeline.
type earlyTask struct {
	over   chan struct{} // closed when it is
	result graph.Result
	visit  Visit
	err    error // of an emitter or of the record
}

// newPipeline returns the pipeline of a run that has come to pr, nil if tasks begin with their super-steps.
func newPipeline(ctx context.Context, d *driver, pr graph.Progress) *pipeline {
	if d.Plan.Graph().Settings.Scheduling != graph.ScheduleDataflow {
		return nil
	}
	return &pipeline{d: d, ctx: ctx, pr: pr, finished: make(map[int][]graph.Result), early: make(map[earlyKey]*earlyTask)}
}

// take returns a task that was begun before its super-step, nil if it was not.
func (p *pipeline) take(t graph.Task) *earlyTask {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.early[earlyKey{t.Step, t.Node.ID}]
}

// wait stores the result of the task in done.
func (e *earlyTask) wait(done finishedTask) error {
	<-e.over
	*done.result, *done.visit = e.result, e.visit
	return e.err
}

// add takes note of the result of a task of the super-step under way, and begins tasks that can begin now.
func (p *pipeline) add(step int, res graph.Result) {
	if p == nil || res.Err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep(step, res)
	p.advance()
}

func (p *pipeline) keep(step int, res graph.Result) {
	results := append(p.finished[step], res)
	slices.SortFunc(results, func(a, b graph.Result) int { return strings.Compare(a.Node, b.Node) })
	p.finished[step] = results
}

// move says that a super-step is over.
func (p *pipeline) move(pr *graph.Progress) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pr = *pr
	delete(p.finished, pr.Step)
	for key := range p.early {
		if key.step <= pr.Step {
			delete(p.early, key)
		}
	}
	p.advance()
}

// advance begins the tasks that can begin now.
func (p *pipeline) advance() {
	for again := true; again; { // what is on record can make more of them
		again = false
		for _, t := range p.d.Plan.Ahead(p.pr, p.finished) {
			key := earlyKey{t.Step, t.Node.ID}
			if p.stopped || p.early[key] != nil {
				continue
			}
			again = p.begin(key, t) || again
		}
	}
}

// begin begins a task. It reports whether the task was finished before the run was interrupted.
func (p *pipeline) begin(key earlyKey, t graph.Early) (found bool) {
	e := &earlyTask{over: make(chan struct{})}
	p.early[key] = e
	rec, found, err := p.d.record(p.ctx, t.Task)
	if found {
		e.result, e.visit = rec.Result, rec.Visit
		p.keep(t.Step, rec.Result)
	}
	work := p.d.task(t.View, t.Task)
	if err == nil && !found {
		work.Steps, work.Base = p.d.taskSteps(t.Step, t.Node.ID)
		err = work.announce(p.ctx, true)
	}
	if err != nil || found {
		e.err = err
		close(e.over)
		return found
	}
	p.work.Go(func() { // ends before the run does, see stop
		p.d.slots <- struct{}{}
		defer func() { <-p.d.slots }()
		e.err = p.d.executeOne(p.ctx, work, finishedTask{&e.result, &e.visit}, true, nil)
		p.mu.Lock()
		defer p.mu.Unlock()
		if e.err == nil && e.result.Err == nil {
			p.keep(t.Step, e.result)
			p.advance()
		} else {
			p.stopped = p.stopped || !waits(e.result)
		}
		close(e.over)
	})
	return false
}

// stop returns once no task of the pipeline is at work. Unless the run waits, none begins any more.
func (p *pipeline) stop(waits bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.stopped = p.stopped || !waits
	p.mu.Unlock()
	p.work.Wait()
}
