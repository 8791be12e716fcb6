package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// life is how a child lives and ends.
type life struct {
	prompt  string
	apart   bool            // see start.Worktree
	awaited bool            // by a call of Run
	alive   context.Context // ends with its work
	cancel  context.CancelCauseFunc
	pulse   pulse

	done chan struct{} // closed when it has ended, then what follows does not change

	// The team's lock guards what follows.
	clock  clock
	graph  bool // see Child
	ended  bool
	result Result
	err    error // why it can resume later; it has no result on record then
}

// resultKey is the step that a child's end is.
const resultKey = "result"

// newChild returns a child of parent that is not started yet. t.mu is held.
func newChild(parent *Member, s start) *Member {
	t := parent.team
	return &Member{
		ID: s.ID, Agent: s.Agent, Parent: parent, team: t, Steps: t.o.Steps.At("agents").At(s.ID), works: make(map[string]string),
		life: &life{prompt: s.Prompt, apart: s.Worktree, awaited: s.Foreground, done: make(chan struct{})},
	}
}

// adopt gives c what it has from m.
func (m *Member) adopt(c *Member) {
	c.Depth, c.Budget = m.Depth+1, m.Budget
	c.Events = m.Events.With(func(s *event.Source) { *s = s.Child(c.Agent, c.ID) }).Through(c.pulse.listen)
	c.alive, c.cancel = context.WithCancelCause(m.ctx)
}

// readEnd reads back how a child ended, if that is on record. t.mu is held.
func (c *Member) readEnd(ctx context.Context) (ended bool, err error) {
	if !c.Steps.Recording() {
		return false, nil
	}
	r, found, err := steps.ReadNote[Result](ctx, c.Steps, resultKey)
	if err != nil || !found {
		return false, err
	}
	c.cancel(nil)
	c.result, c.ended = r, true
	close(c.done)
	return true, nil
}

// begin runs c in the background. The child was prepared, or is nil if it was started before the
// run was interrupted. t.mu is held.
func (c *Member) begin(child *Child) {
	c.Parent.wg.Go(func() { c.end(c.live(child)) })
}

// live does the work of c, from the beginning to its result. The error says why it ended without
// one, and the result how far it came.
func (c *Member) live(child *Child) (Result, error) {
	defer c.cancel(nil)
	var r Result
	step := steps.Step{Kind: steps.Agent, Key: resultKey, Name: c.Agent}
	recorded, err := steps.Do(c.alive, c.Steps, step, func(ctx context.Context) (Result, error) {
		var err error
		r, err = c.work(ctx, child)
		return r, err
	})
	if err == nil {
		return recorded, nil
	}
	return r, err
}

