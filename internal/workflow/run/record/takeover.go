package record

import (
	"context"
	"fmt"
	"maps"

	"loki/internal/workflow/run"
)

// Recover reads what [run.Store.Open] returns of a run, and its last checkpoint.
func Recover(ctx context.Context, v View, id int64) (found run.Recovery, last Snapshot, err error) {
	if found.Info, err = v.Info(ctx, id); err != nil {
		return found, last, err
	}
	if !found.Info.Status.Resumable() {
		return found, last, &run.EndedError{ID: found.Info.ID, Status: found.Info.Status}
	}
	found.Info.Active, found.Info.Held = false, nil
	if last, err = v.Checkpoint(ctx, id, found.Info.Steps); err != nil {
		return found, last, err
	}
	found.Last = last.Checkpoint
	found.Last.Visits = maps.Clone(found.Last.Visits)
	found.Tasks, err = Tasks(ctx, v, id)
	return found, last, err
}

// Progress returns how far a run has come, for comparison: its super-steps, and of the one under way the results of steps and the
// finished tasks. What was only begun is no progress.
func Progress(step, results, tasks int) string { return fmt.Sprintf("%d/%d/%d", step, results, tasks) }

// Takeovers returns [run.Info.Takeovers] of a run that is being opened. info is as it was on record, died says that a process died at
// work on the run, and ahead that there is progress since the last time that one did.
func Takeovers(info run.Info, died, ahead bool) int {
	n := info.Takeovers
	if ahead || info.Status != run.Running { // or it has rested since then
		n = 0
	}
	if died && info.Status == run.Running {
		n++
	}
	return n
}
