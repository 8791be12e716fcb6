package tool

import (
	"context"
	"errors"
	"fmt"

	"loki/internal/ask"
	"loki/internal/fault"
	"loki/internal/hook"
	"loki/internal/permission"
	"loki/internal/steps"
	"loki/internal/text"
)

// Judge decides which calls may be made, and keeps what users grant. Its methods may be
// called from several goroutines. [permission.Judge] is one.
type Judge interface {
	Judge(call permission.Call) permission.Verdict
	// Remember keeps what the user granted.
	Remember(scope permission.Scope, grants []permission.Grant) error
	// Unattended says what becomes of a call that needs consent where no user can be asked.
	Unattended() permission.Unattended
	// Agent returns the name of the agent to which grants can be made; empty
	// without an agent.
	Agent() string
}

var _ Judge = (*permission.Judge)(nil)

// admission is the decision about a call.
type admission struct {
	refused  string // why the call is not made; empty if it is
	harmless bool   // as [permission.Verdict] has it
	// unasked marks a call that guard let through without a question. Another call may
	// change the target before this call is made, and then a question is due.
	unasked bool
	guard   Guard
}

// admit decides whether a call may be made.
func (b *Box) admit(ctx context.Context, t Tool, h Hints, call Call, st steps.Steps) (a admission, err error) {
	if s, ok := t.(StandIn); ok {
		h = s.StandsInFor()
	}
	question := ""
	guard, guarded := t.(Guard)
	if guarded {
		question = guard.Consent(call)
	}
	needed := h.Destructive && !guarded || question != ""
	a = admission{guard: guard, unasked: guarded && question == "" && !b.o.AutoConfirm}
	if b.o.Judge == nil {
		if needed {
			a.refused, err = b.consent(ctx, aboutCall(question, call), st)
		}
		return a, err
	}
	v := b.o.Judge.Judge(permission.Call{Tool: call.Name, Arguments: call.Arguments, ReadOnly: h.ReadOnly, Destructive: h.Destructive})
	if v.Decided {
		a.unasked = false // a rule decides, whatever the tool thinks of the call
	} else if v.Action != permission.Deny {
		// The verdict is only the default for such tools; this tool knows this call.
		v.Action = permission.Allow
		if needed {
			v.Action = permission.Ask
		}
	}
	switch v.Action {
	case permission.Allow:
		a.harmless = v.Harmless
		if h.ReadOnly {
			return a, nil
		}
		// The decision is recorded, so that a call that is done is not asked about when rules
		// have changed since.
		a.refused, err = steps.Do(ctx, st, steps.Step{Kind: steps.Question, Key: "consent"}, func(context.Context) (string, error) { return "", nil })
	case permission.Deny:
		a.refused, err = steps.Do(ctx, st, steps.Step{Kind: steps.Question, Key: "consent"}, func(context.Context) (string, error) {
			return fmt.Sprintf("it is not allowed (%s). Do not try to get around this; do without, or say so to the user.", v.Reason), nil
		})
	default:
		q := aboutCall(question, call)
		q.Reason, q.Always, q.Agent = v.Reason, v.Always, b.o.Judge.Agent()
		a.refused, err = b.consent(ctx, q, st)
		a.unasked = false
	}
	return a, err
}

// aboutCall returns the question about a call, with text if the tool gave one.
func aboutCall(text string, call Call) ConsentQuestion {
	if text == "" {
		text = PlainQuestion(call)
	}
	return ConsentQuestion{Text: text}
}

// PlainQuestion returns a question that shows only the name and the arguments
// of a call.
func PlainQuestion(call Call) string {
	return fmt.Sprintf("May the tool %s be run with these arguments?\n\n    %s", call.Name, text.Visible(string(call.Arguments)))
}

// consent gets the answer to a question, or takes the recorded one, and returns why the
// call must not be made, empty if it may. It comes before the call's own step, so that
// an interruption while the user thinks leaves no doubt about what was done. Answers that
// were given without asking are recorded too, since the result will be.
func (b *Box) consent(ctx context.Context, q ConsentQuestion, st steps.Steps) (refused string, err error) {
	return steps.Do(ctx, st, steps.Step{Kind: steps.Question, Key: "consent"}, func(ctx context.Context) (string, error) {
		if b.o.AutoConfirm {
			return "", nil
		}
		asked := q.Ask(b.o.From)
		asked.ID = st.Key("consent")
		said, err := b.ask(ctx, asked)
		answer := q.Answer(said)
		if refused, ok := errors.AsType[*hook.RefusedError](err); ok {
			return refused.Error(), nil
		}
		switch {
		case fault.CodeOf(err) == fault.Suspended:
			return "", err
		case errors.Is(err, ask.ErrUnavailable):
			return b.unattended(err)
		case err != nil:
			return "", err
		case answer.Reason != "":
			return "the user did not consent, and said: " + answer.Reason, nil
		case !answer.Yes:
			return "the user did not consent.", nil
		}
		if answer.Scope != "" && b.o.Judge != nil && len(q.Always) > 0 {
			if err := b.o.Judge.Remember(answer.Scope, q.Always); err != nil {
				return "", err
			}
		}
		return "", nil
	})
}

// unattended decides about a call that needs consent where no user can be asked.
func (b *Box) unattended(cause error) (refused string, err error) {
	policy := permission.UnattendedDeny
	if b.o.Judge != nil {
		policy = b.o.Judge.Unattended()
	}
	switch policy {
	case permission.UnattendedAllow:
		return "", nil
	case permission.UnattendedSuspend:
		return "", fault.Wrap(fault.Suspended, cause, "a call needs the user's consent, and no user can be asked here").
			WithHint("run it in a terminal, allow such calls with a rule under permission in config.yaml, or consent to all with --yes")
	}
	return "it needs the user's consent, and the user cannot be asked here. The user can allow such calls with a rule under permission in config.yaml, or consent to all calls with --yes or AUTO_CONFIRM=1.", nil
}
