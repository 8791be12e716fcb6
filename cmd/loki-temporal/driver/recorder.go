package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// recorder is the record of one execution of a task. What it is given is in the history of the run when its methods
// return. Things that are recorded at the same time are sent together. It implements [steps.Recorder] and
// [run.QuestionRecorder].
type recorder struct {
	send  func(ctx context.Context, b Batch) error
	pulse *pulse
	batch Batch // without changes and events

	settled []Change // of reservations, sent with the next change; guarded by mu

	turn chan struct{} // holds a token while a group is being sent

	mu     sync.Mutex // guards what follows
	known  map[string]Step
	next   *group // what is sent next; nil for nothing
	events []json.RawMessage
}

// group is what is sent together.
type group struct {
	changes []Change
	size    int
	sent    bool  // read and written by who has the turn
	err     error // likewise
}

func newRecorder(t Task, p *pulse, send func(context.Context, Batch) error) *recorder {
	r := &recorder{
		send: send, pulse: p, turn: make(chan struct{}, 1), batch: Batch{Node: t.Node, Step: t.Step, Attempt: t.Attempt}, known: make(map[string]Step, len(t.Steps)),
	}
	for _, s := range t.Steps {
		r.known[s.Key] = s
	}
	return r
}

// Lookup implements [steps.Recorder].
func (r *recorder) Lookup(ctx context.Context, key string, _ steps.Step) (steps.Record, error) {
	if err := r.pulse.confirm(ctx); err != nil {
		return steps.Record{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.known[key]
	return steps.Record{Result: s.Result, Done: s.Result != nil, Begun: ok && s.Begun}, nil
}

// Begin implements [steps.Recorder].
func (r *recorder) Begin(ctx context.Context, key string, s steps.Step) error {
	return r.change(ctx, Change{Begin: &Step{Key: key, Kind: s.Kind, Name: s.Name, Begun: true}})
}

// Forget implements [steps.Recorder].
func (r *recorder) Forget(ctx context.Context, key string) error {
	return r.change(ctx, Change{Forget: key})
}

// Record implements [steps.Recorder].
func (r *recorder) Record(ctx context.Context, key string, s steps.Step, result []byte) error {
	step := Step{Key: key, Kind: s.Kind, Name: s.Name, Result: result}
	if err := r.change(ctx, Change{Record: &step}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[key] = step
	return nil
}

// Asked implements [run.QuestionRecorder].
func (r *recorder) Asked(ctx context.Context, p run.Pending) error {
	return r.change(ctx, Change{Question: &Question{Pending: p, Key: p.Key}})
}

// Replied implements [run.QuestionRecorder]. An activity waits for no answer: the workflow does.
func (r *recorder) Replied(context.Context, string) bool { return false }

var _ run.WaitRecorder = (*recorder)(nil)

// Take implements [run.WaitRecorder]. The workflow gives a signal to a wait that is on record.
func (r *recorder) Take(context.Context, string, string, time.Time) (s run.Signal, ok bool, err error) {
	return s, false, nil
}

// Answered implements [run.QuestionRecorder]. The workflow makes events of answers itself.
func (r *recorder) Answered(string) bool { return false }

// change returns when a change is on record, with all events before it. An error ends the execution: nothing may make up for
// it, such as the fallback of the node.
func (r *recorder) change(ctx context.Context, c Change) error {
	n, err := size(c)
	if err == nil {
		err = checkSize(fmt.Sprintf("a step of node %q", r.batch.Node), n)
	}
	if err != nil {
		return r.pulse.lose(err)
	}
	g := r.join(c, n)
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if !g.sent {
		g.sent, g.err = true, r.sendGroup(ctx, g)
	}
	if g.err != nil {
		return r.pulse.lose(fmt.Errorf("the run cannot be recorded: %w", g.err))
	}
	return r.pulse.confirm(ctx)
}

// join adds a change of n bytes to the ones that are sent next.
func (r *recorder) join(c Change, n int) *group {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil || r.next.size+n > maxPayload {
		r.next = &group{}
	}
	r.next.changes, r.next.size = append(append(r.next.changes, c), r.settled...), r.next.size+n
	r.settled = nil
	return r.next
}

// settle gives a reservation back: with the next change, which has what the call used, or at once if it used nothing.
func (r *recorder) settle(ctx context.Context, id string, used chat.Usage) {
	c := Change{Settle: id}
	if used == (chat.Usage{}) {
		_ = r.change(ctx, c) // a failure ends the execution, and with it the reservation
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = append(r.settled, c)
}

// sendGroup sends a group, and the events that wait as far as there is room.
func (r *recorder) sendGroup(ctx context.Context, g *group) error {
	r.mu.Lock()
	if r.next == g {
		r.next = nil
	}
	b := r.batch
	b.Changes, b.Events = g.changes, r.takeEvents(maxPayload-g.size)
	r.mu.Unlock()
	return r.send(ctx, b)
}

// takeEvents returns the first of the events that wait, of room bytes at most. The caller has the lock.
func (r *recorder) takeEvents(room int) []json.RawMessage {
	n := 0
	for n < len(r.events) && room >= len(r.events[n]) {
		room -= len(r.events[n]) + 1
		n++
	}
	taken := r.events[:n:n]
	r.events = r.events[n:]
	return taken
}

// rest returns the events that were not sent with a step: the ones that fit into the result of the execution.
func (r *recorder) rest() []json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.takeEvents(maxEvents)
}

const (
	maxEvents    = 500_000 // bytes of events in the result of an execution
	maxEventText = 4096    // bytes of a text in an event
)

// Emit implements [event.Emitter]: it keeps an event until it is sent with the next step.
func (r *recorder) Emit(_ context.Context, ev event.Event) error {
	if !run.Kept(ev.Body) {
		return nil
	}
	ev.Body = shorten(ev.Body)
	data, err := ev.MarshalJSON()
	if err != nil {
		return fmt.Errorf("event %s: %w", ev.Body.Type(), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, data)
	return nil
}

// shorten returns a body without the end of a long text, which is in the step that the event is about.
func shorten(b event.Body) event.Body {
	switch b := b.(type) {
	case event.Reply:
		b.Text = text.Cut(b.Text, maxEventText)
		return b
	case event.ToolCall:
		b.Arguments = text.Cut(b.Arguments, maxEventText)
		return b
	case event.ToolResult:
		b.Text = text.Cut(b.Text, maxEventText)
		return b
	}
	return b
}

// pulse is the sign of life of an execution. A server that has not seen it for the time limit gives the task to another worker. The
// execution must not continue then: no step that it records counts any more.
type pulse struct {
	beat  func(context.Context) error // gives a sign of life
	final func(error) bool            // reports whether an error of beat says that the execution is over
	limit time.Duration
	end   context.CancelCauseFunc // of the execution

	mu   sync.Mutex
	last time.Time // before which the server saw no sign of life that is known
}

// errLost says that the task is another execution's, or that this cannot be known.
var errLost = errors.New("the server gave the task to another worker, or cannot be reached")

// confirm returns an error unless the execution is certainly the only one of its task. It costs nothing as long as the last
// sign of life is recent. What was recorded before it returns nil was recorded in time.
func (p *pulse) confirm(ctx context.Context) error {
	p.mu.Lock()
	recent := time.Since(p.last) < p.limit/2
	p.mu.Unlock()
	if recent {
		return nil
	}
	return p.give(ctx)
}

// give gives a sign of life.
func (p *pulse) give(ctx context.Context) error {
	now := time.Now()
	err := p.beat(ctx)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if now.After(p.last) {
			p.last = now
		}
		return nil
	}
	p.mu.Lock()
	late := time.Since(p.last) >= p.limit
	p.mu.Unlock()
	switch {
	case p.final(err):
		return p.lose(err)
	case late:
		return p.lose(fmt.Errorf("%w: %w", errLost, err))
	}
	return nil
}

// lose ends the execution. It returns the error for the step that finds out.
func (p *pulse) lose(err error) error {
	p.end(err)
	return &run.StopError{Err: err}
}

// keep gives signs of life until ctx ends.
func (p *pulse) keep(ctx context.Context) {
	tick := time.NewTicker(p.limit / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if p.give(ctx) != nil {
				return
			}
		}
	}
}

// hint replaces the commands of loki that are about runs by those of this program.
var hint = strings.NewReplacer("loki --resume", "loki-temporal --resume", "loki --run ", "loki-temporal --run ", "loki --fork", "loki-temporal --fork", "loki --signal", "loki-temporal --signal")

// Hint returns a hint for the user of a run on Temporal.
func Hint(text string) string { return hint.Replace(text) }
