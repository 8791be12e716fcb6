package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/base/value/schema"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// Waiting says what a [Pending] waits for.
type Waiting string

// What is waited for.
const (
	ForAnswer Waiting = ""       // of a question
	ForTime   Waiting = "time"   // the deadline
	ForSignal Waiting = "signal" // a signal, or the deadline if there is one
)

// Signal is a message to a run, which a node takes that waits for it. Signals are kept until they are taken, and taken in the
// order in which they came.
type Signal struct {
	Number int             `json:"number"` // of the signals of the run, from 1
	Name   string          `json:"name"`
	Value  json.RawMessage `json:"value"`
	At     time.Time       `json:"at"`
	Taken  string          `json:"taken,omitempty"` // names the wait that took it, see [Journal]; empty for none yet
	Key    string          `json:"-"`               // of the request that sent it; empty for none
}

// Wait makes the work of a node wait. A recorded run is suspended meanwhile, and takes no process; a wait that is over is on record.
type Wait struct {
	Steps  steps.Steps // of the node
	Events event.Scope // likewise
	Place  string      // the id of the wait, for people. No other work of the run has the same
	Waits  string      // what waits, for messages, such as: node "pause"
	Now    func() time.Time
	Sleep  func(ctx context.Context, d time.Duration) error // for runs that are not recorded
}

// waitKey is the step that is recorded when the wait is over.
const waitKey = "wait"

// WaitError is the error of work that waits. It is wrapped in one with code [fault.Suspended].
type WaitError struct {
	At     time.Time // when it resumes without a signal; zero for never
	Signal string    // name of the signal that it waits for; empty for none
	text   string
}

func (e *WaitError) Error() string { return e.text }

// Began returns when the wait began, which an interruption does not change.
func (w Wait) Began(ctx context.Context) (time.Time, error) {
	return steps.Do(ctx, w.Steps, steps.Step{Kind: steps.Time, Key: waitKey + "/began"}, func(context.Context) (time.Time, error) { return w.Now(), nil })
}

// Until waits until a time.
func (w Wait) Until(ctx context.Context, at time.Time) error {
	_, err := steps.Do(ctx, w.Steps, steps.Step{Kind: steps.Time, Key: waitKey}, func(ctx context.Context) (time.Time, error) {
		left := at.Sub(w.Now())
		if left <= 0 {
			return at, nil
		}
		if err := w.Events.Emit(ctx, event.Waiting{ID: w.Place, Until: at}); err != nil {
			return at, err
		}
		if kept, err := w.keep(ctx, Pending{Wait: ForTime, Deadline: at}); err != nil {
			return at, err
		} else if kept {
			return at, w.suspension(at, "")
		}
		return at, w.Sleep(ctx, left)
	})
	return err
}

// received is the record of a wait for a signal that is over.
type received struct {
	Number int         `json:"number,omitempty"` // of the signal; 0 for none
	Value  value.Value `json:"value"`
}

// Signal waits for a signal until a deadline, zero for none. came is false if the deadline is over.
func (w Wait) Signal(ctx context.Context, name string, deadline time.Time) (v value.Value, came bool, err error) {
	r, err := steps.Do(ctx, w.Steps, steps.Step{Kind: steps.Signal, Key: waitKey, Name: name}, func(ctx context.Context) (received, error) {
		// It is on record that the run waits before the signals are looked at, so that none is missed that comes now.
		kept, err := w.keep(ctx, Pending{Wait: ForSignal, Signal: name, Deadline: deadline})
		if err != nil {
			return received{}, err
		}
		if !kept {
			return received{}, fault.New(fault.Config, "%s waits for signal %s, and the run is not recorded, so no signal can reach it", w.Waits, name).
				WithHint("leave out settings.durability: off")
		}
		s, ok, err := w.Steps.Recorder().(WaitRecorder).Take(ctx, name, w.Steps.Key(waitKey), deadline)
		switch {
		case err != nil:
			return received{}, err
		case !ok && !deadline.IsZero() && !w.Now().Before(deadline):
			return received{}, nil
		case !ok:
			if err := w.Events.Emit(ctx, event.Waiting{ID: w.Place, Signal: name, Until: deadline}); err != nil {
				return received{}, err
			}
			return received{}, w.suspension(deadline, name)
		}
		v, err := value.ParseJSON(s.Value)
		if err == nil {
			err = w.Events.Emit(ctx, event.Signal{ID: w.Place, Name: name, Value: v})
		}
		return received{s.Number, v}, err
	})
	return r.Value, r.Number > 0, err
}

// WaitRecorder is a [steps.Recorder] of a task that can wait on record.
type WaitRecorder interface {
	QuestionRecorder
	// Take takes a signal for the wait with the full key, see [Journal].
	Take(ctx context.Context, name, key string, before time.Time) (s Signal, ok bool, err error)
}

