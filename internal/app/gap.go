package app

import (
	"context"
	"fmt"
	"time"

	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/run"
)

// acceptGap lets a run go on of which a part is not on record, if the user insists. The
// user is warned of what is done again.
func acceptGap(ctx context.Context, store run.Store, info run.Info, force bool, e event.Emitter) error {
	if info.Gap == nil || !info.Status.Resumable() {
		return nil
	}
	if !force {
		return resumeError(&run.GapError{ID: info.ID, Gap: *info.Gap})
	}
	if err := patiently(ctx, info.Agent, e, func() error { return store.AcceptGap(ctx, info.ID) }); err != nil {
		return resumeError(err)
	}
	return warn(ctx, info.Agent, e, fmt.Sprintf("run %s goes on after super-step %d, the last one on record, and repeats %s", info.ID, info.Gap.Step, info.Gap.Repeats()))
}

// gapError is how a run with a gap is refused.
func gapError(e *run.GapError) error {
	return fault.Wrap(fault.Failure, e, "").
		WithHint("resuming it would repeat %s; if that does no harm: loki --resume %s --force", e.Gap.Repeats(), e.ID)
}

// leaseError is how a run is refused that another process holds.
func leaseError(e *run.LeaseError) error {
	err := fault.Wrap(fault.Failure, e, "")
	if e.Until.IsZero() {
		return err.WithHint("wait until it ends there, or stop that process")
	}
	return err.WithHint("wait until it ends there; if that process gives no sign of life, the run can be resumed from %s on (in %s)",
		e.Until.Local().Format(time.TimeOnly), max(time.Second, time.Until(e.Until).Round(time.Second)))
}

// patiently calls write, again and again as long as the store of runs cannot be written
// in passing.
func patiently(ctx context.Context, agent string, e event.Emitter, write func() error) error {
	var p run.Patience
	return p.Do(ctx, func(text string) error { return warn(ctx, agent, e, text) }, write)
}

// warn emits a warning about a run before it has events of its own.
func warn(ctx context.Context, agent string, e event.Emitter, text string) error {
	return event.NewScope(e, event.Source{Agent: agent}, nil).Emit(ctx, event.Warning{Text: text})
}
