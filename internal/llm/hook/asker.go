package hook

import (
	"context"

	"loki/internal/base/ask"
	"loki/internal/base/text"
)

// asker asks questions that hooks have read.
type asker struct {
	next  ask.Asker
	hooks *Runner
}

// Asker returns next with the hooks of [Question] in front of it; next itself if there are none, or if it is nil. The
// notes of the hooks are shown below the question. A hook that refuses is a [*RefusedError].
func (r *Runner) Asker(next ask.Asker) ask.Asker {
	if next == nil || !r.Has(Question) {
		return next
	}
	if a, ok := next.(asker); ok {
		next = a.next
	}
	return asker{next, r}
}

// Ask implements [ask.Asker].
func (a asker) Ask(ctx context.Context, q ask.Question) (string, error) {
	d, err := a.hooks.Run(ctx, Event{Kind: Question, ID: q.ID, Question: &Asked{Text: q.Text, Options: q.Options, Consent: q.Consent}}, nil)
	if err != nil {
		return "", err
	}
	if d.Refused() {
		return "", &RefusedError{"the user was not asked", d.Refusal()}
	}
	if notes := d.Text(); notes != "" {
		q.Text += "\n\n" + text.Visible(notes)
	}
	return a.next.Ask(ctx, q)
}

// AtTerminal passes on what [ask.AtTerminal] asks.
func (a asker) AtTerminal() bool { return ask.AtTerminal(a.next) }

// Hold passes on what [ask.Hold] asks.
func (a asker) Hold() func() { return ask.Hold(a.next) }
