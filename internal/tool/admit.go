package tool

import (
	"context"
	"errors"
	"fmt"

	"loki/internal/ask"
	"loki/internal/fault"
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
	// Unattended says what becomes of calls that nobody can be asked about.
	Unattended() permission.Unattended
	// Agent is the one that grants can be made to; empty if there is none.
	Agent() string
}

var _ Judge = (*permission.Judge)(nil)

// admit decides whether a call is made, and returns why not, empty if it is. harmless is
// [permission.Verdict]'s.
func (b *Box) admit(ctx context.Context, t Tool, h Hints, call Call, st steps.Steps) (refused string, harmless bool, err error) {
	if s, ok := t.(StandIn); ok {
		h = s.StandsInFor()
	}
	guard, guarded := t.(Guard)
	text := ""
	if guarded {
		text = guard.Consent(call)
	}
	needed := h.Destructive && (!guarded || text != "") || text != ""
	if b.o.Judge == nil {
		if !needed {
			return "", false, nil
		}
		refused, err = b.consent(ctx, asking(text, call), st)
		return refused, false, err
	}
	v := b.o.Judge.Judge(permission.Call{Tool: call.Name, Arguments: call.Arguments, ReadOnly: h.ReadOnly, Destructive: h.Destructive})
	if !v.Decided && v.Action != permission.Deny {
		// It is only what is usual for such tools: this one knows about this call.
		v.Action = permission.Allow
		if needed {
			v.Action = permission.Ask
		}
	}
	switch v.Action {
	case permission.Allow:
		if h.ReadOnly {
			return "", v.Harmless, nil
		}
		// The decision is recorded, so that a call that is done is not asked about when rules
		// have changed since.
		refused, err = steps.Do(ctx, st, steps.Step{Kind: steps.Question, Key: "consent"}, func(context.Context) (string, error) { return "", nil })
		return refused, v.Harmless, err
	case permission.Deny:
		refused, err = steps.Do(ctx, st, steps.Step{Kind: steps.Question, Key: "consent"}, func(context.Context) (string, error) {
			return fmt.Sprintf("it is not allowed (%s). Do not try to get around this; do without, or tell the user.", v.Reason), nil
		})
		return refused, false, err
	}
	q := asking(text, call)
	q.Reason, q.Always, q.Agent = v.Reason, v.Always, b.o.Judge.Agent()
	refused, err = b.consent(ctx, q, st)
	return refused, false, err
}

// asking is the question about a call, with the tool's own text if it has one.
func asking(text string, call Call) ConsentQuestion {
	if text == "" {
		text = PlainQuestion(call)
	}
	return ConsentQuestion{Text: text}
}

// PlainQuestion asks about a call of which no more is known than what it says.
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
		answer, err := b.askConsent(ctx, st.Key("consent"), q)
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

// unattended is what becomes of a call that nobody can be asked about.
func (b *Box) unattended(cause error) (refused string, err error) {
	policy := permission.UnattendedDeny
	if b.o.Judge != nil {
		policy = b.o.Judge.Unattended()
	}
	switch policy {
	case permission.UnattendedAllow:
		return "", nil
	case permission.UnattendedSuspend:
		return "", fault.Wrap(fault.Suspended, cause, "a call needs the user's consent, and nobody can be asked here").
			WithHint("run it in a terminal, allow such calls with a rule under permission in config.yaml, or consent to all with --yes")
	}
	return "it needs the user's consent, and the user cannot be asked here. The user can allow such calls with a rule under permission in config.yaml, or consent to all calls with --yes or AUTO_CONFIRM=1.", nil
}

// askConsent asks the user, one question at a time.
func (b *Box) askConsent(ctx context.Context, key string, q ConsentQuestion) (ConsentAnswer, error) {
	if b.o.Consent == nil {
		text := q.Text
		yes, err := b.confirm(ctx, key, text)
		return ConsentAnswer{Yes: yes}, err
	}
	if err := b.acquire(ctx); err != nil {
		return ConsentAnswer{}, err
	}
	defer b.release()
	return b.o.Consent(ctx, key, q)
}
