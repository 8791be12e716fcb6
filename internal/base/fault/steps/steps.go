// Package steps records the work inside a task that reaches the outside world.
//
// A step is one model call, script run, tool call or question: something that costs
// money or time, or changes the world, and must not happen twice. Code makes a step
// inside [Do], under a key that is the same whenever the task is run again. With a
// [Recorder], a step whose result is on record is not repeated: the result is read back. Without
// one, each step is made.
//
// An effect is a step that may change the world. Its beginning is recorded before it is
// made. If the process dies before the result is recorded, the step is uncertain: it is
// unknown whether it happened, and its Uncertain function decides what to do.
package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Kind says what a step does.
type Kind string

// The kinds of step.
const (
	Model    Kind = "model"
	Tool     Kind = "tool"
	Script   Kind = "script"
	Question Kind = "question"
	Signal   Kind = "signal" // a signal that a node waited for
	Agent    Kind = "agent"
	Cache    Kind = "cache"
	Time     Kind = "time"
	Note     Kind = "note"
	Hook     Kind = "hook" // what the user's hooks came to, see package hook

	Retrieval Kind = "retrieval" // a search in a knowledge base
)

// Step describes one step of a task.
type Step struct {
	Kind   Kind
	Key    string // unique within the task and its scope; the same on every run of the task
	Name   string // what is called, for people: a model, a tool, a script
	Effect bool   // it may change the world

	// Request returns what the step sends or does, as package json encodes it: for recorders that keep it or compare
	// it. It is called before the step is made, if at all. Nil means that there is nothing to say.
	Request func() any

	// Uncertain decides what to do with an effect that was begun and whose end is unknown.
	// Nil means Retry. It is called with the step's full key.
	Uncertain func(ctx context.Context, key string) (Decision, error)
}

// Decision is what to do with an uncertain step.
type Decision string

// The decisions.
const (
	Retry Decision = "retry" // make it again, under the same key
	Skip  Decision = "skip"  // assume it happened; Do returns ErrSkipped
)

// ErrSkipped is what [Do] returns for a step that was uncertain and is not repeated.
var ErrSkipped = errors.New("skipped, because it is unknown whether it happened before the interruption")

// Record is what is known of a step.
type Record struct {
	Result []byte // JSON, of a step that is Done
	Done   bool
	Begun  bool // an effect that was begun

	// Failure is the error of a step that failed and is not repeated. Records that are resumed have none: what
	// failed is tried again.
	Failure error
}

// Recorder keeps the steps of one task. Its methods may be called from several
// goroutines, with different keys.
type Recorder interface {
	// Lookup returns what is known of the step s with key, which is its full one.
	Lookup(ctx context.Context, key string, s Step) (Record, error)
	// Begin records that an effect is about to be made.
	Begin(ctx context.Context, key string, s Step) error
	// Forget undoes a Begin: the effect is known to have failed.
	Forget(ctx context.Context, key string) error
	// Record keeps the result of a step. It returns when the result is safe.
	Record(ctx context.Context, key string, s Step, result []byte) error
}

// FailureRecorder is a [Recorder] that keeps failures, too.
type FailureRecorder interface {
	// Fail keeps the error of a step, unless the context has ended.
	Fail(ctx context.Context, key string, s Step, failure error)
}

// Steps is the record of one task, or a part of it with keys of its own. The zero
// Steps records nothing. Copies are cheap.
type Steps struct {
	rec    Recorder
	prefix string
}

// New returns the Steps of a task whose record rec keeps; nil keeps none.
func New(rec Recorder) Steps { return Steps{rec: rec} }

// At returns the part of the record in which all keys begin with name.
func (s Steps) At(name string) Steps {
	s.prefix += name + "/"
	return s
}

// Recording reports whether steps are recorded.
func (s Steps) Recording() bool { return s.rec != nil }

// Recorder returns what keeps the steps, nil if they are not recorded.
func (s Steps) Recorder() Recorder { return s.rec }

// Key returns the full key of a step within the task.
func (s Steps) Key(key string) string { return s.prefix + key }

// Do returns the recorded result of the step, or makes the step by calling fn and
// records what it returns. An fn that fails is not recorded and is called again next time; an
// effect that was canceled while it was made stays uncertain. T must survive
// a round trip through JSON.
func Do[T any](ctx context.Context, s Steps, step Step, fn func(context.Context) (T, error)) (T, error) {
	if s.rec == nil {
		return fn(ctx)
	}
	var result T
	key := s.prefix + step.Key
	known, err := s.rec.Lookup(ctx, key, step)
	if err != nil {
		return result, fmt.Errorf("reading the record of step %s: %w", key, err)
	}
	if known.Failure != nil {
		return result, known.Failure
	}
	if known.Done {
		if err := json.Unmarshal(known.Result, &result); err != nil {
			return result, fmt.Errorf("reading the record of step %s: %w", key, err)
		}
		return result, nil
	}
	if known.Begun && step.Uncertain != nil {
		decision, err := step.Uncertain(ctx, key)
		if err != nil {
			return result, err
		}
		if decision == Skip {
			return result, ErrSkipped
		}
	}
	if step.Effect && !known.Begun {
		if err := s.rec.Begin(ctx, key, step); err != nil {
			return result, fmt.Errorf("recording the beginning of step %s: %w", key, err)
		}
	}
	result, err = fn(ctx)
	// What was done is recorded even if the run is canceled now.
	ctx, live := context.WithoutCancel(ctx), ctx.Err() == nil
	if err != nil {
		if f, ok := s.rec.(FailureRecorder); ok && live {
			f.Fail(ctx, key, step, err)
		}
		if step.Effect && live {
			if forgetErr := s.rec.Forget(ctx, key); forgetErr != nil {
				return result, errors.Join(err, forgetErr)
			}
		}
		return result, err
	}
	data, err := json.Marshal(result)
	if err == nil {
		err = s.rec.Record(ctx, key, step, data)
	}
	if err != nil {
		return result, fmt.Errorf("recording step %s: %w", key, err)
	}
	return result, nil
}

// errNoNote ends a step that only looks for a note, so that none is recorded.
var errNoNote = errors.New("there is no note")

// ReadNote returns the content of the note under key, if there is one. A note says that
// something is over, so that a resumed task does not do it again.
func ReadNote[T any](ctx context.Context, s Steps, key string) (content T, found bool, err error) {
	content, err = Do(ctx, s, Step{Kind: Note, Key: key}, func(context.Context) (T, error) {
		return content, errNoNote
	})
	if errors.Is(err, errNoNote) {
		return content, false, nil
	}
	return content, err == nil, err
}

// WriteNote records a note under key, unless there is one. T must survive a round trip through
// JSON.
func WriteNote[T any](ctx context.Context, s Steps, key string, content T) error {
	_, err := Do(ctx, s, Step{Kind: Note, Key: key}, func(context.Context) (T, error) { return content, nil })
	return err
}
