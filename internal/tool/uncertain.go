package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/text"
)

// Policy decides about an uncertain call: one that was begun before an interruption
// and whose end was not recorded. Read-only tools are always run again.
type Policy string

// The policies.
const (
	Retry Policy = "retry" // make the call again, with the same idempotency key
	Skip  Policy = "skip"  // do not make it, and report to the model that its outcome is unknown
	Ask   Policy = "ask"   // let the user decide between the two
)

// TaskNote is the note in the record of a call that continues elsewhere, where a repeated call finds it. So that is not uncertain.
const TaskNote = "task"

// UncertainQuestion returns a question that is answered with [Retry] or [Skip], with the
// origin (agent, node, depth) that from names.
func UncertainQuestion(from ask.Question, text string) ask.Question {
	from.Kind, from.Text, from.Options, from.Consent = ask.Choice, text, []string{string(Retry), string(Skip)}, true
	from.Validate = func(answer string) error {
		if slices.Contains(from.Options, answer) {
			return nil
		}
		return fmt.Errorf("the answer must be %s or %s", Retry, Skip)
	}
	return from
}

// decide returns the policy's decision about an uncertain call. A decision to skip is
// recorded, because the model continues from there; a decision to retry holds for this time
// only. The user is asked with put.
func (b *Box) decide(ctx context.Context, call Call, st steps.Steps, put func(context.Context, ask.Question) (string, error)) (steps.Decision, error) {
	again := errors.New("repeated") // an error, so that it is not recorded
	step := steps.Step{Kind: steps.Question, Key: "uncertain", Name: call.Name}
	decision, err := steps.Do(ctx, st, step, func(ctx context.Context) (steps.Decision, error) {
		switch b.o.Uncertain {
		case Retry:
			return "", again
		case Skip:
			return steps.Skip, nil
		}
		q := UncertainQuestion(b.o.From, fmt.Sprintf("The run was interrupted during a call of the tool %s, and it is unknown whether the call was done.\n\n    %s\n\nMake it again?",
			call.Name, text.Visible(string(call.Arguments))))
		q.ID = st.Key("uncertain")
		answer, err := put(ctx, q)
		if err == nil {
			err = q.Validate(answer)
		}
		switch {
		case fault.CodeOf(err) == fault.Suspended:
			return "", err
		case errors.Is(err, ask.ErrUnavailable):
			return "", fault.Wrap(fault.Suspended, err, "it is unknown whether the call of tool %s was done before the interruption", call.Name).
				WithHint("resume the run in a terminal, and answer whether to make the call again")
		case err != nil:
			return "", err
		case answer == string(Retry):
			return "", again
		}
		return steps.Skip, nil
	})
	if errors.Is(err, again) {
		return steps.Retry, nil
	}
	return decision, err
}
