package node

import (
	"context"
	"errors"
	"fmt"

	"loki/internal/ask"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/run"
	"loki/internal/steps"
	"loki/internal/value"
)

// approval asks a human to choose and routes by the answer.
func (r *Runner) approval(ctx context.Context, t *run.Task) (product, error) {
	a := t.Node.Approval
	question, err := a.Question.Strict(t.Draft)
	if err != nil {
		return product{}, fmt.Errorf("question: %w", err)
	}
	choice, err := r.ask(ctx, t, ask.Question{Kind: ask.Choice, Text: question, Options: a.Options})
	if err != nil {
		return product{}, fmt.Errorf("approval interaction failed: %w", err)
	}
	t.Draft.ApplyUpdates(t.Node.Updates, "choice", value.Of(choice), "")
	for _, route := range a.Routes {
		if route.Answer == choice {
			return product{targets: []string{route.Target}}, nil
		}
	}
	return product{targets: []string{a.OnOther}}, nil
}

// input asks a human for a text. An empty answer stands for the default, which is
// not validated.
func (r *Runner) input(ctx context.Context, t *run.Task) (product, error) {
	in := t.Node.Input
	if len(t.Node.Next) == 0 {
		return product{}, errors.New("input node has no next")
	}
	var valid graph.Predicate
	var err error
	if in.Validation != "" {
		if valid, err = graph.ParsePredicate(in.Validation); err != nil {
			return product{}, fmt.Errorf("validation: %w", err)
		}
	}
	q := ask.Question{Kind: ask.Text}
	if q.Text, err = in.Question.Strict(t.Draft); err != nil {
		return product{}, fmt.Errorf("question: %w", err)
	}
	if in.Default != nil {
		q.Default = in.Default.Lenient(t.Draft)
		q.HasDefault = q.Default != ""
	}
	text, err := r.ask(ctx, t, q)
	if err != nil {
		return product{}, fmt.Errorf("input interaction failed: %w", err)
	}
	if text == "" {
		text = q.Default
	} else if in.Validation != "" && !valid.Holds(text) {
		return product{}, fmt.Errorf("the answer does not satisfy %s", in.Validation)
	}
	t.Draft.ApplyUpdates(t.Node.Updates, "input", value.Of(text), "")
	return product{targets: t.Node.Next[:1]}, nil
}

// ask puts a question to the human, or takes the recorded answer.
func (r *Runner) ask(ctx context.Context, t *run.Task, q ask.Question) (string, error) {
	q.ID = fmt.Sprintf("%s/%d", t.Node.ID, t.Visit)
	q.Node, q.Agent, q.Depth = t.Node.ID, r.Agent, r.Depth
	step := steps.Step{Kind: steps.Question, Key: "question"}
	return steps.Do(ctx, t.Steps, step, func(ctx context.Context) (string, error) {
		asked := event.Question{ID: q.ID, Text: q.Text, Options: q.Options}
		if q.Default != "" {
			asked.Default = &q.Default
		}
		if err := t.Events.Emit(ctx, asked); err != nil {
			return "", err
		}
		answer, err := r.Asker.Ask(ctx, q)
		if errors.Is(err, ask.ErrUnavailable) {
			return "", fault.Wrap(fault.Suspended, err, "node %q asks %q", t.Node.ID, clip(q.Text, 200)).
				WithHint("run it in a terminal, or pipe the answers in, one a line")
		}
		if err != nil {
			return "", err
		}
		return answer, t.Events.Emit(ctx, event.Answer{ID: q.ID, Text: answer})
	})
}
