package record

import (
	"fmt"

	"loki/internal/workflow/run"
)

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