// end makes known that c has ended.
func (c *Member) end(r Result, err error) {
	t, p := c.team, c.Parent
	if err != nil { // it may resume later
		c.keepTime(context.WithoutCancel(c.alive))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.ID, r.Agent = c.ID, c.Agent
	if r.Status == "" { // it did not come to its work: its record cannot be read
		r.Status, r.Error = Failed, err.Error()
	}
	c.result, c.err, c.ended = r, err, true
	p.below = p.below.Add(r.Usage)
	if c.awaited { // the caller of Run has the usage from the result
		t.forget(c)
	} else {
		p.used = p.used.Add(r.Usage)
		p.running--
	}
	t.dropEscalations(c)
	close(c.done)
	t.wake()
}

// work does the work of c within its limits.
func (c *Member) work(ctx context.Context, child *Child) (r Result, err error) {
	resumed := child == nil
	if resumed {
		started, err := c.team.start(ctx, Spawn{Member: c, Agent: c.Agent, Prompt: c.prompt, Worktree: c.apart, Resumed: true})
		if err != nil {
			return c.judge(ctx, run.Outcome{}, &startError{c.Agent, err})
		}
		child = &started
	}
	if child.Leave != nil {
		defer func() { r.Work = child.Leave(context.WithoutCancel(ctx), err != nil) }()
	}
	c.limits = child.Limits
	c.team.mu.Lock()
	c.graph = child.Graph
	c.team.mu.Unlock()
	c.Budget = run.NewBudget(child.Job.Limit, child.Job.Start.Usage).SetIn(child.Job.LimitIn).Under(c.Budget)
	if err := c.startClock(ctx, resumed); err != nil {
		return Result{}, err
	}
	ctx, stop := c.watch(ctx)
	defer stop()
	if err := c.open(ctx); err != nil {
		c.Close()
		return Result{}, err
	}
	var work run.Work
	var done func() error
	err = c.safely(ctx, func() (err error) {
		work, done, err = child.Job.Make(ctx, run.Point{Recovery: run.Recovery{Last: child.Job.Start}, Resumed: resumed, Budget: c.Budget})
		return err
	})
	if err != nil {
		return c.judge(ctx, run.Outcome{Usage: c.Close()}, err)
	}
	out, err := run.RunNested(ctx, run.NestedOptions{
		Work: &nested{Work: work, member: c}, Done: done, Events: c.Events, Steps: c.Steps, Budget: c.Budget, Resumed: resumed,
		Opening: func(s *event.Started) {
			*s = s.Under(c.Parent.Events.Source)
			s.Prompt = c.prompt
		},
		Ending: func(f *event.Finished, err error) {
			f.Outcome, f.Own = string(c.status(ctx, err)), f.Usage.Sub(c.usedBelow())
		},
	})
	return c.judge(ctx, out, err)
}

// startError says that a child could not resume because it could not be prepared.
type startError struct {
	agent string
	err   error
}

func (e *startError) Error() string { return fmt.Sprintf("cannot resume agent %s: %v", e.agent, e.err) }

// Unwrap returns the cause.
func (e *startError) Unwrap() error { return e.err }

// nested is the work of a child. It ends with all descendants of the child.
type nested struct {
	run.Work
	member *Member
}

// Inner implements [run.Wrapper].
func (n *nested) Inner() run.Work { return n.Work }

// Do implements [run.Work].
func (n *nested) Do(ctx context.Context, f *run.Frame) (out run.Outcome, err error) {
	err = n.member.safely(ctx, func() (err error) {
		out, err = n.Work.Do(ctx, f)
		return err
	})
	out.Usage = out.Usage.Add(n.member.Close()) // zero if the work has closed it
	return out, err
}

// safely calls f for m, and turns a panic into an error, and into a warning with the stack.
func (m *Member) safely(ctx context.Context, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("agent %s panicked (a bug in Loki): %v", m.Agent, v)
			err = cmp.Or(m.Events.Emit(context.WithoutCancel(ctx), event.Warning{Text: fmt.Sprintf("%v\n%s", err, debug.Stack())}), err)
		}
	}()
	return f()
}

// start prepares a child.
func (t *Team) start(ctx context.Context, s Spawn) (child Child, err error) {
	err = s.Member.safely(ctx, func() (err error) {
		child, err = t.o.Start(ctx, s)
		return err
	})
	return child, err
}

// usedBelow returns what the descendants of c used.
func (c *Member) usedBelow() chat.Usage {
	c.team.mu.Lock()
	defer c.team.mu.Unlock()
	return c.below
}

// status returns how c ended with err.
func (c *Member) status(ctx context.Context, err error) Status {
	limit, timedOut := errors.AsType[*limitError](context.Cause(ctx))
	_, exceeded := errors.AsType[*run.ExceededError](err)
	switch {
	case err == nil:
		return Done
	case timedOut && limit.member == c:
		return TimedOut
	case ctx.Err() != nil, errors.Is(err, context.Canceled): // by the user at a question, before ctx ends with the run
		return Canceled
	case fault.CodeOf(err) == fault.Suspended:
		return Suspended
	case exceeded: // its own, the run's, or that of a child without which it cannot continue
		return OutOfBudget
	}
	return Failed
}