// keep puts the wait on record. It reports false for a run that is not recorded.
func (w Wait) keep(ctx context.Context, p Pending) (kept bool, err error) {
	if !w.Steps.Recording() {
		return false, nil
	}
	rec, ok := w.Steps.Recorder().(WaitRecorder)
	if !ok {
		return false, fault.New(fault.Config, "%s waits, which is not possible where this run works", w.Waits)
	}
	p.ID, p.Key, p.Asked = w.Place, w.Steps.Key(waitKey), w.Now()
	p.Text = p.waitsFor()
	return true, rec.Asked(ctx, p)
}

// waitsFor says what a wait is for.
func (p Pending) waitsFor() string {
	var parts []string
	if p.Signal != "" {
		parts = append(parts, "for signal "+p.Signal)
	}
	if !p.Deadline.IsZero() {
		parts = append(parts, "until "+p.Deadline.Local().Format(time.DateTime))
	}
	return "waits " + strings.Join(parts, ", ")
}

// suspension returns the error of a wait that is not over.
func (w Wait) suspension(at time.Time, signal string) error {
	e := &WaitError{At: at, Signal: signal}
	e.text = w.Waits + " " + Pending{Signal: signal, Deadline: at}.waitsFor()
	id := w.Events.Run
	f := fault.Wrap(fault.Suspended, e, "")
	switch {
	case signal != "":
		return f.WithHint("send it: loki --signal %s '%s=JSON'; then resume: loki --resume %s", id, signal, id)
	default:
		return f.WithHint("resume then: loki --resume %s; or wait for it: loki --resume %s --wait", id, id)
	}
}

// Take implements [WaitRecorder].
func (t *taskRecorder) Take(ctx context.Context, name, key string, before time.Time) (s Signal, ok bool, err error) {
	by := fmt.Sprintf("%d/%s/%s", t.step, escapeNode.Replace(t.node), key)
	err = t.k.write(ctx, func(ctx context.Context) (err error) {
		s, ok, err = t.k.journal.Take(ctx, name, by, before)
		return err
	})
	return s, ok, err
}

// soonest returns the earliest time at which work that failed with one of errs resumes by itself, and what it waits for; ok is
// false if none does.
func soonest(errs ...error) (at time.Time, what string, ok bool) {
	for _, err := range errs {
		var t time.Time
		var of string
		if later, is := errors.AsType[*engine.LaterError](err); is {
			t, of = later.At, "waiting for the provider"
		} else if wait, is := errors.AsType[*WaitError](err); is {
			t, of = wait.At, wait.text
		} else if spent, is := errors.AsType[*SpentError](err); is {
			t, of = spent.At, "waiting for its limit to begin again"
		} else {
			continue
		}
		if !ok || !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at, what, ok = t, of, true
		}
	}
	return at, what, ok
}

// Due reports whether err is that of a run whose provider asked for a wait that is over by now.
func Due(err error) bool {
	later, ok := errors.AsType[*engine.LaterError](err)
	return ok && !later.At.After(time.Now())
}

// soonError is the error of a run in which another part than the one it reports resumes first.
type soonError struct {
	error
	first error
}

// Unwrap returns both errors.
func (e *soonError) Unwrap() []error { return []error{e.error, e.first} }

// waitingError returns err, the error of a super-step that waits, with the time at which the first of its tasks resumes.
func waitingError(err error, results []graph.Result) error {
	var first error
	var at time.Time
	for _, r := range results {
		if t, _, ok := soonest(r.Err); ok && (first == nil || !t.IsZero() && (at.IsZero() || t.Before(at))) {
			first, at = r.Err, t
		}
	}
	if own, _, ok := soonest(err); first == nil || ok && own.Equal(at) {
		return err
	}
	return &soonError{err, suspension(first)}
}

// Arrived reports whether a wait can end now: its time is over, or its signal is among signals and was not taken.
func (p Pending) Arrived(signals []Signal, now time.Time) bool {
	if !p.Deadline.IsZero() && !now.Before(p.Deadline) {
		return true
	}
	return p.Wait == ForSignal && slices.ContainsFunc(signals, func(s Signal) bool { return s.fits(p.Signal, p.Deadline) })
}

// fits reports whether a wait for a signal with a name until a deadline, zero for none, can take s.
func (s Signal) fits(name string, deadline time.Time) bool {
	return s.Name == name && s.Taken == "" && (deadline.IsZero() || !s.At.After(deadline))
}

// FirstOf returns the signal that a wait takes: the one that it took before, or else the first with the name that no other took
// and that came before a time, zero for any. ok is false if there is none. It is for stores.
func FirstOf(signals []Signal, name, by string, before time.Time) (s Signal, ok bool) {
	i := slices.IndexFunc(signals, func(s Signal) bool { return s.Taken == by })
	if i < 0 {
		i = slices.IndexFunc(signals, func(s Signal) bool { return s.fits(name, before) })
	}
	if i < 0 {
		return Signal{}, false
	}
	return signals[i], true
}

