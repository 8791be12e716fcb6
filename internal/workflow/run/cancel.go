package run

import (
	"context"
	"errors"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/event"
)

// Cancel ends a run as canceled, after what it did is undone, if it can be. A run that another process is at work on is canceled there if the store is
// shared; otherwise the error is a [*LeaseError]. One that is over is an [*EndedError].
func (s *Service) Cancel(ctx context.Context, id string) error {
	store, err := s.openWhole()
	if err != nil {
		return err
	}
	info, err := store.Info(ctx, id)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	if shared, ok := store.(Shared); ok && info.Active {
		if asked, err := shared.Cancel(ctx, info.ID, false); asked || err != nil {
			return errors.Join(err, store.Close())
		}
	}
	last, err := store.Checkpoint(ctx, info.ID, -1)
	if err == nil && info.MustUndo(last) {
		if err := store.Close(); err != nil {
			return err
		}
		out, err := s.resume(ctx, Resumption{Continuation: Continuation{ID: info.ID, Events: event.NewScope(event.Discard, event.Source{}, nil)}, Uncanceled: true, Canceled: true})
		if out.Undone != nil || fault.CodeOf(err) == fault.Canceled {
			return nil
		}
		return err
	}
	if err == nil {
		err = EndCanceled(ctx, store, info, time.Now())
	}
	return errors.Join(err, store.Close())
}

// MustUndo reports whether the run, whose last checkpoint is last, has effects to undo if it is canceled.
func (i Info) MustUndo(last Checkpoint) bool {
	return i.Kind == GraphRun && i.Gap == nil && (i.Terms == nil || !i.Terms.NoCompensate) && len(last.Effects) > 0 && !i.Status.Over()
}

// EndCanceled ends a run as canceled that no process holds, or that waits in one because of its gates. Otherwise the error is a
// [*LeaseError].
func EndCanceled(ctx context.Context, store Store, info Info, now time.Time) error {
	j, _, err := store.Open(ctx, info.ID, Canceled, Failed)
	if _, held := errors.AsType[*LeaseError](err); held {
		if ended, waitErr := endWait(ctx, store, info); ended || waitErr != nil {
			return waitErr
		}
	}
	if err != nil {
		return err
	}
	end := Ending{Status: Canceled, Error: errCanceled.Error(), Code: fault.Canceled}
	j.Event(event.Event{
		Time: now, Source: event.Source{Run: info.ID, Agent: info.Agent},
		Body: event.Finished{Steps: info.Steps, Failures: info.Failures, Usage: info.Usage, Error: end.Error, Code: string(end.Code)},
	})
	return errors.Join(j.End(ctx, end), j.Close())
}