// judge returns the result of c, whose work ended with out and err. The error is that of a result
// that must not be kept, because the child resumes when the run does.
func (c *Member) judge(ctx context.Context, out run.Outcome, err error) (Result, error) {
	r := Result{ID: c.ID, Agent: c.Agent, Status: c.status(ctx, err), Output: out.Output, Usage: out.Usage, Own: out.Usage.Sub(c.usedBelow())}
	if err == nil {
		return r, nil
	}
	r.Error = err.Error()
	_, unprepared := errors.AsType[*startError](err)
	switch r.Status {
	case TimedOut, Canceled:
		cause := cmp.Or(context.Cause(ctx), err)
		r.Error = cause.Error()
		if r.Status == Canceled && !errors.Is(cause, errCanceled) {
			return r, cause // of the parent or of the run
		}
	case Suspended, OutOfBudget:
		return r, err
	case Failed:
		if unprepared {
			return r, err
		}
	}
	return r, nil
}

// Run starts a child and waits for it. Its id comes from key, which is unique in the task and the
// same on resume. It is not bound by MaxConcurrent, and cannot be collected or sent messages. The
// error is that of ctx, of the log or of the Starter, or one with code Suspended or, for a used-up
// budget, Limit; how the child ended otherwise is in the result. The usage of the
// child is in the result, and not in that of Close.
func (m *Member) Run(ctx context.Context, key, agent, prompt string) (Result, error) {
	c, child, err := m.foreground(ctx, key, agent, prompt)
	if err != nil {
		return Result{}, err
	}
	if !c.isOver() {
		defer context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })()
		c.end(c.live(child))
	}
	if ctx.Err() != nil {
		return c.result, context.Cause(ctx)
	}
	return c.result, c.err
}

func (c *Member) isOver() bool {
	c.team.mu.Lock()
	defer c.team.mu.Unlock()
	return c.ended
}

// runOp is the entry of a call of Run.
const runOp = "run"

// foreground returns the child that Run is called for: one that is new and prepared, or one that was
// started before the run was interrupted, and perhaps has ended.
func (m *Member) foreground(ctx context.Context, key, agent, prompt string) (*Member, *Child, error) {
	t := m.team
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.closed {
		return nil, nil, errClosed
	}
	if e := t.known[key]; e != nil && e.Op == runOp {
		c := t.members[e.Started[0].ID]
		m.adopt(c)
		ended, err := c.readEnd(ctx)
		if ended {
			t.forget(c)
			m.below = m.below.Add(c.result.Usage)
			m.Budget.Spend(c.result.Usage)
		}
		return c, nil, err
	}
	if m.Depth+1 > m.limits.MaxDepth {
		return nil, nil, fmt.Errorf("agent %s would be at depth %d, and at most %d is allowed", agent, m.Depth+1, m.limits.MaxDepth)
	}
	s := start{ID: t.id("graph_agent_"+agent, key), Agent: agent, Prompt: prompt, Foreground: true}
	child, err := m.prepare(&s)
	if err == nil {
		err = t.commit(ctx, &entry{Key: key, By: m.ID, Op: runOp, Started: []start{s}})
	}
	if err != nil {
		return nil, nil, err
	}
	return s.member, child, nil
}

// prepare makes the child that s describes ready to begin. t.mu is held, but not while the child is
// prepared.
func (m *Member) prepare(s *start) (*Child, error) {
	t := m.team
	s.member = newChild(m, *s)
	m.adopt(s.member)
	var child Child
	var err error
	t.outside(func() {
		child, err = t.start(s.member.alive, Spawn{Member: s.member, Agent: s.Agent, Prompt: s.Prompt, Worktree: s.Worktree})
	})
	if err == nil && m.closed {
		err = errClosed
	}
	if err != nil {
		s.member.cancel(err)
		return nil, err
	}
	return &child, nil
}

// errClosed says that a member starts no more children.
var errClosed = errors.New("the work is over, so no more agents are started")