// Over returns the step that is on record once a wait is over, and its result: with the signal that it took, or nil if its time is over.
// It is for drivers outside of this package, which end waits without the process that waits.
func (p Pending) Over(s *Signal) (step steps.Step, result []byte, err error) {
	if p.Wait == ForTime {
		result, err = value.Marshal(p.Deadline)
		return steps.Step{Kind: steps.Time}, result, err
	}
	var r received
	if s != nil {
		if r.Value, err = value.ParseJSON(s.Value); err != nil {
			return step, nil, err
		}
		r.Number = s.Number
	}
	result, err = value.Marshal(r)
	return steps.Step{Kind: steps.Signal, Name: p.Signal}, result, err
}

// Split returns the questions among what is pending, and the waits. It is for stores.
func Split(pending []Pending) (questions, waits []Pending) {
	for _, p := range pending {
		if p.Wait == ForAnswer {
			questions = append(questions, p)
		} else {
			waits = append(waits, p)
		}
	}
	return questions, waits
}

// Deliver gives a run a signal. It is refused unless a node of the run's graph waits for signals of that name, or a child agent
// does so now, and v satisfies the schema of one of them. A signal with a key that is on record is not given again.
func Deliver(ctx context.Context, store Store, id, name string, v value.Value, key string) (Info, Signal, error) {
	h, err := store.History(ctx, id)
	if err != nil {
		return Info{}, Signal{}, err
	}
	if i := slices.IndexFunc(h.Signals, func(s Signal) bool { return key != "" && s.Key == key }); i >= 0 {
		return h.Info, h.Signals[i], nil
	}
	if err := h.AcceptSignal(name, v); err != nil {
		return h.Info, Signal{}, err
	}
	s, err := store.Signal(ctx, h.Info.ID, name, v.AppendJSON(nil), key)
	return h.Info, s, refusal(err, h.Info.Kind)
}

// AcceptSignal returns why the run does not take a signal, nil if it does.
func (h History) AcceptSignal(name string, v value.Value) error {
	if h.Info.Kind != GraphRun {
		return fault.New(fault.Usage, "run %s is not that of a graph, and waits for no signal", h.Info.ID)
	}
	if !h.Info.Status.Resumable() {
		return &RefusedError{refusal(&EndedError{ID: h.Info.ID, Status: h.Info.Status}, h.Info.Kind)}
	}
	g, err := h.Info.RecordedGraph()
	if err != nil {
		return err
	}
	nodes := g.Waits(name)
	waits := slices.ContainsFunc(h.Waiting, func(p Pending) bool { return p.Signal == name && name != "" })
	if len(nodes) == 0 && !waits {
		hint := "it waits for no signal"
		if names := g.Signals(); len(names) > 0 {
			hint = "signals of its graph: " + strings.Join(names, ", ")
		}
		return fault.New(fault.Usage, "no node of run %s waits for signal %q", h.Info.ID, name).WithHint("%s", hint).ThatMisses("signal")
	}
	var wrong error
	for _, n := range nodes {
		if n.Wait.Schema == nil {
			return nil
		}
		form, err := schema.Compile(*n.Wait.Schema)
		if err != nil {
			return err
		}
		violations := form.Validate(v)
		if violations == nil {
			return nil
		}
		wrong = cmp.Or(wrong, error(fault.New(fault.Usage, "signal %s does not match the schema of node %q: %s", name, n.ID, schema.List(violations, "; "))))
	}
	return wrong
}

// poll is how often the signals of a run are looked for while a command waits for one.
const poll = 250 * time.Millisecond

// await returns when a run that waits can resume, or ctx ends.
func (s *Service) await(ctx context.Context, id string, err error) error {
	at, _, _ := soonest(err)
	_, waits := errors.AsType[*WaitError](err)
	for {
		left := poll
		if !at.IsZero() {
			if left = time.Until(at); left <= 0 {
				return nil
			}
		}
		if waits {
			if arrived, err := s.arrived(ctx, id); err != nil || arrived {
				return err
			}
			left = min(left, poll)
		}
		if ended := retry.Sleep(ctx, left); ended != nil {
			return ended
		}
	}
}

// arrived reports whether a wait of a run can end.
func (s *Service) arrived(ctx context.Context, id string) (bool, error) {
	store, err := s.openWhole()
	if err != nil {
		return false, err
	}
	defer store.Close()
	waits, err := store.Waits(ctx, id)
	if err != nil {
		return false, err
	}
	signals, err := store.Signals(ctx, id)
	return slices.ContainsFunc(waits, func(p Pending) bool { return p.Arrived(signals, time.Now()) }), err
}
