package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
)

// withSet returns the state in which a user has set keys. Of several values of one key the last one counts.
func withSet(state graph.State, set []value.Member) graph.State {
	var kept []value.Member
	for name, v := range value.ObjectOf(set...).All() {
		kept = append(kept, value.Member{Name: name, Value: v})
	}
	return state.With(kept...)
}

// mayBeSet refuses to set the state of a run of which more is on record than its last checkpoint. What is finished of the super-step after
// that, and what was asked in it, has seen the state as it was.
func mayBeSet(ctx context.Context, store Store, id string, last Checkpoint, tasks []TaskRecord) error {
	if last.Done {
		return &RefusedError{fault.New(fault.Usage, "the state of run %s cannot be set: its last node has run in %s", id, superStep(last.Step)).
			WithHint("begin a new run before that: loki --fork %s@%d --set KEY=JSON\nor take what it came to: loki --resume %[1]s", id, max(0, last.Step-1))}
	}
	h, err := store.History(ctx, id)
	if err != nil {
		return err
	}
	for _, s := range h.Steps {
		if s.Step > last.Step {
			return setTooLate(id, last, s.Node)
		}
	}
	for _, p := range slices.Concat(h.Pending, h.Waiting) {
		if p.Step > last.Step {
			return setTooLate(id, last, p.Node)
		}
	}
	if len(tasks) > 0 {
		return setTooLate(id, last, tasks[0].Result.Node)
	}
	return nil
}

func setTooLate(id string, last Checkpoint, node string) error {
	return &RefusedError{fault.New(fault.Usage, "the state of run %s cannot be set: node %q has begun with it in %s", id, node, superStep(last.Step+1)).
		WithHint("begin a new run before that super-step: loki --fork %s@%d --set KEY=JSON\nor resume without --set: loki --resume %[1]s", id, last.Step)}
}

// set records the state that the user has set in a run that was opened, and changes found accordingly. If it is refused the run is as it was
// before.
func set(ctx context.Context, store Store, j Journal, found *Recovery, events event.Scope, members []value.Member) error {
	if len(members) == 0 {
		return nil
	}
	if err := mayBeSet(ctx, store, j.ID(), found.Last, found.Tasks); err != nil {
		return errors.Join(err, rest(ctx, j, found.Info))
	}
	state := withSet(found.Last.State, members)
	if err := patiently(ctx, events, func() error { return j.SetState(ctx, state) }); err != nil {
		return fmt.Errorf("setting the state of run %s: %w", j.ID(), err)
	}
	found.Before, found.Last.State = found.Last.State, state
	return nil
}

// rest records that a run which was opened rests as it did before.
func rest(ctx context.Context, j Journal, was Info) error {
	if was.Status == Running {
		return nil
	}
	return j.End(ctx, Ending{Status: was.Status, Output: was.Output, Error: was.Error, Code: was.Code, Until: was.Until, Breakpoint: was.Breakpoint})
}
