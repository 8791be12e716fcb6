package run

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"loki/internal/base/fault"
)

// NotAssignedError says that a subject may not answer a question, because others are to.
type NotAssignedError struct {
	Question  string // its id
	Assignees []string
}

func (e *NotAssignedError) Error() string {
	return fmt.Sprintf("question %s is for %s to answer", e.Question, strings.Join(e.Assignees, ", "))
}

// ConsentError says that a client gave an agent a variable that consents to all calls of tools. Only the user at a
// terminal may.
type ConsentError struct{ Variable string }

func (e *ConsentError) Error() string {
	return fmt.Sprintf("variable %s: a client cannot consent to the calls of tools beforehand", e.Variable)
}

// RefusedError says that a run on record cannot resume in its present state, such as because its agent has
// changed since. What it wraps says why, and what to do.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// refusal returns the error of a store that does not open a run of a kind as users read it.
func refusal(err error, kind Kind) error {
	if lease, ok := errors.AsType[*LeaseError](err); ok {
		return leaseRefusal(lease)
	}
	if gap, ok := errors.AsType[*GapError](err); ok {
		return fault.Wrap(fault.Failure, gap, "").
			WithHint("resuming it would repeat %s; if that does no harm: loki --resume %s --force", gap.Gap.Repeats(), gap.ID)
	}
	if ended, ok := errors.AsType[*EndedError](err); ok {
		if ended.Status == Canceled {
			return fault.Wrap(fault.Usage, ended, "").WithHint("resume it anyway: loki --resume %s", ended.ID)
		}
		return fault.Wrap(fault.Usage, ended, "").WithHint("%s", outputHint(ended.ID, kind))
	}
	return err
}

// outputHint says what can be done with a run that is done.
func outputHint(id string, kind Kind) string {
	hint := "its output: loki --run " + id
	if kind == GraphRun {
		hint += "; its steps again as a new run: loki --fork " + id + "@STEP"
	}
	return hint
}

// leaseRefusal is how a run is refused that another process holds.
func leaseRefusal(e *LeaseError) error {
	err := fault.Wrap(fault.Failure, e, "")
	if e.Until.IsZero() {
		return err.WithHint("wait until it ends there, or stop that process")
	}
	return err.WithHint("wait until it ends there; if that process gives no sign of life, the run can be resumed from %s on (in %s)",
		e.Until.Local().Format(time.TimeOnly), max(time.Second, time.Until(e.Until).Round(time.Second)))
}
