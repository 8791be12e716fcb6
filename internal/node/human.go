package node

import (
	"context"
	"errors"
	"fmt"

	"loki/internal/ask"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/run"
	"loki/internal/steps"
	"loki/internal/value"
)

// approval asks the user to choose and routes by the answer.
func (r *Runner) approval(ctx context.Context, t *run.Task) (product, error) {
	a := t.Node.Approval
	q := ask.Question{Kind: ask.Choice, Options: a.Options, Assignees: a.Assignees}
	var err error
	if q.Text, err = a.Question.Strict(t.Draft); err != nil {
		return product{}, fmt.Errorf("question: %w", err)
	}
	if a.Default != nil {
		q.Default, q.HasDefault = a.Default.Lenient(t.Draft), true
	}
	choice, err := r.ask(ctx, t, q)
	if err != nil {
		return product{}, notAnswered("approval", err)
	}
	t.Draft.ApplyUpdates(t.Node.Updates, "choice", value.Of(choice), "")
	for _, route := range a.Routes {
		if route.Answer == choice {
			return product{targets: []string{route.Target}}, nil
		}
	}
	return product{targets: []string{a.OnOther}}, nil
}

// input asks the user for a text. An empty answer stands for the default, which is
// not validated.
func (r *Runner) input(ctx context.Context, t *run.Task) (product, error) {
	in := t.Node.Input
	if len(t.Node.Next) == 0 {
		return product{}, errors.New("input node has no next")
	}
	var err error
	q := ask.Question{Kind: ask.Text, Assignees: in.Assignees}
	if q.Text, err = in.Question.Strict(t.Draft); err != nil {
		return product{}, fmt.Errorf("question: %w", err)
	}
	if in.Default != nil {
		q.Default = in.Default.Lenient(t.Draft)
		q.HasDefault = q.Default != "" || t.Node.HasTimeout
	}
	var valid graph.Predicate
	if in.Validation != "" {
		if valid, err = graph.ParsePredicate(in.Validation); err != nil {
			return product{}, fmt.Errorf("validation: %w", err)
		}
		q.Rule = in.Validation
		q.Validate = func(answer string) error {
			if answer == "" && q.HasDefault || valid.Holds(answer) {
				return nil
			}
			return fmt.Errorf("the answer has to satisfy %s", in.Validation)
		}
	}
	text, err := r.ask(ctx, t, q)
	if err != nil {
		return product{}, notAnswered("input", err)
	}
	if text == "" {
		text = q.Default
	}
	// An answer that came from elsewhere, after the run was suspended, was not checked.
	if in.Validation != "" && !(q.HasDefault && text == q.Default) && !valid.Holds(text) {
		return product{}, fmt.Errorf("the answer does not satisfy %s", in.Validation)
	}
	t.Draft.ApplyUpdates(t.Node.Updates, "input", value.Of(text), "")
	return product{targets: t.Node.Next[:1]}, nil
}

// notAnswered returns the error of a node whose question was not answered. A node that waits
// for the answer has not failed.
func notAnswered(kind string, err error) error {
	if fault.CodeOf(err) == fault.Suspended {
		return err
	}
	return fmt.Errorf("%s interaction failed: %w", kind, err)
}

// questions returns what puts questions of t to the user.
func (r *Runner) questions(t *run.Task) run.Questions {
	id := place(t)
	if t.Visit > 1 {
		id += fmt.Sprintf("@%d", t.Visit)
	}
	if t.Events.Item != nil {
		id += fmt.Sprintf("[%d]", *t.Events.Item)
	}
	waits := fmt.Sprintf("node %q", t.Node.ID)
	if t.Events.AgentID != "" {
		waits += " of " + t.Events.AgentID
	}
	return run.Questions{
		Asker: r.Asker, Escalated: r.Escalated, Steps: t.Steps, Events: t.Events, From: r.origin(t), Place: id, Base: t.Base,
		Waits: waits, Now: r.Now,
	}
}

// userQuestions returns what puts questions of t to the user that no agent may answer.
func (r *Runner) userQuestions(t *run.Task) run.Questions {
	q := r.questions(t)
	q.Asker, q.Escalated = r.User, false
	return q
}

// origin says where questions of t come from.
func (r *Runner) origin(t *run.Task) ask.Question {
	return ask.Question{Node: t.Node.ID, Agent: r.Agent, Depth: t.Events.Depth, Child: t.Events.AgentID}
}

// ask asks the question of an approval or input node.
func (r *Runner) ask(ctx context.Context, t *run.Task, q ask.Question) (string, error) {
	if t.Node.HasTimeout {
		return r.questions(t).AskWithin(ctx, q, t.Node.Timeout)
	}
	return r.questions(t).Ask(ctx, q)
}

// decideUncertain returns the function that decides about an effect of t that was begun when
// the run was interrupted.
func (r *Runner) decideUncertain(t *run.Task) func(context.Context, string) (steps.Decision, error) {
	return func(ctx context.Context, _ string) (steps.Decision, error) {
		switch t.Node.OnUncertain {
		case graph.UncertainSkip:
			return steps.Skip, nil
		case graph.UncertainAsk:
			return r.userQuestions(t).DecideUncertain(ctx,
				fmt.Sprintf("The script of node %s was running when the run was interrupted, and may have finished. Run it again?", t.Node.ID))
		default:
			return steps.Retry, nil
		}
	}
}
