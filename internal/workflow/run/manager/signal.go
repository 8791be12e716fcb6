package manager

import (
	"context"
	"errors"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/workflow/run"
)

// Signal gives a run a signal, see [run.Deliver]. If the run waits for it and is not at work, it resumes; a run that cannot is
// left as it is, with the signal.
func (m *Manager) Signal(ctx context.Context, id, name string, v value.Value, key string) (run.Signal, error) {
	info, s, err := run.Deliver(ctx, m.o.Store, id, name, v, key)
	if err != nil || info.Active || info.Status != run.Suspended {
		return s, err
	}
	waits, err := m.o.Store.Waits(ctx, info.ID)
	if err != nil {
		return s, nil // Wake looks again
	}
	for _, p := range waits {
		if !p.Arrived([]run.Signal{s}, s.At) {
			continue
		}
		if _, err := m.Resume(ctx, run.Resumption{Continuation: run.Continuation{ID: info.ID}, Uncanceled: true}); err != nil && !errors.Is(err, ErrClosed) {
			m.o.Log.WarnContext(ctx, "cannot resume a run with its signal", "run_id", info.ID, "error", err, "hint", fault.HintOf(err))
		}
		break
	}
	return s, nil
}
